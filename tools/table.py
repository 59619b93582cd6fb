"""Writes a C file with the table of everything of one kind, from the names in src/meson.build:
table.py OUT.c HEADER TYPE TABLE NAME...

Each NAME stands for a `const TYPE TYPE_NAME` at the end of its own file. TABLE ends with NULL."""
import sys


def main():
    out, header, kind, table, *names = sys.argv[1:]
    entries = [f"{kind}_{name}" for name in names]
    lines = ["/* Generated from the list in src/meson.build. */", f'#include "{header}"', ""]
    lines += [f"extern const {kind} {entry};" for entry in entries]
    lines += ["", f"const {kind} *const {table}[] = {{"]
    lines += [f"    &{entry}," for entry in entries]
    lines += ["    NULL,", "};", ""]
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


main()

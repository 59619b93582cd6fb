"""Writes a C file with the table of everything of one kind, from the names in src/meson.build:
table.py OUT.c HEADER TYPE ENTRY_PREFIX TABLE COUNT NAME...

Each name NAME stands for a `const TYPE ENTRY_PREFIX_NAME` at the end of its own file."""
import sys


def main():
    out, header, kind, prefix, table, count, *names = sys.argv[1:]
    entries = [f"{prefix}_{name}" for name in names]
    lines = [f"/* Generated from the list in src/meson.build. */", f'#include "{header}"', ""]
    lines += [f"extern const {kind} {entry};" for entry in entries]
    lines += ["", f"const {kind} *const {table}[] = {{"]
    lines += [f"    &{entry}," for entry in entries]
    lines += ["};", "", f"const size_t {count} = sizeof {table} / sizeof *{table};", ""]
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


main()

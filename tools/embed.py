"""Writes an assembly file that embeds files: embed.py OUT.S SYMBOL=PATH...

Each SYMBOL gets SYMBOL_start and SYMBOL_end; a NUL follows the bytes."""
import sys


def main():
    out, *pairs = sys.argv[1:]
    lines = [".section .rodata"]
    for pair in pairs:
        symbol, path = pair.split("=", 1)
        lines += [
            ".balign 16",
            f".global {symbol}_start",
            f".global {symbol}_end",
            f"{symbol}_start:",
            f'.incbin "{path}"',
            f"{symbol}_end:",
            ".byte 0",
        ]
    lines += ['.section .note.GNU-stack,"",@progbits', ""]
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


main()

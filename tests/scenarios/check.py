"""Holds a JSON answer to figures: ... --json | check.py ID CHECK...

A CHECK is PATH~VALUE (within 1 %), PATH~VALUE:TOLERANCE, PATH=WORD, PATH!=WORD, PATH>=N or
PATH<N. Parts of a path are joined by dots; a sum is PATH+PATH. Prints "ID holds",
or each figure that does not."""
import json
import re
import sys


def value(document, path):
    total = 0
    for one in path.split("+"):
        v = document
        for key in one.split("."):
            v = v[int(key)] if isinstance(v, list) else v[key]
        if isinstance(v, str):
            return v
        total += v or 0
    return total


def holds(document, check):
    path, sign, want = re.fullmatch(r"(.*?)(~|>=|!=|<|=)(.*)", check).groups()
    got = value(document, path)
    if sign == "~":
        number, _, tolerance = want.partition(":")
        return abs(got - float(number)) <= float(tolerance or 0.01) * abs(float(number)), got
    if sign in ("=", "!="):
        return (str(got) == want) == (sign == "="), got
    return (got >= float(want) if sign == ">=" else got < float(want)), got


def main():
    name, *checks = sys.argv[1:]
    document = json.load(sys.stdin)
    wrong = [(c, got) for c in checks for ok, got in [holds(document, c)] if not ok]
    for check, got in wrong:
        print(f"{name}: {check}: got {got}")
    if not wrong:
        print(f"{name} holds")


main()

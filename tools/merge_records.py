"""Merges JSON files into one JSON array, in the order given: merge_records.py OUT.json FILE..."""
import json
import sys


def main():
    out, *paths = sys.argv[1:]
    records = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            records.append(json.load(f))
    with open(out, "w", encoding="utf-8") as f:
        json.dump(records, f, ensure_ascii=False, separators=(",", ":"))


main()

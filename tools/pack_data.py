"""Packs the records of data/ for embedding: pack_data.py OUT_FOLDER FILE.json...

White space goes, but each record of a list stands on a line of its own, so that one can be found
and read without the others. The files of one folder become one file, whose list is theirs in
order. Nothing else changes: the reader of a user's own files reads the result."""
import json
import os
import sys


def packed(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write(folder, name, doc):
    members = []
    for key, value in doc.items():
        if isinstance(value, list):
            value = "[\n" + ",\n".join(packed(v) for v in value) + "\n]"
        else:
            value = packed(value)
        members.append(packed(key) + ":" + value)
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as f:
        f.write("{" + ",\n".join(members) + "}")


def main():
    out, *paths = sys.argv[1:]
    folders = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
        folder = os.path.basename(os.path.dirname(path))
        if folder == "data":
            write(out, os.path.splitext(os.path.basename(path))[0], doc)
        elif folder in folders:
            folders[folder][folder] += doc[folder]
        else:
            folders[folder] = doc
    for folder, doc in folders.items():
        write(out, folder, doc)


main()

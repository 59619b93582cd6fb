"""Prints the names in a JSON document with the kind of each value: what scripts rely on."""
import json
import sys


def kind(value):
    if value is None:
        return "null"
    return {bool: "bool", int: "number", float: "number", str: "text"}[type(value)]


def walk(path, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            walk(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list):
        if value:
            walk(path + "[]", value[0])
        else:
            print(f"{path}[] empty")
    else:
        print(path, kind(value))


walk("", json.load(sys.stdin))

"""pick.py PATH...: prints members of a JSON document; numbers with four digits."""
import json
import sys


def short(value):
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [short(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


document = json.load(sys.stdin)
for path in sys.argv[1:]:
    value = document
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    print(path, json.dumps(short(value), ensure_ascii=False, indent=1))

"""Counts the instructions of the main commands under callgrind and compares them with
bench/budgets.json: bench/budgets.py [TRIVET]. Needs valgrind; prints what it found either way."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SLACK = 1.10


def count(trivet, args):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", trivet, *args]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", run.stderr)
    return int(found.group(1)) if found else None


def main():
    trivet = sys.argv[1] if len(sys.argv) > 1 else str(HERE.parent / "build/release/cli/trivet")
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return 0
    over = 0
    for run in json.loads((HERE / "budgets.json").read_text())["runs"]:
        got = count(trivet, run["args"])
        over += got is None or got > run["instructions"] * SLACK
        figures = f"{got:,} of {run['instructions']:,}" if got else "failed"
        print(f"{run['name']}: {figures}")
    return 1 if over else 0


sys.exit(main())

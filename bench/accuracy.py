"""Writes the tables of docs/accuracy.md: accuracy.py TRIVET [--measured DIR]

Runs `trivet validate` over every file of measurements, twice: by source (the table that is read
first) and by the program's own groups (every group). Replaces what stands behind the line
"<!-- tables -->" in docs/accuracy.md. Skips with a message where the measurements are absent."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
MARK = "<!-- tables -->"
BY = {"training": "repo,task,fold,flagged", "inference": "repo,engine,fold,flagged",
      "collectives": "gpu,gpus,fold,flagged"}


def run(trivet, path, by):
    words = [trivet, "validate", str(path), "--json"] + (["--by", by] if by else [])
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def percent(v, sign=False):
    return f"{100 * v:{'+' if sign else ''}.1f}"


def table(answer):
    lines = ["| metric | group | n | median % | p90 % | p95 % | bias % | outside % |",
             "| --- | --- | --: | --: | --: | --: | --: | --: |"]
    for g in answer["groups"]:
        numbers = [percent(g[k]) for k in ("median", "p90", "p95")]
        numbers += [percent(g["bias"], True), percent(g["outside_interval"])]
        lines.append(f"| {g['metric']} | {g['group']} | {g['n']} | " + " | ".join(numbers) + " |")
    return lines


def skipped(answer):
    lines = ["| skipped, because | rows |", "| --- | --: |"]
    return lines + [f"| {s['reason']} | {s['n']} |" for s in answer["skipped"]]


def main():
    trivet = sys.argv[1]
    measured = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "../shared/data/measured")
    if not measured.is_dir():
        print(f"skipped: {measured} is not there")
        return
    out = []
    files = sorted(measured.glob("*.csv.gz"), key=lambda p: (p.name.startswith("ops"), p.name))
    for path in files:
        name = path.name.removesuffix(".csv.gz")
        kind = next((v for k, v in BY.items() if name.startswith(k)), "repo,dtype,fold,flagged")
        answer = run(trivet, path, kind)
        judged = sum(g["n"] for g in answer["groups"])
        out += ["", f"## {name}, by source", ""]
        out += [f"{judged} of {answer['rows']} rows predicted.", ""]
        out += table(answer)
        if answer["skipped"]:
            out += [""] + skipped(answer)
    for path in files:
        name = path.name.removesuffix(".csv.gz")
        out += ["", f"## {name}, every group", ""] + table(run(trivet, path, None))
    text = PAGE.read_text().split(MARK)[0] + MARK + "\n" + "\n".join(out) + "\n"
    PAGE.write_text(text)


main()

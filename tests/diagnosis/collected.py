"""The doctor on collected real inputs whose right answers are known: collected.py TRIVET

Reads ../shared/data/diagnosis/INDEX.jsonl where it is there. Of each file: every canonical fact
within its tolerance, the first finding among the right ones, none of the forbidden ones above
info, and nothing above info where nothing is wrong. Prints a JSON list of {name, state, lines};
the last entries count per kind."""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT.parent / "shared/data/diagnosis"

# Answers that the collection took from the thread around a file: they do not stand in it.
ELSEWHERE = {("smi-fail-mismatch-570.txt", "real_library"),
             ("smi-fail-mismatch-570.txt", "kernel_module"),
             ("smi-fail-unknown-error.txt", "cause")}


def within(want, got, tolerance):
    """Numbers within the tolerance; lists item by item, maps key by key; more than asked for is
    no mistake."""
    if isinstance(want, dict):
        each = tolerance if isinstance(tolerance, dict) else {}
        return isinstance(got, dict) and all(
            k in got and within(v, got[k], each.get(k)) for k, v in want.items())
    if isinstance(want, list):
        each = tolerance if isinstance(tolerance, list) else []
        each = each + [None] * (len(want) - len(each))
        enough = isinstance(got, list) and (len(got) >= len(want) if want else not got)
        return enough and all(within(w, g, t) for w, g, t in zip(want, got, each))
    if isinstance(want, (int, float)) and not isinstance(want, bool):
        if not isinstance(got, (int, float)) or isinstance(got, bool):
            return False
        return abs(want - got) <= (tolerance or abs(want) * 1e-9) + 1e-12
    return type(want) is type(got) and want == got


def doctor(trivet, path):
    done = subprocess.run([trivet, "doctor", "--json", str(path)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    if done.returncode:
        return None, done.stderr.decode(errors="replace").splitlines()[:20]
    return json.loads(done.stdout), []


def judge(trivet, row, counts):
    answer, lines = doctor(trivet, FOLDER / row["file"])
    if answer is None:
        return lines
    wrong = []
    for key, want in row["canon"].items():
        counts["facts"] += 1
        got = answer["facts"].get(key, "absent")
        if key in answer["facts"] and within(want, got, row["tol"].get(key)):
            counts["right"] += 1
        elif (row["file"], key) not in ELSEWHERE:
            wrong.append(f"{key}: want {json.dumps(want)}, got {json.dumps(got)[:300]}")
    ids = [f["id"] for f in answer["findings"]]
    above = [f["id"] for f in answer["findings"] if f["severity"] != "info"]
    if row["finding"] and (not ids or ids[0] not in row["finding"]):
        wrong.append(f"first of {ids[:5]}, want one of {row['finding']}")
    if row["healthy"] and above:
        wrong.append(f"healthy, but {above}")
    if set(above) & set(row["forbidden"]):
        wrong.append(f"forbidden: {sorted(set(above) & set(row['forbidden']))}")
    return wrong


def main():
    trivet = str(pathlib.Path(sys.argv[1]).resolve())
    index = FOLDER / "INDEX.jsonl"
    if not index.exists():
        print(json.dumps([{"name": "collected inputs", "state": "skipped",
                           "lines": [f"{index} is not there"]}]))
        return
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    kinds = collections.defaultdict(collections.Counter)
    cases = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tallies = [collections.Counter() for _ in rows]
        for row, tally, wrong in zip(rows, tallies, pool.map(
                lambda pair: judge(trivet, *pair), zip(rows, tallies))):
            cases.append({"name": f"collected: {row['file']}",
                          "state": "failed" if wrong else "ok", "lines": wrong})
            kinds[row["kind"]].update(tally, files=1, well=int(not wrong))
    for kind, n in sorted(kinds.items()):
        print(f"{kind}: {n['right']} of {n['facts']} facts, "
              f"{n['well']} of {n['files']} files right", file=sys.stderr)
    print(json.dumps(cases))


main()

"""Holds the doctor's rules to what belongs to them: check_rules.py [--update] TRIVET [ID...]

Every rule has its texts, a source, at least one step, a fixture that makes it speak
(tests/rules/ID/fire*) and one that is near it and must not (tests/rules/ID/quiet*); a fixture is a
file, or a folder of files that are read together. docs/rules/ID.md is what the rule's row and the
run of its first fixture say. --update writes those pages. Prints a JSON list of
{name, state, lines}."""
import concurrent.futures
import difflib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/rules"
FIXTURES = ROOT / "tests/rules"


def trivet_of(words):
    return [w for w in words if not w.startswith("-")]


def run(trivet, *words):
    done = subprocess.run([trivet, *words], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False,
                          env={"LC_ALL": "C.UTF-8", "COLUMNS": "100", "PATH": "/usr/bin:/bin"})
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


def findings(trivet, path):
    code, out, err = run(trivet, "doctor", "--json", str(path.relative_to(ROOT)))
    if code:
        return None, [f"status {code}", *err.splitlines()[:20]]
    return json.loads(out)["findings"], []


def judge_fixture(trivet, rule, path, fires):
    seen, lines = findings(trivet, path)
    if seen is None:
        return lines
    mine = [f for f in seen if f["id"] == rule["id"]]
    said = ", ".join(f"{f['id']} ({f['severity']})" for f in seen) or "nothing"
    if fires and not mine:
        return [f"{path.name}: must find {rule['id']}, found {said}"]
    if fires and not all(f["evidence"] for f in mine):
        return [f"{path.name}: {rule['id']} without evidence"]
    if not fires and any(f["severity"] != "info" or rule["severity"] == "info" for f in mine):
        return [f"{path.name}: must not find {rule['id']}, found {said}"]
    return []


def fixtures(rule, kind):
    return sorted((FIXTURES / rule["id"]).glob(f"{kind}*"))


def judge(trivet, rule):
    wrong = [f"no {key}" for key in ("title", "cause", "decided", "source") if not rule[key]]
    if not rule["steps"]:
        wrong.append("no step")
    for kind, fires in (("fire", True), ("quiet", False)):
        paths = fixtures(rule, kind)
        if not paths:
            wrong.append(f"no fixture tests/rules/{rule['id']}/{kind}*")
        for path in paths:
            wrong += judge_fixture(trivet, rule, path, fires)
    return wrong


# ---- pages ----

def steps_of(rule):
    for step in rule["steps"]:
        if step["why"]:
            yield f"- {step['why']}"
        if step["command"]:
            yield ("  " if step["why"] else "- ") + f"`{step['command']}`"
        if step["undo"]:
            yield f"  Undo: `{step['undo']}`"


def source_of(rule):
    return f"<{rule['source']}>" if rule["source"].startswith("http") else rule["source"]


def page(trivet, rule, titles):
    lines = [f"# {rule['id']}: {rule['title']}", "",
             f"Severity {rule['severity']}, confidence {rule['confidence']}.", "",
             "## What happens", "", rule["cause"], "",
             "## How it is decided", "", rule["decided"], ""]
    if rule["unless"]:
        lines += ["## What speaks against it", "", rule["unless"], ""]
    lines += ["## What to do", "", *steps_of(rule), ""]
    if rule["outranks"]:
        follow = [f"[{i}](./{i}.md) {titles.get(i, '')}" for i in rule["outranks"].split()]
        lines += ["## What follows from it", "", *[f"- {f}" for f in follow], ""]
    lines += ["## Source", "", source_of(rule), ""]
    paths = fixtures(rule, "fire")
    if paths:
        name = str(paths[0].relative_to(ROOT))
        _, out, _ = run(trivet, "doctor", name)
        lines += ["## Example", "", "```console", f"$ trivet doctor {name}",
                  *out.rstrip("\n").splitlines(), "```", ""]
    return "\n".join(lines)


def index(rules):
    lines = ["# The doctor's rules", "",
             f"{len(rules)} rules, in the order in which they are judged. "
             "`trivet doctor --explain ID` shows the same text, in Chinese as well.", ""]
    group = None
    for rule in rules:
        if rule["group"] != group:
            group = rule["group"]
            lines += ["", f"## {group}", "", "| id | what | severity | confidence | source |",
                      "| --- | --- | --- | --- | --- |"]
        lines.append(f"| [{rule['id']}](./{rule['id']}.md) | {rule['title']} | {rule['severity']} |"
                     f" {rule['confidence']} | {source_of(rule)} |")
    return "\n".join(lines) + "\n"


def held(path, want, update):
    got = path.read_text() if path.exists() else ""
    if got == want:
        return []
    if update:
        path.write_text(want)
        return []
    return list(difflib.unified_diff(got.splitlines(), want.splitlines(), str(path.name), "printed",
                                     lineterm="", n=1))[:30]


def main():
    update = "--update" in sys.argv
    trivet, *only = trivet_of(sys.argv[1:])
    trivet = str(pathlib.Path(trivet).resolve())
    rules = json.loads(run(trivet, "doctor", "--list", "--json")[1])
    titles = {r["id"]: r["title"] for r in rules}
    cases = []

    def case(name, lines):
        cases.append({"name": name, "state": "failed" if lines else "ok", "lines": lines})

    case("rules: ids stand once", [] if len(titles) == len(rules) else ["an id stands twice"])
    chosen = [r for r in rules if not only or r["id"] in only]
    PAGES.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda r: (r, judge(trivet, r), page(trivet, r, titles)), chosen)
        for rule, wrong, want in done:
            case(f"rule {rule['id']}", wrong)
            case(f"docs/rules/{rule['id']}.md",
                 held(PAGES / f"{rule['id']}.md", want, update))
    if not only:
        case("docs/rules/README.md", held(PAGES / "README.md", index(rules), update))
        known = set(titles) | {"README"}
        case("docs/rules: no pages of rules that are gone",
             [p.name for p in PAGES.glob("*.md") if p.stem not in known])
        case("tests/rules: no fixtures of rules that are gone",
             [p.name for p in FIXTURES.glob("*") if p.name not in known])
    print(json.dumps(cases))


main()

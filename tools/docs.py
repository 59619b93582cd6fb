"""Runs every command line of the documents: docs.py [--update] TRIVET

In a fenced block a line `$ trivet ...` (or `$ ... | trivet ...`) is run from the repository's
root. What follows up to the next `$` or the fence must be what it prints; a line `...` stands for
any lines. Without lines behind it, only its success is asked for; `# exit N` at the end of the
line asks for that status. A command that names ../shared is skipped where that is absent.
--update writes what is printed (in the READMEs also where nothing was written yet). Prints one
JSON list of {name, state, lines}."""
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def documents():
    paths = list(ROOT.glob("*.md")) + list((ROOT / "docs").rglob("*.md"))
    # The pages of the rules are made, and held whole, by tools/check_rules.py.
    return sorted(p for p in paths if p.parent != ROOT / "docs/rules")


def commands(lines):
    """(index of the command, index behind its output) for each command of a document."""
    fenced, start = False, None
    for i, line in enumerate(lines):
        fence = line.startswith("```")
        if start is not None and (fence or line.startswith("$ ")):
            yield start, i
            start = None
        if fence:
            fenced = not fenced
        elif fenced and line.startswith("$ ") and re.search(r"\btrivet\b", line):
            start = i


def run(trivet, line):
    words = re.sub(r"\s+# exit \d+$", "", line[2:])
    env = {"PATH": f"{pathlib.Path(trivet).parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
           "COLUMNS": "100", **{k: v for k, v in os.environ.items() if k.startswith("ASAN")}}
    done = subprocess.run(["bash", "-c", words], cwd=ROOT, env=env, timeout=120, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace").rstrip("\n").splitlines()


def matches(want, got):
    """`...` alone on a line stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if w.strip() == "..." else re.escape(w) + r"\n" for w in want)
    return re.fullmatch(pattern, "".join(g + "\n" for g in got)) is not None


def judge(trivet, lines, start, end):
    line = lines[start]
    want = list(lines[start + 1:end])
    while want and not want[-1].strip():
        want.pop()
    status = re.search(r"# exit (\d+)$", line)
    code, got = run(trivet, line)
    if code != (int(status.group(1)) if status else 0):
        return "failed", [f"status {code}"] + got[-20:], got
    if want and not matches(want, got):
        diff = difflib.unified_diff(want, got, "written", "printed", lineterm="")
        return "failed", list(diff), got
    return "ok", [], got


def document(trivet, path, rewrite):
    lines = path.read_text(encoding="utf-8").splitlines()
    results, fresh, last = [], [], 0
    for start, end in commands(lines):
        name = f"{path.relative_to(ROOT)}:{start + 1}: {lines[start][2:]}"
        fresh += lines[last:start + 1]
        last = start + 1
        if "../shared" in lines[start] and not (ROOT / "../shared").exists():
            results.append({"name": name, "state": "skipped", "lines": ["../shared is not there"]})
            continue
        state, wrong, got = judge(trivet, lines, start, end)
        blank = all(not line.strip() for line in lines[start + 1:end])
        fill = rewrite and path.name.startswith("README") and blank and state == "ok"
        if fill or (rewrite and state == "failed" and not wrong[0].startswith("status")):
            fresh += got + ([""] if end < len(lines) and lines[end].startswith("$ ") else [])
            last = end
        results.append({"name": name, "state": state, "lines": wrong})
    fresh += lines[last:]
    if rewrite and fresh != lines:
        path.write_text("\n".join(fresh) + "\n", encoding="utf-8")
    return results


def main():
    words = [w for w in sys.argv[1:] if w != "--update"]
    results = []
    for path in documents():
        results += document(str(pathlib.Path(words[0]).resolve()), path, "--update" in sys.argv)
    print(json.dumps(results, ensure_ascii=False))


main()

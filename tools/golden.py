"""Golden tests of the command line: golden.py [--update] [--jobs N] TRIVET [CASE...]

tests/cli/CASE/cmd    the words behind `trivet`, as a shell line run in the repository's root
tests/cli/CASE/out    what standard output must be; a missing file means empty
tests/cli/CASE/err    likewise for standard error
tests/cli/CASE/exit   the exit status; a missing file means 0
tests/cli/CASE/needs  paths, one a line; the case is skipped where one is absent
tests/cli/CASE/in     what is given to standard input

--update rewrites out, err and exit. In cmd, $TRIVET is the program (put in front unless the line
uses it) and $CASE the case's folder. Every case runs with an English locale, no HOME, 80 columns
and --today fixed by the line itself where it matters."""
import concurrent.futures
import difflib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cli"


def read(path):
    return path.read_bytes() if path.exists() else b""


def environment(trivet, case):
    keep = {k: v for k, v in os.environ.items() if k.startswith(("ASAN", "UBSAN", "LSAN", "LLVM"))}
    return {**keep, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LANG": "en_US.UTF-8",
            "COLUMNS": "80", "TRIVET": trivet, "CASE": str(case.relative_to(ROOT))}


def missing_need(case):
    for line in read(case / "needs").decode().split():
        if not (ROOT / line).exists():
            return line
    return None


def run(trivet, case):
    line = read(case / "cmd").decode().strip()
    if "$TRIVET" not in line:
        line = '"$TRIVET" ' + line
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment(trivet, case),
                          input=read(case / "in"), capture_output=True, timeout=120, check=False)
    return {"out": done.stdout, "err": done.stderr,
            "exit": b"" if done.returncode == 0 else b"%d\n" % done.returncode}


def differences(case, got):
    lines = []
    for name, have in got.items():
        want = read(case / name)
        if name == "exit" and want.strip() in (b"", b"0"):
            want = b""
        if want != have:
            lines += difflib.unified_diff(want.decode(errors="replace").splitlines(),
                                          have.decode(errors="replace").splitlines(),
                                          f"{case.name}/{name} (wanted)",
                                          f"{case.name}/{name} (got)", lineterm="")
            if not lines:
                lines = [f"{case.name}/{name}: differs in its last newline or in invalid bytes"]
    return lines


def update(case, got):
    for name, have in got.items():
        path = case / name
        if have:
            path.write_bytes(have)
        elif path.exists():
            path.unlink()


def one(trivet, case, rewrite):
    """(case name, "ok" | "skipped" | "failed" | "updated", lines)"""
    if not (case / "cmd").exists():
        return case.name, "failed", [f"{case.name}: no cmd"]
    absent = missing_need(case)
    if absent:
        return case.name, "skipped", [f"{case.name}: {absent} is not there"]
    try:
        got = run(trivet, case)
    except subprocess.TimeoutExpired:
        return case.name, "failed", [f"{case.name}: no end after 120 s"]
    lines = differences(case, got)
    if not lines:
        return case.name, "ok", []
    if rewrite:
        update(case, got)
        return case.name, "updated", lines
    return case.name, "failed", lines


def run_all(trivet, names=(), rewrite=False, jobs=2):
    cases = sorted(p for p in CASES.iterdir() if p.is_dir() and (not names or p.name in names))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda case: one(trivet, case, rewrite), cases))


def main():
    words = sys.argv[1:]
    rewrite = "--update" in words
    words = [w for w in words if w != "--update"]
    trivet, *names = words
    results = run_all(str(pathlib.Path(trivet).resolve()), names, rewrite)
    counts = {}
    for _, state, lines in results:
        counts[state] = counts.get(state, 0) + 1
        for line in lines:
            print(line)
    print(", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "no cases")
    sys.exit(1 if counts.get("failed") else 0)


if __name__ == "__main__":
    main()

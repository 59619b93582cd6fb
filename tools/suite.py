"""Runs the tests and checks, counts every case and ends with one line `N passed, N failed`.

suite.py --build FOLDER [--valgrind] PART...
Parts: unit fuzz golden format layers style headers closure docs rules collected all"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import golden

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
PARTS = ["format", "layers", "style", "headers", "closure", "unit", "fuzz", "golden", "docs",
         "rules", "collected"]
TAP = re.compile(r"^(ok|not ok) \d+ - (.*?)(\s+# SKIP\b.*)?$")


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def case(self, name, state, lines=()):
        if state in ("ok", "updated"):
            self.passed += 1
        elif state == "skipped":
            self.skipped += 1
            print(f"skipped: {name}: {' '.join(lines)}")
        else:
            self.failed += 1
            print(f"FAILED: {name}")
            for line in lines:
                print(f"    {line}")


def run(words, timeout=600, **more):
    try:
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout, check=False, **more)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace") + "\nno end in time\n"


def tests_of(build, suite):
    code, out = run(["/usr/bin/meson", "introspect", "--tests", build])
    if code:
        raise SystemExit(out)
    return [t for t in json.loads(out) if any(s.endswith(suite) for s in t["suite"])]


def run_tap(test, valgrind):
    """Runs one test program: [(name, state, lines)]. A program that ends early or fails outside a
    case is a failed case of its own."""
    words = list(test["cmd"])
    if valgrind:
        words = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full"] + words
    env = {**os.environ, **test["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    code, out = run(words, env=env)
    cases, planned, remarks = [], None, []
    for line in out.splitlines():
        match = TAP.match(line)
        if match:
            state = "skipped" if match.group(3) else "ok"
            state = "failed" if match.group(1) == "not ok" else state
            cases.append((f"{test['name']}: {match.group(2)}", state, remarks))
            remarks = []
        elif re.match(r"^1\.\.\d+$", line):
            planned = int(line[3:])
        elif line.startswith("skipped: "):
            print(f"{test['name']}: {line}")
        elif not re.match(r"^# ok - ", line):
            remarks.append(line)
    failed = any(state == "failed" for _, state, _ in cases)
    if planned is None or len(cases) != planned or (code and not failed):
        cases.append((f"{test['name']}: the program itself (status {code})", "failed",
                      out.splitlines()[-60:]))
    return cases


def part_programs(tally, options, suite):
    tests = tests_of(options.build, suite)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for cases in pool.map(lambda t: run_tap(t, options.valgrind), tests):
            for case in cases:
                tally.case(*case)


def part_unit(tally, options):
    part_programs(tally, options, "unit")


def part_fuzz(tally, options):
    part_programs(tally, options, "fuzz")


def part_golden(tally, options):
    trivet = str((ROOT / options.build / "cli" / "trivet").resolve())
    for name, state, lines in golden.run_all(trivet):
        tally.case(f"golden: {name}", state, lines)


def script(tally, name, words):
    code, out = run(words)
    tally.case(name, "ok" if code == 0 else "failed", out.splitlines()[:100])


def part_layers(tally, _):
    script(tally, "layers", [PYTHON, "tools/check_layers.py"])


def part_style(tally, _):
    script(tally, "style", [PYTHON, "tools/check_style.py"])


def part_closure(tally, options):
    script(tally, "messages", [PYTHON, "tools/check_messages.py"])
    script(tally, "sections", [PYTHON, "tools/check_sections.py"])
    script(tally, "rows and names", [PYTHON, "tools/check_closure.py", options.build])


def sources(*patterns):
    out = []
    for pattern in patterns:
        out += sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern))
    return out


def part_format(tally, _):
    paths = sources("src/**/*.[ch]", "cli/*.[ch]", "include/*.h", "tests/**/*.[ch]")
    code, out = run(["clang-format-14", "--dry-run", "--Werror", *paths])
    named = [line for line in out.splitlines() if "error:" in line]
    tally.case("layout (./dev fmt mends it)", "ok" if code == 0 else "failed", named[:40])


def compiles(words, text):
    with tempfile.NamedTemporaryFile("w", suffix=".c", dir=ROOT / "build") as f:
        f.write(text)
        f.flush()
        return run([*words, "-Iinclude", "-Isrc", "-fsyntax-only", f.name])


def part_headers(tally, _):
    c17 = ["gcc", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    jobs = [(name, c17, f'#include "{name.split("/", 1)[1]}"\nint main(void) {{ return 0; }}\n')
            for name in sources("include/*.h", "src/**/*.h")]
    for compiler in ("g++", "clang-14"):
        words = [compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c++", "-std=c++11"]
        jobs.append((f"include/trivet.h ({compiler}, C++)", words,
                     '#include "trivet.h"\nint main() { return 0; }\n'))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job, (code, out) in zip(jobs, pool.map(lambda j: compiles(j[1], j[2]), jobs)):
            tally.case(f"compiles alone: {job[0]}", "ok" if code == 0 else "failed",
                       out.splitlines()[:20])


def listed(tally, options, name):
    """A script that prints a JSON list of cases; what it says beside that is shown."""
    words = [PYTHON, "-B", name, str(ROOT / options.build / "cli" / "trivet")]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=1200, check=False)
    print(done.stderr.decode(errors="replace"), end="")
    try:
        for case in json.loads(done.stdout):
            tally.case(case["name"], case["state"], case["lines"])
    except ValueError:
        tally.case(f"{name} (status {done.returncode})", "failed",
                   done.stdout.decode(errors="replace").splitlines()[-40:])


def part_docs(tally, options):
    listed(tally, options, "tools/docs.py")


def part_rules(tally, options):
    listed(tally, options, "tools/check_rules.py")


def part_collected(tally, options):
    listed(tally, options, "tests/diagnosis/collected.py")
    listed(tally, options, "tests/diagnosis/cases.py")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--valgrind", action="store_true")
    parser.add_argument("parts", nargs="+", choices=PARTS + ["all"])
    options = parser.parse_args()
    tally = Tally()
    parts = PARTS if "all" in options.parts else options.parts
    for part in parts:
        begin = time.monotonic()
        globals()[f"part_{part}"](tally, options)
        print(f"{part}: {time.monotonic() - begin:.1f} s")
    if tally.skipped:
        print(f"{tally.skipped} skipped")
    print(f"{tally.passed} passed, {tally.failed} failed")
    sys.stdout.flush()
    sys.exit(1 if tally.failed else 0)


main()

"""Holds what no compiler holds: lengths, names, functions that are not used here."""
import re
import sys

from sources import files, line_of, text, without_comments_and_strings

MAX_FUNCTION_LINES = 80
MAX_FILE_LINES = 800
MAX_COLUMNS = 100

BANNED = re.compile(r"\b(strtok|strtok_r|sscanf|fscanf|scanf|atoi|atol|atof|strtol|strtoll|sprintf|"
                    r"vsprintf|strcpy|strcat|strncpy|strncat|stpcpy|gets|localtime|gmtime|ctime|"
                    r"asctime|alloca|setlocale)\s*\(")
HEAP = re.compile(r"\b(malloc|calloc|realloc|free|strdup|strndup|asprintf|vasprintf)\s*\(")
SURROUNDINGS = re.compile(r"\b(getenv|secure_getenv|time|clock|clock_gettime|gettimeofday|printf|"
                          r"puts|putchar|perror|exit|_exit|abort)\s*\(")
UNIT = re.compile(r"\b\w+_(?:kb|mb|gb|tb|kib|mib|gib|tib|ms|us|ns|tflop|tflops|gflops|mflops|gbps|"
                  r"mbps|mhz|ghz|kw|mw)\b", re.I)
# Profilers' time stamps are whole nanoseconds: a double in seconds would lose them after 104 days.
STAMP = re.compile(r"_ns$", re.I)
STAMP_FOLDERS = ("src/trace", "src/base")
UNIT_FOLDERS = ("src", "cli", "include")
SNAKE = re.compile(r"^[a-z0-9]+(_[a-z0-9]+)*\.(c|h|py)$")


def functions(source):
    """(first line, body lines) of every function: with Linux braces both braces stand at the left
    margin."""
    start = None
    lines = source.splitlines()
    for i, line in enumerate(lines):
        if line == "{" and i and lines[i - 1].rstrip().endswith(")"):
            start = i
        elif line.startswith("}") and start is not None:
            yield start, i - start - 1
            start = None


def check_text(path, source, wrong):
    lines = source.splitlines()
    # Tables of numbers are as long as what was measured.
    if len(lines) > MAX_FILE_LINES and not path.stem.endswith("_tables"):
        wrong.append(f"{path}: {len(lines)} lines, more than {MAX_FILE_LINES}")
    for i, line in enumerate(lines, 1):
        if line != line.rstrip():
            wrong.append(f"{path}:{i}: space at the end of the line")
        if "\t" in line:
            wrong.append(f"{path}:{i}: tab")
        if len(line) > MAX_COLUMNS:
            wrong.append(f"{path}:{i}: {len(line)} columns, more than {MAX_COLUMNS}")
    if source and not source.endswith("\n"):
        wrong.append(f"{path}: no newline at the end")


def check_code(path, source, wrong):
    bare = without_comments_and_strings(source)

    def flag(pattern, why):
        for match in pattern.finditer(bare):
            name = match.group(0).rstrip("( ")
            if pattern is UNIT and STAMP.search(name) and str(path.parent) in STAMP_FOLDERS:
                continue
            wrong.append(f"{path}:{line_of(bare, match.start())}: {name}: {why}")

    flag(BANNED, "not used here")
    if path.parts[0] == "src":
        if path.name != "arena.c":
            flag(HEAP, "only base/arena.c takes memory from the system")
            flag(SURROUNDINGS, "nothing below a door reads the surroundings, prints or exits")
    if path.parts[0] in UNIT_FOLDERS:
        # base/unit.h is the one place that knows factors between units.
        if path.stem != "unit":
            flag(UNIT, "inside are SI base units only")
    for start, length in functions(source):
        if length > MAX_FUNCTION_LINES:
            wrong.append(f"{path}:{start}: a function of {length} lines, more than "
                         f"{MAX_FUNCTION_LINES}")
    if path.suffix == ".c" and path.parts[0] != "tests" and not source.startswith("/*"):
        wrong.append(f"{path}: says at its top neither what it knows nor what it does not")


def check_names(paths, wrong):
    seen = {}
    for path in paths:
        if not SNAKE.match(path.name):
            wrong.append(f"{path}: a file name is snake_case")
        if path.name in seen:
            wrong.append(f"{path}: {seen[path.name]} has the same name")
        seen[path.name] = path


def main():
    wrong = []
    code = files(["src", "cli", "include", "tests"], {".c", ".h"})
    scripts = files(["tools", "tests", "bench"], {".py"})
    for path in code + scripts:
        source = text(path)
        check_text(path, source, wrong)
        if path.suffix != ".py":
            check_code(path, source, wrong)
    check_names(code + scripts, wrong)
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()

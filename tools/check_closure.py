"""Every row has what belongs to it: check_closure.py BUILD

commands: tests/cli/NAME-*, docs/commands/NAME.md, and no documents of commands that are gone;
every test is in its list, every fuzz target has a corpus; every exported symbol of the library
has a known prefix."""
import re
import subprocess
import sys

from sources import ROOT, text

PREFIXES = ("tv_", "trivet_")


def listed(build, name):
    match = re.search(rf"^{name} = \[(.*?)\]", text(build), re.M | re.S)
    return re.findall(r"'([^']+)'", re.sub(r"#[^\n]*", "", match.group(1))) if match else []


def check_commands(wrong):
    commands = [name.replace("_", "-") for name in listed("src/meson.build", "commands")]
    for name in commands:
        if not list((ROOT / "tests/cli").glob(f"{name}-*")):
            wrong.append(f"command {name}: no golden test tests/cli/{name}-*")
        if not (ROOT / f"docs/commands/{name}.md").exists():
            wrong.append(f"command {name}: no docs/commands/{name}.md")
    for path in sorted((ROOT / "docs/commands").glob("*.md")):
        if path.stem not in commands:
            wrong.append(f"docs/commands/{path.name}: no such command")
    if commands != list(dict.fromkeys(commands)):
        wrong.append("src/meson.build: a command stands twice")


def check_tests(wrong):
    """A test that stands in no list is never run."""
    for folder, words, suffix in (("unit", "units", "_test"), ("fuzz", "targets", "_fuzz")):
        names = listed(f"tests/{folder}/meson.build", words)
        for path in sorted((ROOT / "tests" / folder).glob(f"*{suffix}.c")):
            if path.stem.removesuffix(suffix) not in names:
                wrong.append(f"{path.relative_to(ROOT)}: not in the list {words}, so never run")


def check_fuzz(wrong):
    for path in sorted((ROOT / "tests/fuzz").glob("*_fuzz.c")):
        name = path.stem.removesuffix("_fuzz")
        if not list((ROOT / "tests/fuzz/corpus" / name).glob("*")):
            wrong.append(f"fuzz target {name}: no corpus")


def check_symbols(build, wrong):
    out = subprocess.run(["nm", "-g", "--defined-only", str(ROOT / build / "src/libtrivet.a")],
                         capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        parts = line.split()
        # Sanitizers add symbols of their own (__odr_asan...).
        if len(parts) == 3 and not parts[2].startswith(PREFIXES + ("__",)):
            wrong.append(f"exported symbol {parts[2]}: no known prefix")


def main():
    wrong = []
    check_commands(wrong)
    check_tests(wrong)
    check_fuzz(wrong)
    check_symbols(sys.argv[1], wrong)
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()

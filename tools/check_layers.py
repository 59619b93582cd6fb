"""Holds src/LAYERS: which folder may include from which. Prints every include that goes another
way."""
import re
import sys

from sources import ROOT, files, line_of, text, without_comments

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
PUBLIC = "trivet.h"


def allowed():
    rules = {}
    for line in text("src/LAYERS").splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, others = line.partition(":")
            rules[folder.strip()] = set(others.split()) | {folder.strip()}
    return rules


def cycles(rules):
    """A folder that may, over others, include from itself: the order would be none."""
    found = []
    for start in rules:
        seen, todo = set(), list(rules[start] - {start})
        while todo:
            folder = todo.pop()
            if folder == start:
                found.append(f"src/LAYERS: {start} reaches itself")
                break
            if folder not in seen:
                seen.add(folder)
                todo += rules.get(folder, set()) - {folder}
    return found


def judge(path, name, rules):
    """Why this include is wrong, or None."""
    top, folder = path.parts[0], path.parts[1] if len(path.parts) > 2 else ""
    if top == "cli":
        return None if name == PUBLIC else "a door includes trivet.h only"
    if top == "include":
        return "the public header stands alone"
    if name == PUBLIC:
        return None if folder == "command" else "only command/ knows the public header"
    if "/" not in name:
        here = ROOT / path.parent / name
        return None if here.exists() else "no such file beside it"
    target = name.split("/")[0]
    if folder not in rules:
        return f"src/LAYERS does not name {folder}"
    if target not in rules[folder]:
        return f"{folder} may not include from {target}"
    return None if (ROOT / "src" / name).exists() else "no such file"


def main():
    rules = allowed()
    wrong = cycles(rules)
    for path in files(["src", "cli", "include"], {".c", ".h"}):
        source = without_comments(text(path))
        for match in INCLUDE.finditer(source):
            why = judge(path, match.group(1), rules)
            if why:
                wrong.append(f"{path}:{line_of(source, match.start())}: {match.group(1)}: {why}")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()

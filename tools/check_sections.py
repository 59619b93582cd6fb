"""Every section of docs/model.md that the sources cite must be a heading there.

Cites look like: docs/model.md, "liveness walk"; and the ledger's lines name theirs. Prints what is
missing and exits with 1."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def headings():
    text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    return {h.strip().lower() for h in re.findall(r"^#+ (.*)$", text, flags=re.M)}


def cites(path):
    text = re.sub(r"\n\s*\*\s*", " ", path.read_text(encoding="utf-8"))
    found = re.findall(r'docs/model\.md,? (?:sections? )?"([^"]+)"', text)
    if path.name == "ledger.c":
        found += re.findall(r'^\s+"([a-zA-Z ]+)"\);$', text, flags=re.M)
    return found


def main():
    known = headings()
    missing = [f"{p.relative_to(ROOT)}: no section \"{c}\" in docs/model.md"
               for p in sorted((ROOT / "src").glob("*/*.[ch]")) for c in cites(p)
               if c.lower() not in known]
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


sys.exit(main())

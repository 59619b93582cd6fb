"""Writes docs/parameters.md: parameter counts of every collected configuration, ours beside the
collection's: parameters.py TRIVET [--models DIR]. Skips with a message where it is absent."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "parameters.md"
HEAD = """# Parameter counts

Every collected configuration that carries a count, read by trivet; written by
`bench/parameters.py`. *computed* is an independent formula's total (the collection says how),
*stated* the publisher's total over all files. Parts that are in the files but not in what runs
(prediction modules, towers) are listed apart.

| configuration | trivet | computed | difference | stated | parts apart |
| --- | --: | --: | --: | --: | --- |
"""

NOTE = """
What differs: encoders whose file is a head's class (albert, bert, deberta, distilbert) have that
head in place of, or beside, the pooler that the formula counts: with the parts on the right the
counts meet. Kimi-K2-Thinking's abridged configuration lacks the key behind 23,040 router biases.
The x4 upscaler's U-Net takes keys and values of ten blocks' first attention from the text
(`only_cross_attention`, 1,024 wide instead of 512): 5,242,880 more than the formula.
"""


def read(trivet, path):
    run = subprocess.run([trivet, "models", "show", str(path), "--json"], capture_output=True,
                         text=True, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def parts_of(model):
    parts = model.get("parts") or []
    return "; ".join(f"{p['name']} {p['params']:,}" for p in parts if p.get("params"))


def row(trivet, folder, entry):
    facts = entry["facts"]
    computed, stated = facts.get("computed_parameters"), facts.get("stated_parameters")
    model = read(trivet, folder / entry["path"])
    if model is None or not (computed or stated):
        return None
    ours = model["params"]
    gap = f"{100 * (ours / computed - 1):+.3f} %" if computed else ""
    gap = "0" if computed == ours else gap
    name = entry["path"].removeprefix("configs/").removesuffix("/config.json")
    cells = [name, f"{ours:,}", f"{computed:,}" if computed else "", gap,
             f"{stated:,}" if stated else "", parts_of(model)]
    return "| " + " | ".join(cells) + " |", computed == ours, computed


def main():
    trivet = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/cli/trivet")
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "../shared/data/models")
    if not (folder / "MANIFEST.jsonl").exists():
        print(f"skipped: {folder} is not there")
        return
    entries = [json.loads(line) for line in (folder / "MANIFEST.jsonl").open()]
    kinds = ("hf-config", "diffusers-config")
    rows = [row(trivet, folder, e) for e in entries if e["kind"] in kinds]
    rows = [r for r in rows if r]
    known = [r for r in rows if r[2]]
    exact = sum(r[1] for r in known)
    PAGE.write_text(HEAD + "\n".join(r[0] for r in rows)
                    + f"\n\n{exact} of {len(known)} equal the computed count to the last digit.\n"
                    + NOTE)
    print(f"{exact} of {len(known)}")


main()

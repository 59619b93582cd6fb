"""The nine end-to-end cases of ../shared/spec/cases.md, where that is there: cases.py TRIVET

Inputs are the blocks of that text, taken from it in place, and files of the collection; what must
be shown and what must not be said stands below. Prints a JSON list of {name, state, lines}."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared"

# number: files of the collection, names of the blocks in order, first finding (one of), must be
# found as well, must be shown (in text), must not be found above info.
CASES = {
    "1": {"blocks": ["topo.txt", "lspci.txt"], "env": True, "first": ["C01"],
          "show": ["00:03.1", "20:01.1", "SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd",
                   "setpci", "ECAP_ACS+6.w=0000", "NCCL_P2P_DISABLE=1"],
          "never": ["C17", "C30", "C05", "O28", "S08", "H21"]},
    "2": {"files": ["smi-fail-mismatch.txt"], "first": ["S01"],
          "show": ["460.56", "460.73.01", "2021-04-24", "06:50:54", "apt-mark hold"],
          "never": ["H13", "H25", "S07", "S08", "S05"]},
    "3": {"files": ["keyavg-dataloader-88pct.txt"], "first": ["D01"],
          "show": ["num_workers", "persistent_workers", "88.6", "9.2"],
          "never": ["C21", "C22", "C23", "T01"]},
    "4": {"files": ["topo-2gpu-soc-legacy.txt"], "blocks": ["bw.txt"], "first": ["C27"],
          "show": ["3.2", "5.1", "numactl"], "never": ["H05", "H07", "D07"]},
    "5": {"files": ["iostat-nvme-100util-not-saturated.txt"], "first": ["D08"],
          "show": ["util"], "ask": True, "never": ["D03", "D09"]},
    "6a": {"files": ["oom-pt-container-pid-is-self.txt"], "first": ["O05", "O03"],
           "also": ["O03", "O05"], "show": ["2752205"], "never": ["O04", "O01"]},
    "6b": {"files": ["oom-pt-two-process-lines.txt"], "first": ["O02", "O03"],
           "show": ["2006998"], "never": ["O01", "O04"]},
    "7a": {"files": ["oom-pt2-wddm-oversubscribed.txt"], "first": ["O06"],
           "show": ["17.2", "8.00 GiB", "Sysmem Fallback"], "never": ["O01"]},
    "7b": {"files": ["oom-pt24-wddm-allocated-gt-total.txt"], "first": ["O06"],
           "show": ["13.98", "8.00 GiB"], "never": ["O01"]},
    "8": {"files": ["paddle-perf-summary-reader.txt"], "blocks": ["model_summary.txt"],
          "first": ["D04"], "also": ["T06"], "show": ["num_workers", "4.5 %", "48"],
          "never": ["C21", "C22"]},
    "9a": {"files": ["smi-550-3090-mixed-caps.txt"], "first": ["H11", "H04"],
           "also": ["H11", "H04"], "show": ["185", "230", "350", "nvidia-smi -i 3 -pl 230"],
           "never": ["S01", "S08", "H15", "H16"]},
    "9b": {"files": ["dmon-pucm-ccpm-throttle.txt"], "first": ["H10"],
           "show": ["13", "120", "6"], "never": ["S01", "H15", "H11"]},
}


def blocks_of(text):
    """number of a case: its fenced blocks, in order."""
    parts = re.split(r"^## (\d+)\. ", text, flags=re.M)
    return {parts[i]: re.findall(r"^```\n(.*?)^```", parts[i + 1], re.M | re.S)
            for i in range(1, len(parts), 2)}


def environment_of(text):
    """The environment of case 1 stands in the running text: its words are the file."""
    match = re.search(r"^`env\.txt`: (.*)$", text, re.M)
    return match.group(1) + "\n" if match else ""


def inputs(number, case, text, folder):
    given = blocks_of(text).get(re.match(r"\d+", number).group(), [])
    paths = [SHARED / "data/diagnosis" / name for name in case.get("files", [])]
    for name, block in zip(case.get("blocks", []), given):
        path = pathlib.Path(folder) / name
        path.write_text(block)
        paths.append(path)
    if case.get("env"):
        path = pathlib.Path(folder) / "env.txt"
        path.write_text(environment_of(text))
        paths.append(path)
    return paths


def judge(trivet, number, case, text):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(p) for p in inputs(number, case, text, folder)]
        out = [subprocess.run([trivet, "doctor", *more, *paths], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False,
                              env={"LC_ALL": "C.UTF-8", "COLUMNS": "4000"}).stdout.decode()
               for more in (["--json"], [])]
    try:
        answer = json.loads(out[0])
    except ValueError:
        return out[0].splitlines()[:20]
    ids = [f["id"] for f in answer["findings"]]
    above = [f["id"] for f in answer["findings"] if f["severity"] != "info"]
    wrong = []
    if not ids or ids[0] not in case["first"]:
        wrong.append(f"first of {ids[:5]}, want one of {case['first']}")
    elif not any(e["line"] for e in answer["findings"][0]["evidence"]):
        wrong.append("the first finding cites no line")
    wrong += [f"{i} is not found" for i in case.get("also", []) if i not in ids]
    wrong += [f"not shown: {s}" for s in case["show"] if s not in out[1]]
    wrong += [f"must not be said: {i}" for i in case["never"] if i in above]
    if case.get("ask") and not answer["asks"]:
        wrong.append("asks for nothing")
    return wrong


def main():
    trivet = str(pathlib.Path(sys.argv[1]).resolve())
    source = SHARED / "spec/cases.md"
    if not source.exists():
        print(json.dumps([{"name": "end-to-end cases", "state": "skipped",
                           "lines": [f"{source} is not there"]}]))
        return
    text = source.read_text()
    cases = []
    for number, case in CASES.items():
        wrong = judge(trivet, number, case, text)
        cases.append({"name": f"end-to-end case {number}", "state": "failed" if wrong else "ok",
                      "lines": wrong})
    print(json.dumps(cases))


main()

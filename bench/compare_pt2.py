"""Holds what trivet reads in exported programs to what torch itself found in them (pt2_exports.py):
parameters, operators, the type and shape of every value, and FLOPs at the example's sizes.

    compare_pt2.py EXPORTS BUILD     with EXPORTS/exports.jsonl, BUILD/cli/trivet and
                                     BUILD/bench/program_dump

Parameters that share memory count once on both sides. torch.utils.flop_counter counts products and
convolutions; a recurrent kernel is counted by neither side in full."""

import collections
import json
import pathlib
import re
import subprocess
import sys

TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int64": "I64",
         "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
         "complex64": "C64"}
WITHIN = 0.02


def dump(tool, path):
    values, ops = {}, collections.Counter()
    out = subprocess.run([tool, path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        kind, rest = line.split(" ", 1)
        if kind == "node":
            ops[rest.split(" ")[0]] += 1
        if kind == "temp":
            name, dtype, dims = re.match(r"(\S+) (\S+) \[(.*)\]", rest).groups()
            values[name] = (dtype, dims)
    return values, ops


def worked_out(text):
    """A size at numbers that stand for the symbols, so that 2*s0 and s0*2 agree."""
    names = {n: 7 + 2 * len(n) + int(re.sub(r"\D", "", n) or 0)
             for n in re.findall(r"[su]\d+", text)}
    names["FloorDiv"] = lambda a, b: a // b
    names["Mod"] = names["PythonMod"] = lambda a, b: a % b
    names.update(Max=max, Min=min)
    return eval(text.replace("/", "//").replace("////", "//"), {}, names)  # our own files


def same_shape(mine, theirs):
    parts = re.split(r",(?![^(]*\))", mine) if mine else []
    return len(parts) == len(theirs) and all(
        worked_out(a) == worked_out(b) for a, b in zip(parts, theirs))


def size(tool, path, row):
    batch = row["inputs"][0][0]
    call = [tool, "size", path, "--task", "infer", "--gpu", "a100-80gb", "--precision", "fp32",
            "--batch", str(batch), "--json"]
    if len(row["inputs"][0]) == 2:
        call += ["--seq", str(row["inputs"][0][1])]
    return json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)


def main(exports, build):
    rows = [json.loads(line) for line in (exports / "exports.jsonl").read_text().splitlines()]
    rows = list({row["file"]: row for row in rows}.values())
    good = collections.Counter()
    shapes = of = 0
    for row in rows:
        path = exports / row["file"]
        values, ops = dump(build / "bench" / "program_dump", path)
        answer = size(build / "cli" / "trivet", path, row)
        want = collections.Counter({k: v for k, v in row["ops"].items() if "." in k})
        mine = {n: values[n] for n in row["shapes"] if n in values}
        right = sum(TYPES[row["shapes"][n][0]] == v[0] and same_shape(v[1], row["shapes"][n][1])
                    for n, v in mine.items())
        shapes, of = shapes + right, of + len(mine)
        flop = answer["time"]["flop"] / row["flops"] - 1
        checks = {"params": answer["model"]["params"] == row["params"],
                  "nodes": sum(ops.values()) >= sum(want.values()) and all(
                      ops[k] == v for k, v in want.items() if k.startswith("aten.")),
                  "shapes": right == len(mine), "flop": abs(flop) <= WITHIN}
        good.update(k for k, v in checks.items() if v)
        if not all(checks.values()):
            print(f"{row['file']}: {[k for k, v in checks.items() if not v]} "
                  f"params {answer['model']['params']:,} of {row['params']:,}, FLOP {flop:+.2%}")
    print(f"{len(rows)} programs: parameters {good['params']}, operators {good['nodes']}, shapes "
          f"{good['shapes']} ({shapes} of {of} values), FLOP within {WITHIN:.0%} {good['flop']}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

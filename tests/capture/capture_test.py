"""Captures of small modules against PyTorch's own account: capture_test.py TRIVET, TAP on standard
output.

For each module the saved-tensor hooks of a real run say which memory autograd keeps. The
capture must list the same, for the batch of the run and for another, and trivet must reckon the
same bytes from it: kept tensors, inputs and outputs, parameters and buffers not counted."""
import json
import os
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

try:
    import torch
except ImportError:
    print("1..0 # SKIP PyTorch is not installed (Debian: python3-torch)")
    sys.exit(0)

import small_modules
import trivet_capture

ITEM = trivet_capture.ITEM_BYTES


def storage_of(t):
    s = t.storage()._storage if hasattr(t.storage(), "_storage") else t.storage()
    return s._cdata, s.nbytes()


def tensors_in(x):
    return trivet_capture.tree_leaves(x, torch.Tensor)


def framework(make, sample, checkpointed):
    """(bytes that autograd keeps, the same with inputs and outputs) of a real run."""
    module, kept, held = make().train(), {}, []
    own = {storage_of(t)[0] for t in list(module.parameters()) + list(module.buffers())}

    def note(table, t):
        key, size = storage_of(t)
        held.append(t)
        if key not in own:
            table[key] = size

    def pack(t):
        note(kept, t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        if checkpointed:  # hooks see nothing inside; what goes in is kept
            for layer in module.layers:
                layer.register_forward_pre_hook(lambda _, args: note(kept, args[0]))
        out = module(sample)
        loss = trivet_capture.default_loss(torch, out)
    table = dict(kept)
    for t in [sample] + tensors_in(out) + [loss]:
        note(table, t)
    return sum(kept.values()), sum(table.values())


def number(dim, b):
    return trivet_capture.number_of(dim, b)


def storages_of(doc, b):
    sizes = {}
    for kind, shape, storage, *_ in doc["values"]:
        size = ITEM[kind]
        for d in shape:
            size *= number(d, b)
        sizes.setdefault(storage, size)
    for storage, size in doc["storages"]:
        sizes[storage] = number(size, b)
    return sizes


def captured(doc, b):
    """Bytes that the file says autograd keeps at batch b."""
    own = {doc["values"][row[1]][2] for row in doc["parameters"] + doc["buffers"]}
    kept = set()
    for op in doc["ops"]:
        if not op.get("r"):
            kept |= {doc["values"][v][2] for v in op.get("s", [])}
    for region in doc["regions"]:
        kept |= {doc["values"][v][2] for v in region}
    sizes = storages_of(doc, b)
    return sum(sizes[s] for s in kept - own)


def reckoned(trivet, path, b):
    call = [trivet, "size", path, "--task", "train", "--precision", "fp32", "--batch", str(b),
            "--json"]
    got = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if got.returncode:
        return got.stderr.decode().strip()
    return json.loads(got.stdout)["memory"]["tensors"]["saved_bytes"]


class Tally:
    def __init__(self):
        self.n = self.failed = 0

    def case(self, name, want, got, slack=0):
        self.n += 1
        good = not isinstance(got, str) and abs(got - want) <= slack * abs(want)
        self.failed += not good
        print("%sok %d - %s" % ("" if good else "not ", self.n, name))
        if not good:
            print("# want %s, got %s" % (want, got))


def main():
    trivet = sys.argv[1]
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        for name, make, sample in small_modules.CASES:
            checkpointed = "checkpoint" in name
            trivet_capture.capture(make(), sample(2), path)
            with open(path, encoding="utf-8") as f:
                doc = json.load(f)
            tally.case("%s: the batch is free" % name, 1, int(doc["batch"]["symbol"] == "B"))
            for b in (2, 5):
                kept, whole = framework(make, sample(b), checkpointed)
                tally.case("%s: kept at batch %d" % (name, b), kept, captured(doc, b))
                tally.case("%s: reckoned at batch %d" % (name, b), whole, reckoned(trivet, path, b),
                           small_modules.SLACK.get(name, 0.001))
    print("1..%d" % tally.n)
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()

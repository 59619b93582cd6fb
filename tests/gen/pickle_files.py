"""Writes pickles of every protocol, and what Python's own unpickler makes of them.

    pickle_files.py OUT [STAMP]   OUT/*.pkl and OUT/pickles.jsonl: the file and its content as text
    pickle_files.py --corpus DIR  the pickles alone, as starting points for the fuzzer

Python's unpickler runs with every class replaced by a stub that only notes its calls."""

import collections
import datetime
import decimal
import io
import json
import pathlib
import pickle
import struct
import sys

DEPTH = 12


class Call:
    def __init__(self, callee, args):
        self.callee, self.args, self.state, self.items, self.pairs = callee, args, None, None, None

    def __call__(self, *args):
        return Call(self, args)

    def __setstate__(self, state):
        self.state = (state,)

    def append(self, x):
        self.items = (self.items or []) + [x]

    add = append

    def __setitem__(self, key, value):
        self.pairs = (self.pairs or []) + [(key, value)]


class Stub:
    def __new__(cls, *args, **named):
        if isinstance(cls, Stub):
            return Call(cls, args)
        return object.__new__(cls)

    def __init__(self, name):
        self.name = name

    def __call__(self, *args):
        return Call(self, args)


class Kept:
    def __init__(self, pid):
        self.pid = pid


class Reader(pickle._Unpickler):
    def find_class(self, module, name):
        return Stub(f"{module}.{name}")

    def persistent_load(self, pid):
        return Kept(pid)


def text(x, depth=0):
    if depth > DEPTH:
        return "..."
    inner = [depth + 1]
    if x is None or isinstance(x, bool):
        return str(x)
    if isinstance(x, int):
        return str(x) if -1 << 63 <= x < 1 << 63 else "big"
    if isinstance(x, float):
        return "f" + struct.pack(">d", x).hex()
    if isinstance(x, str):
        return "s" + x.encode("utf-8", "surrogatepass").hex()
    if isinstance(x, (bytes, bytearray)):
        return "b" + bytes(x).hex()
    if isinstance(x, tuple):
        return "(" + ",".join(text(y, *inner) for y in x) + ")"
    if isinstance(x, list):
        return "[" + ",".join(text(y, *inner) for y in x) + "]"
    if isinstance(x, dict):
        return "{" + ",".join(text(k, *inner) + ":" + text(v, *inner) for k, v in x.items()) + "}"
    if isinstance(x, (set, frozenset)):
        return "<" + ",".join(text(y, *inner) for y in x) + ">"
    if isinstance(x, Stub):
        return "g" + x.name
    if isinstance(x, Kept):
        return "p" + text(x.pid, *inner)
    out = "o" + text(x.callee, *inner) + text(x.args, *inner)
    if x.state is not None:
        out += "!" + text(x.state[0], *inner)
    if x.items is not None:
        out += text(x.items, *inner)
    if x.pairs is not None:
        out += "{" + ",".join(text(k, *inner) + ":" + text(v, *inner) for k, v in x.pairs) + "}"
    return out


class Plain:
    def __init__(self):
        self.weight, self.name = [1.5, -2.0], "layer"


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1, 2


class Made:
    def __new__(cls, *args):
        return object.__new__(cls)

    def __getnewargs__(self):
        return 3, "four"


class Named(Made):
    def __getnewargs_ex__(self):
        return (1,), {"key": 2}


class Items(list):
    pass


class Pairs(dict):
    pass


class Outside:
    def __init__(self, i):
        self.i = i


class Writer(pickle._Pickler):
    def persistent_id(self, x):
        if isinstance(x, Outside):
            return ("storage", x.i) if self.proto else f"storage {x.i}"
        return None


def shared():
    x = [1]
    return [x, x, {"again": x}]


def cyclic():
    x = []
    x.append(x)
    return x


def objects():
    yield "numbers", [0, 1, 255, 256, 65535, 65536, -1, -2**31, 2**31, 2**40, -2**40, 2**63 - 1,
                      -2**63, True, False, None, 10**30, -10**30, 0x1950A86A20F9469CFC6C]
    yield "floats", [0.0, -0.0, 1.5, 1e300, 1e-300, float("inf"), float("-inf"), 0.1]
    yield "texts", ["", "a", "\u00e9\u4e2d\U0001f600", "with\nline", "back\\slash", "x" * 300,
                    "y" * 70000, "\\u0041", "\x7f\x80"]
    yield "bytes", [b"", b"abc", bytes(range(256)), b"z" * 70000]
    yield "tuples", [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),))]
    yield "lists", [[], [1], list(range(1200)), [[[[]]]]]
    yield "dicts", {"a": 1, 2: "b", (3, 4): {}, None: {str(i): i for i in range(1100)}}
    yield "sets", [set(), {1}, frozenset(), frozenset([2])]
    yield "array", bytearray(b"some bytes")
    yield "ordered", collections.OrderedDict([("w", 1), ("b", 2)])
    yield "counter", collections.Counter("aab")
    yield "default", collections.defaultdict(list, {"k": [1]})
    yield "dates", [datetime.date(2020, 1, 2), decimal.Decimal("1.25"), complex(1, 2)]
    yield "plain", Plain()
    yield "slots", Slots()
    yield "made", Made()
    yield "named", Named()
    yield "items", Items([1, 2, 3])
    yield "pairs", Pairs(a=1)
    yield "kinds", [int, len, collections.OrderedDict]
    yield "outside", [Outside(0), {"w": Outside(1)}]
    yield "shared", shared()
    yield "cyclic", cyclic()


def pickles():
    for name, x in objects():
        for protocol in range(6):
            raw = io.BytesIO()
            try:
                Writer(raw, protocol).dump(x)
            except (pickle.PicklingError, TypeError, ValueError):
                continue
            yield f"{name}-{protocol}", raw.getvalue()


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, raw in pickles():
        (out / f"{name}.pkl").write_bytes(raw)
        rows.append({"path": f"{name}.pkl", "text": text(Reader(io.BytesIO(raw)).load())})
    (out / "pickles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def corpus(out, largest=2048):
    out.mkdir(parents=True, exist_ok=True)
    for name, raw in pickles():
        if len(raw) <= largest:
            (out / name).write_bytes(raw)


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(pathlib.Path(sys.argv[2]))
        sys.exit()
    main(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).touch()

"""Writes small PyTorch checkpoints with nothing but the standard library: stand-ins for torch's
classes are pickled as torch.save pickles the real ones.

    torch_files.py OUT [STAMP]    OUT/good/, OUT/bad/, OUT/folders/ and torch.jsonl: what must be
                                  found in each, or the error's id
    torch_files.py --corpus DIR   the files alone, as starting points for the fuzzer"""

import collections
import io
import json
import pathlib
import pickle
import shutil
import struct
import sys
import tarfile
import types
import zipfile

SIZES = {"FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8,
         "IntStorage": 4, "ByteStorage": 1, "BoolStorage": 1, "DoubleStorage": 8,
         "UntypedStorage": 1, "QInt8Storage": 1}


def module(name):
    m = types.ModuleType(name)
    sys.modules[name] = m
    return m


def function(home, name):
    def f(*args):
        raise AssertionError("never called")
    f.__module__, f.__name__, f.__qualname__ = home.__name__, name, name
    setattr(home, name, f)
    return f


def kind(home, name, base=object):
    c = type(name, (base,), {"__module__": home.__name__})
    setattr(home, name, c)
    return c


torch = module("torch")
utils, tensor_py = module("torch._utils"), module("torch._tensor")
storage_py, linear = module("torch.storage"), module("torch.nn.modules.linear")
numpy, array_py = module("numpy"), module("numpy.core.multiarray")
package, lab, script = module("lab"), module("lab.models"), module("__torch__")
CLASSES = {name: kind(storage_py if name == "UntypedStorage" else torch, name) for name in SIZES}
TYPES = {name: kind(torch, name) for name in ("float8_e4m3fn", "bfloat16", "uint16", "float32")}
TensorClass = kind(torch, "Tensor")
REBUILD = {name: function(utils, name) for name in (
    "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
    "_rebuild_qtensor", "_rebuild_sparse_tensor", "_rebuild_meta_tensor_no_storage",
    "_rebuild_wrapper_subclass")}
from_type = function(tensor_py, "_rebuild_from_type_v2")
Linear, Net = kind(linear, "Linear"), kind(lab, "Net")
Layer = kind(script, "Layer")
dtype = kind(numpy, "dtype")
reconstruct = function(array_py, "_reconstruct")
ndarray = kind(numpy, "ndarray")


class Storage:
    def __init__(self, cls, n):
        self.cls, self.n, self.key = cls, n, None

    def bytes(self):
        return self.n * SIZES[self.cls]


class Reduced:
    """Anything that pickles as a call, with what follows it."""

    def __init__(self, f, args, state=None):
        self.parts = (f, args) if state is None else (f, args, state)

    def __reduce__(self):
        return self.parts


def strides(shape):
    out, n = [], 1
    for d in reversed(shape):
        out.insert(0, n)
        n *= max(d, 1)
    return tuple(out)


def count(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def tensor(shape, cls="FloatStorage", storage=None, offset=0, stride=None):
    storage = storage or Storage(cls, count(shape))
    return Reduced(REBUILD["_rebuild_tensor_v2"],
                   (storage, offset, tuple(shape), strides(shape) if stride is None else stride,
                    False, collections.OrderedDict()))


def tensor3(shape, name, width):
    return Reduced(REBUILD["_rebuild_tensor_v3"],
                   (Storage("UntypedStorage", count(shape) * width), 0, tuple(shape),
                    strides(shape), False, collections.OrderedDict(), TYPES[name]))


def parameter(x):
    return Reduced(REBUILD["_rebuild_parameter"], (x, True, collections.OrderedDict()))


def instance(cls, state):
    x = cls.__new__(cls)
    x.__dict__.update(state)
    return x


def linear_module(n, m, **modules):
    return instance(Linear, {
        "training": True, "_buffers": collections.OrderedDict(count=tensor((), "LongStorage")),
        "_parameters": collections.OrderedDict(weight=parameter(tensor((m, n))), bias=None),
        "_modules": collections.OrderedDict(modules)})


class Writer(pickle._Pickler):
    def __init__(self, f, protocol, wide):
        super().__init__(f, protocol)
        self.storages, self.wide = [], wide

    def persistent_id(self, x):
        if not isinstance(x, Storage):
            return None
        if x.key is None or x not in self.storages:
            x.key = str(len(self.storages))
            self.storages.append(x)
        rest = (None,) if self.wide else ()
        return ("storage", CLASSES[x.cls], x.key, "cpu", x.n, *rest)


def dump(x, protocol=2, wide=False):
    raw = io.BytesIO()
    w = Writer(raw, protocol, wide)
    w.dump(x)
    return raw.getvalue(), w.storages


def zipped(x, root="archive", method=zipfile.ZIP_STORED, drop=None, shorten=None, protocol=2,
           constants=None, code=False):
    data, storages = dump(x, protocol)
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", method) as z:
        def put(name, content):
            info = zipfile.ZipInfo(f"{root}/{name}", (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            z.writestr(info, content)
        put("data.pkl", data)
        put("byteorder", b"little")
        for s in storages:
            n = s.bytes() - (4 if s.key == shorten else 0)
            if s.key != drop:
                put(f"data/{s.key}", bytes(n))
        if code:
            put("code/__torch__.py", b"class Layer(Module):\n  pass\n")
        if constants is not None:
            data, storages = dump(constants)
            put("constants.pkl", data)
            for s in storages:
                put(f"constants/{s.key}", bytes(s.bytes()))
        put("version", b"3\n")
    return raw.getvalue()


MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


def legacy(x, cut=0, wrong=False, keys=None):
    data, storages = dump(x, wide=True)
    info = {"protocol_version": PROTOCOL, "little_endian": True,
            "type_sizes": {"short": 2, "int": 4, "long": 4}}
    out = b"".join(pickle.dumps(v, 2) for v in (MAGIC, PROTOCOL, info)) + data
    out += pickle.dumps([s.key for s in storages] if keys is None else keys, 2)
    for s in storages:
        out += struct.pack("<q", s.n + wrong) + bytes(s.bytes())
    return out[:len(out) - cut] if cut else out


class Outside:
    def __init__(self, key):
        self.key = key


class TarWriter(pickle._Pickler):
    def persistent_id(self, x):
        return str(x.key) if isinstance(x, Outside) else None


def tarred(tensors, x, drop=None, rank=None):
    """tensors: (key, storage key, shape)."""
    raw, out = io.BytesIO(), io.BytesIO()
    TarWriter(raw, 2).dump(x)
    parts = {"sys_info": pickle.dumps({"protocol_version": 1000}, 2), "pickle": raw.getvalue()}
    keys = sorted({s for _, s, _ in tensors})
    storages = pickle.dumps(len(keys), 2)
    for key in keys:
        n = max(count(shape) for _, s, shape in tensors if s == key)
        one, _ = dump((key, "cpu", CLASSES["FloatStorage"]))
        storages += one + struct.pack("<q", n) + bytes(4 * n)
    parts["storages"] = storages + pickle.dumps([], 2)
    body = pickle.dumps(len(tensors), 2)
    for key, s, shape in tensors:
        one, _ = dump((key, s, TensorClass))
        body += one + struct.pack("<iI", len(shape) if rank is None else rank, 7)
        body += struct.pack(f"<{len(shape)}q", *shape)
        body += struct.pack(f"<{len(shape)}q", *strides(shape)) + struct.pack("<q", 0)
    parts["tensors"] = body
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as t:
        for name, content in parts.items():
            if name != drop:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
    return out.getvalue()


def array(shape, code="f4"):
    kind_of = Reduced(dtype, (code, False, True), (3, "<", None, None, None, -1, -1, 0))
    return Reduced(reconstruct, (ndarray, (0,), b"b"),
                   (1, tuple(shape), kind_of, False, bytes(count(shape) * int(code[1:]))))


def state(prefix="", cls="FloatStorage"):
    return collections.OrderedDict([(prefix + "fc.weight", tensor((4, 3), cls)),
                                    (prefix + "fc.bias", tensor((4,), cls))])


def adam():
    return {"state": {0: {"step": 5, "exp_avg": tensor((4, 3)), "exp_avg_sq": tensor((4, 3))}},
            "param_groups": [{"lr": 0.1, "params": [0, 1]}]}


def tied():
    s = Storage("FloatStorage", 12)
    return {"embed.weight": tensor((4, 3), storage=s), "head.weight": tensor((4, 3), storage=s)}


def views():
    s = Storage("FloatStorage", 100)
    return {"a": tensor((10,), storage=s), "b": tensor((10,), storage=s, offset=50),
            "c": tensor((5, 4), storage=s, offset=60, stride=(1, 5))}


class Attack:
    def __reduce__(self):
        return (__import__("os").system, ("echo run",))


def good():
    two = {"fc.bias": [4], "fc.weight": [4, 3]}
    yield "state.pt", zipped(state()), {"names": two, "bytes": 64}
    yield "half.pt", zipped(state(cls="HalfStorage"), root="half"), {"names": two, "bytes": 32}
    yield "protocol4.pt", zipped(state(), protocol=4), {"names": two, "bytes": 64}
    yield "deflated.pt", zipped(state(), method=zipfile.ZIP_DEFLATED), {"names": two, "bytes": 64}
    yield "wrapped.pt", zipped(state("module.")), {"names": two, "bytes": 64}
    yield "compiled.pt", zipped(state("_orig_mod.")), {"names": two, "bytes": 64}
    for key in ("model", "state_dict", "model_state_dict", "my_weights"):
        yield f"{key}.pt", zipped({"epoch": 3, key: state(), "optimizer": adam()}), \
            {"names": two, "bytes": 64, "storage": 160, "extras": {"optimizer": [2, 24, 96]},
             "warning": "torch.extra"}
    yield "ema.pt", zipped({"params": state(), "params_ema": state()}), \
        {"names": two, "bytes": 64, "storage": 128, "extras": {"params": [2, 16, 64]},
         "warning": "torch.extra"}
    yield "nested.pt", zipped({"encoder": state(), "heads": [tensor((2,)), 7, tensor((3,))]}), \
        {"names": {"encoder.fc.bias": [4], "encoder.fc.weight": [4, 3], "heads.0": [2],
                   "heads.2": [3]}, "bytes": 84}
    yield "module.pt", zipped(linear_module(3, 4, inner=linear_module(2, 2))), \
        {"names": {"count": [], "inner.count": [], "inner.weight": [2, 2], "weight": [4, 3]},
         "bytes": 80}
    yield "yolo.pt", zipped({"epoch": -1, "model": instance(Net, {
        "_parameters": {}, "_buffers": {}, "_modules": {"0": linear_module(3, 4)}}),
        "ema": None}), {"names": {"0.count": [], "0.weight": [4, 3]}, "bytes": 56,
                        "warning": "torch.classes"}
    yield "object.pt", zipped(instance(Net, {"data": {"ids": tensor((2, 5), "LongStorage")}})), \
        {"names": {"data.ids": [2, 5]}, "bytes": 80, "warning": "torch.classes"}
    yield "one.pt", zipped(tensor((7,))), {"names": {"tensor": [7]}, "bytes": 28}
    yield "tied.pt", zipped(tied()), {"names": {"embed.weight": [4, 3], "head.weight": [4, 3]},
                                      "bytes": 48, "shares": 1}
    yield "views.pt", zipped(views()), {"names": {"a": [10], "b": [10], "c": [5, 4]},
                                        "bytes": 160, "storage": 400, "warning": "torch.unseen"}
    yield "expanded.pt", zipped({"a": tensor((100, 3), storage=Storage("FloatStorage", 3),
                                             stride=(0, 1))}), \
        {"names": {"a": [100, 3]}, "bytes": 12}
    yield "empty.pt", zipped({"a": tensor((0, 3))}), {"names": {"a": [0, 3]}, "bytes": 0}
    yield "untyped.pt", zipped({"w": tensor3((4, 2), "float8_e4m3fn", 1),
                                "u": tensor3((3,), "uint16", 2)}), \
        {"names": {"u": [3], "w": [4, 2]}, "bytes": 14}
    yield "quantised.pt", zipped({"w": Reduced(REBUILD["_rebuild_qtensor"], (
        Storage("QInt8Storage", 6), 0, (2, 3), (3, 1),
        ("per_channel", tensor((2,), "DoubleStorage"), tensor((2,), "LongStorage"), 0), False,
        collections.OrderedDict()))}), \
        {"names": {"w": [2, 3], "w.quantizer.1": [2], "w.quantizer.2": [2]}, "bytes": 38}
    yield "sparse.pt", zipped({"s": Reduced(REBUILD["_rebuild_sparse_tensor"], (
        "coo", (tensor((2, 5), "LongStorage"), tensor((5,)), (9, 9))))}), \
        {"names": {"s.indices": [2, 5], "s.values": [5]}, "bytes": 100}
    yield "meta.pt", zipped({"m": Reduced(REBUILD["_rebuild_meta_tensor_no_storage"], (
        TYPES["bfloat16"], (3, 3), (3, 1), False))}), {"names": {"m": [3, 3]}, "bytes": 18,
                                                       "storage": 0}
    yield "subclass.pt", zipped({"w": Reduced(from_type, (
        REBUILD["_rebuild_wrapper_subclass"], Net, (),
        {"packed": tensor((4, 2), "ByteStorage"), "scale": tensor((4, 1))}))}), \
        {"names": {"w.packed": [4, 2], "w.scale": [4, 1]}, "bytes": 24, "warning": "torch.classes"}
    yield "bool.pt", zipped({"w": tensor((2,), "FloatStorage"),
                                "x": tensor((4,), "BoolStorage")}), \
        {"names": {"w": [2], "x": [4]}, "bytes": 12}
    yield "attack.pt", zipped({"w": tensor((2,)), "x": Attack()}), \
        {"names": {"w": [2]}, "bytes": 8, "warning": "torch.runs-code"}
    yield "script.pt", zipped(instance(Layer, {"weight": tensor((2, 2)), "training": True}),
                              constants=(tensor((3,)),), code=True), \
        {"names": {"constants.0": [3], "weight": [2, 2]}, "bytes": 28}
    yield "arrays.pkl", dump({"w": array((3, 2)), "i": array((4,), "i8")}, 4)[0], \
        {"names": {"i": [4], "w": [3, 2]}, "bytes": 56, "storage": 0}
    yield "stream.pt", legacy(state()), {"names": two, "bytes": 64}
    yield "stream-views.bin", legacy(views()), {"names": {"a": [10], "b": [10], "c": [5, 4]},
                                                "bytes": 160, "storage": 400,
                                                "warning": "torch.unseen"}
    yield "oldest.pt", tarred([(10, 1, (5, 5)), (11, 1, (25,)), (12, 2, (2, 3))],
                              {"a": Outside(10), "b": Outside(11), "c": Outside(12)}), \
        {"names": {"a": [5, 5], "b": [25], "c": [2, 3]}, "bytes": 124, "shares": 1}


def tower(depth):
    x = [tensor((1,))]
    for _ in range(depth):
        x = [x] * 4
    return x


def bad():
    yield "three.pt", b"\x01\x02\x03", "torch.no-checkpoint"
    yield "text.bin", b"hello, these are no weights at all", "torch.no-checkpoint"
    yield "no-storage.pt", zipped(state(), drop="1"), "torch.no-storage"
    yield "short-storage.pt", zipped(state(), shorten="0"), "torch.no-storage"
    yield "no-pickle.pt", zipped({}).replace(b"data.pkl", b"dato.pkl"), "torch.no-pickle"
    yield "cut.pt", zipped(state())[:-30], "zip.no-end"
    yield "no-tensors.pt", zipped({"epoch": 1}), "torch.no-tensors"
    yield "optimizer.pt", zipped(adam()), "torch.no-tensors"
    yield "beyond.pt", zipped({"a": tensor((4,), storage=Storage("FloatStorage", 3))}), \
        "torch.beyond"
    yield "beyond-stride.pt", zipped({"a": tensor((2, 2), storage=Storage("FloatStorage", 4),
                                                  stride=(3, 1))}), "torch.beyond"
    one = Storage("FloatStorage", 1)
    yield "huge.pt", zipped({"a": tensor((1 << 40, 1 << 40), storage=one)}), \
        "torch.huge"
    yield "negative.pt", zipped({"a": tensor((-1,), storage=Storage("FloatStorage", 1))}), \
        "torch.shape"
    yield "rank.pt", zipped({"a": tensor((1,) * 9)}), "safetensors.rank"
    yield "strides.pt", zipped({"a": tensor((2, 2), stride=(1,))}), "torch.strides"
    yield "not-a-storage.pt", zipped({"a": Reduced(REBUILD["_rebuild_tensor_v2"], (
        5, 0, (1,), (1,), False, {}))}), "torch.storage"
    yield "tangled.pt", zipped(tower(12)), "torch.tangled"
    yield "stream-cut.pt", legacy(state(), cut=3), "torch.cut-short"
    yield "stream-count.pt", legacy(state(), wrong=True), "torch.count"
    yield "stream-keys.pt", legacy(state(), keys=["5"]), "torch.keys"
    yield "stream-half.pt", legacy(state())[:60], "pickle.cut"
    yield "oldest-part.pt", tarred([(1, 2, (2,))], [Outside(1)], drop="tensors"), "torch.member"
    yield "oldest-rank.pt", tarred([(1, 2, (2,))], [Outside(1)], rank=99), "torch.shape"


def folders(out):
    config = json.dumps({"model_type": "llama", "hidden_size": 4})
    shards = {"pytorch_model-00001-of-00002.bin": {"a": tensor((2,))},
              "pytorch_model-00002-of-00002.bin": {"b": tensor((3,)), "c": tensor((1,))}}
    index = {"metadata": {"total_size": 24},
             "weight_map": {"a": "pytorch_model-00001-of-00002.bin",
                            "b": "pytorch_model-00002-of-00002.bin",
                            "c": "pytorch_model-00002-of-00002.bin"}}
    for name in ("sharded", "no-index", "missing", "one", "training"):
        (out / name).mkdir(parents=True)
        (out / name / "config.json").write_text(config)
    for name, content in shards.items():
        (out / "sharded" / name).write_bytes(zipped(content))
        (out / "no-index" / name).write_bytes(zipped(content))
    (out / "missing/pytorch_model-00001-of-00002.bin").write_bytes(zipped({"a": tensor((2,))}))
    for name in ("sharded", "missing"):
        (out / name / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    (out / "one/pytorch_model.bin").write_bytes(zipped(state()))
    (out / "one/training_args.bin").write_bytes(zipped({"lr": 0.1}))
    (out / "one/optimizer.pt").write_bytes(zipped(adam()))
    (out / "training/training_args.bin").write_bytes(zipped({"lr": 0.1}))
    three = {"a": [2], "b": [3], "c": [1]}
    two = {"fc.bias": [4], "fc.weight": [4, 3]}
    return [{"path": "folders/sharded", "names": three, "bytes": 24},
            {"path": "folders/sharded/pytorch_model-00001-of-00002.bin", "names": three,
             "bytes": 24},
            {"path": "folders/no-index", "names": three, "bytes": 24},
            {"path": "folders/one", "names": two, "bytes": 64},
            {"path": "folders/training", "names": {}, "bytes": 0},
            {"path": "folders/missing", "id": "index.missing-shard"}]


def main(out):
    shutil.rmtree(out, ignore_errors=True)
    rows = []
    for where in ("good", "bad"):
        (out / where).mkdir(parents=True)
    for name, raw, want in good():
        (out / "good" / name).write_bytes(raw)
        rows.append({"path": f"good/{name}", **want})
    for name, raw, error in bad():
        (out / "bad" / name).write_bytes(raw)
        rows.append({"path": f"bad/{name}", "id": error})
    rows += folders(out / "folders")
    (out / "torch.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def corpus(out, largest=4096):
    out.mkdir(parents=True, exist_ok=True)
    for name, raw, *_ in [*good(), *bad()]:
        if len(raw) <= largest:
            (out / name).write_bytes(raw)


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(pathlib.Path(sys.argv[2]))
        sys.exit()
    main(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).touch()

"""Writes small model files of every shape that the readers must know, and broken ones.

    model_files.py OUT [STAMP]    OUT/good/, OUT/bad/, OUT/folders/ and two lists:
    good.jsonl  what plain_reader.py finds in each good file
    bad.jsonl   for each bad file: the error's id, its offset (null: none) and its exit status

    model_files.py --corpus DIR    the small ones of them into DIR/gguf/, DIR/safetensors/ and
                                   DIR/hf_config/, as starting points for the fuzzers

The content of the data is zeros: no reader looks at it."""

import json
import pathlib
import shutil
import struct
import sys

import plain_reader

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)


class Gguf:
    """A GGUF file in the making; offsets of its parts are kept for the broken ones."""

    def __init__(self, version=3, big=False, magic=b"GGUF", align=32):
        self.version, self.big, self.magic, self.align = version, big, magic, align
        self.keys, self.tensors = [], []

    def pack(self, form, *values):
        return struct.pack((">" if self.big else "<") + form, *values)

    def size(self, n):
        return self.pack("I" if self.version == 1 else "Q", n)

    def text(self, s):
        raw = s if isinstance(s, bytes) else s.encode()
        return self.size(len(raw)) + raw

    def value(self, kind, v):
        if kind == STRING:
            return self.text(v)
        if kind == ARRAY:
            inner, items = v
            return self.pack("I", inner) + self.size(len(items)) + b"".join(
                self.value(inner, x) for x in items)
        return self.pack("BbHhIifB--Qqd"[kind], v)

    def key(self, name, kind, v):
        self.keys.append((name, kind, v))
        return self

    def tensor(self, name, number, dims, offset=None, length=None):
        """dims as the file has them: innermost first."""
        self.tensors.append((name, number, dims, offset, length))
        return self

    def build(self, n_tensors=None, n_keys=None):
        self.marks = {}
        out = self.magic + self.pack("I", self.version)
        self.marks["n_tensors"] = len(out)
        out += self.size(len(self.tensors) if n_tensors is None else n_tensors)
        self.marks["n_keys"] = len(out)
        out += self.size(len(self.keys) if n_keys is None else n_keys)
        for i, (name, kind, v) in enumerate(self.keys):
            self.marks["key", i] = len(out)
            out += self.text(name)
            self.marks["kind", i] = len(out)
            out += self.pack("I", kind)
            self.marks["value", i] = len(out)
            out += self.value(kind, v)
        data, places = self.layout()
        for i, (name, number, dims, _, _) in enumerate(self.tensors):
            out += self.text(name)
            self.marks["rank", i] = len(out)
            out += self.pack("I", len(dims))
            for j, d in enumerate(dims):
                self.marks["dim", i, j] = len(out)
                out += self.size(d)
            self.marks["type", i] = len(out)
            out += self.pack("I", number)
            self.marks["offset", i] = len(out)
            out += self.pack("Q", places[i])
        self.marks["header"] = len(out)
        if self.tensors:
            out += bytes(-len(out) % self.align)
        self.marks["data"] = len(out)
        return out + bytes(data)

    def layout(self):
        at, end, places = 0, 0, []
        for _, number, dims, offset, length in self.tensors:
            _, block, block_bytes = plain_reader.GGML.get(number, ("", 1, 0))
            if length is None:
                length = plain_reader.product(dims) // block * block_bytes
            if offset is None:
                offset = at
            places.append(offset)
            end = max(end, offset + length) if offset < 1 << 20 else end
            at = -(-(offset + length) // self.align) * self.align
        return end, places


def plain_gguf(**form):
    return (Gguf(**form).key("general.architecture", STRING, "llama")
            .key("general.parameter_count", U64, 128 + 64)
            .key("llama.attention.layer_norm_rms_epsilon", F32, 1e-6)
            .key("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "bb", "ccc"]))
            .tensor("token_embd.weight", 8, [32, 4]).tensor("output_norm.weight", 0, [64]))


def every_value():
    g = Gguf()
    for kind, v in ((U8, 255), (I8, -128), (U16, 65535), (I16, -32768), (U32, 2**32 - 1),
                    (I32, -2**31), (F32, 0.1), (BOOL, True), (STRING, "naïve \"quoted\""),
                    (U64, 2**64 - 1), (I64, -2**63), (F64, 1e300)):
        g.key(f"value.{kind}", kind, v)
    g.key("value.false", BOOL, False).key("value.empty", STRING, "")
    g.key("array.none", ARRAY, (U32, []))
    g.key("array.kept", ARRAY, (I16, list(range(512))))
    g.key("array.counted", ARRAY, (U8, [1] * 513))
    g.key("array.words", ARRAY, (STRING, [f"token {i}" for i in range(3000)]))
    g.key("array.nested", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["x"]), (F32, [])]))
    g.key("array.nested.long", ARRAY, (ARRAY, [(U8, [1])] * 600))
    return g.tensor("t", 0, [1])


def good_gguf():
    yield "v1-little", plain_gguf(version=1)
    yield "v1-big", plain_gguf(version=1, big=True)
    yield "v2-little", plain_gguf(version=2)
    yield "v2-big", plain_gguf(version=2, big=True)
    yield "v3-little", plain_gguf()
    yield "v3-big", plain_gguf(big=True)
    yield "v3-big-magic-turned", plain_gguf(big=True, magic=b"FUGG")
    yield "every-value", every_value()
    # others: what the gguf package of bench/ does not know, and Q8_1, whose two 32-bit sums of
    # old it still has (ggml-common.h: two halves; the type does not stand in files)
    types, others = Gguf(), Gguf()
    for number, (name, block, _) in plain_reader.GGML.items():
        file = others if number in (9, 31, 32, 33, 36, 37, 38, 42) else types
        file.tensor(f"{number:02}.{name}", number, [block * 3, 2])
    yield "every-type", types
    yield "other-types", others
    yield "align-128", plain_gguf(align=128).key("general.alignment", U32, 128)
    yield "align-1", Gguf(align=1).key("general.alignment", U32, 1).tensor("a", 24, [3]).tensor(
        "b", 24, [5])
    yield "ranks", (Gguf().tensor("r0", 0, []).tensor("r1", 0, [3]).tensor("r2", 1, [3, 5])
                    .tensor("r3", 0, [2, 3, 5]).tensor("r4", 30, [2, 3, 5, 7])
                    .tensor("none", 0, [0, 4]))
    yield "unsorted", Gguf().tensor("b", 0, [4], offset=64).tensor("a", 0, [4], offset=0).tensor(
        "c", 0, [4], offset=32)
    yield "gap", Gguf().tensor("a", 0, [8], offset=0).tensor("b", 0, [8], offset=4096)
    yield "unknown-type", (Gguf().tensor("a", 77, [8], length=64).tensor("b", 4, [8], length=32)
                           .tensor("c", 0, [8]))
    yield "no-tensors", Gguf().key("general.architecture", STRING, "bert")


def bad_gguf():
    """(name, bytes, id, offset, status)"""
    g = plain_gguf()
    whole = g.build()
    m = g.marks
    yield "magic", b"GGLA" + whole[4:], "gguf.magic", 0, 3
    yield "version-0", whole[:4] + struct.pack("<I", 0) + whole[8:], "gguf.version", 4, 4
    yield "version-4", whole[:4] + struct.pack("<I", 4) + whole[8:], "gguf.version", 4, 4
    yield "many-tensors", g.build(n_tensors=2**63), "gguf.limit", m["n_tensors"], 3
    yield "many-keys", g.build(n_keys=2**40), "gguf.limit", m["n_keys"], 3
    raw = g.build(n_tensors=3)  # the padding reads as a tensor without a name
    yield "one-tensor-more", raw, "gguf.cut-short", len(raw), 3
    raw = g.build(n_tensors=900000)
    yield "tensors-beyond-file", raw, "gguf.short", len(raw), 3
    raw = whole[: m["key", 0]] + struct.pack("<Q", 2**64 - 1) + whole[m["key", 0] + 8 :]
    yield "long-key", raw, "gguf.short", len(raw), 3
    raw = whole[: m["kind", 0]] + struct.pack("<I", 13) + whole[m["kind", 0] + 4 :]
    yield "value-type", raw, "gguf.value-type", m["kind", 0], 3
    at = m["value", 3]
    raw = whole[:at] + struct.pack("<I", 99) + whole[at + 4 :]
    yield "array-type", raw, "gguf.value-type", at, 3
    raw = whole[: at + 4] + struct.pack("<Q", 2**60) + whole[at + 12 :]
    yield "array-limit", raw, "gguf.limit", at + 4, 3
    raw = whole[: at + 4] + struct.pack("<Q", 100000) + whole[at + 12 :]
    yield "array-short", raw, "gguf.short", len(raw), 3
    g = Gguf().key("deep", ARRAY, (ARRAY, [(ARRAY, [(ARRAY, [(ARRAY, [(U8, [1])])])])])).tensor(
        "t", 0, [1])
    raw = g.build()
    yield "array-depth", raw, "gguf.too-deep", m_of(raw, g, 4), 3
    g = Gguf().key("truth", BOOL, 2).tensor("t", 0, [1])
    raw = g.build()
    yield "bool", raw, "gguf.bool", g.marks["value", 0], 3
    g = Gguf().key("a", U8, 1).key("b", U8, 1).key("a", U8, 2).tensor("t", 0, [1])
    raw = g.build()
    yield "key-twice", raw, "json.duplicate-key", g.marks["key", 2], 3
    g = Gguf().tensor("same", 0, [8]).tensor("other", 0, [8]).tensor("same", 0, [8])
    raw = g.build()
    yield "tensor-twice", raw, "read.duplicate-tensor", g.marks["rank", 2] - 4, 3
    g = Gguf().tensor("a", 0, [8, 1, 1, 1, 1])
    raw = g.build()
    yield "rank", raw, "gguf.limit", g.marks["rank", 0], 3
    g = Gguf().tensor("a", 0, [2**40, 2**40], length=32)
    raw = g.build()
    yield "shape-overflow", raw, "gguf.shape-overflow", g.marks["dim", 0, 1], 3
    g = Gguf().tensor("a", 0, [2**62, 2], length=32)
    raw = g.build()
    yield "bytes-overflow", raw, "gguf.row", g.marks["type", 0], 3
    g = Gguf().tensor("a", 12, [255, 2], length=144)
    raw = g.build()
    yield "row", raw, "gguf.row", g.marks["type", 0], 3
    g = Gguf().tensor("a", 0, [8], offset=8)
    raw = g.build()
    yield "unaligned", raw, "gguf.unaligned", g.marks["offset", 0], 3
    g = Gguf().tensor("a", 0, [8]).tensor("b", 0, [8], offset=2**63)
    raw = g.build()
    yield "far-offset", raw, "gguf.cut-short", len(raw), 3
    g = Gguf().tensor("a", 0, [8]).tensor("b", 0, [8], offset=2**64 - 32)
    raw = g.build()
    yield "wrapping-offset", raw, "gguf.cut-short", len(raw), 3
    g = Gguf().tensor("a", 0, [16], offset=0).tensor("b", 0, [8], offset=32)
    raw = g.build()
    yield "overlap", raw, "read.overlap", g.marks["data"] + 32, 3
    for name, v in (("zero", 0), ("odd", 48)):
        g = Gguf().key("general.alignment", U32, v).tensor("a", 0, [8])
        raw = g.build()
        yield f"alignment-{name}", raw, "gguf.alignment", g.marks["key", 0], 3
    g = Gguf().key("general.alignment", STRING, "32").tensor("a", 0, [8])
    raw = g.build()
    yield "alignment-text", raw, "gguf.alignment", g.marks["key", 0], 3
    g = plain_gguf()
    raw = g.build()
    at = g.marks["value", 2]
    raw = raw[:at] + b"\xef\xbf\xbd\xef\xbf\xbd" + raw[at + 2 :]
    yield "text-filter", raw, "gguf.text-filter", None, 3


def m_of(raw, g, depth):
    """Offset of the array that lies `depth` levels inside the first value."""
    return g.marks["value", 0] + depth * 12


# ---- safetensors ----


def header_of(entries, metadata=None, pad=8):
    doc = {}
    if metadata is not None:
        doc["__metadata__"] = metadata
    doc.update(entries)
    text = json.dumps(doc, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % pad)


def safetensors(entries, metadata=None, pad=8, data=None):
    header = header_of(entries, metadata, pad)
    end = max([e["data_offsets"][1] for e in entries.values()], default=0) if data is None else data
    return struct.pack("<Q", len(header)) + header + bytes(end)


def entries_of(*tensors):
    """(name, type, shape) one after the other."""
    at, out = 0, {}
    for name, kind, shape in tensors:
        n = plain_reader.product(shape) * plain_reader.SAFETENSORS_BITS[kind] // 8
        out[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    return out


def good_safetensors():
    plain = entries_of(("w", "F32", [4, 3]), ("b", "BF16", [3]), ("step", "I64", []))
    yield "plain", safetensors(plain, {"format": "pt"})
    yield "unpadded", safetensors(plain, {"a": "b"}, pad=1)
    yield "every-type", safetensors(entries_of(*[(k.lower(), k, [8, 3])
                                                 for k in plain_reader.SAFETENSORS_BITS]))
    yield "header-order", safetensors(dict(reversed(list(plain.items()))))
    yield "scalars", safetensors(entries_of(("a", "F32", []), ("b", "BOOL", []), ("c", "F64", [1])))
    yield "no-elements", safetensors(entries_of(("a", "F32", [0, 7]), ("b", "I8", [2]),
                                                ("c", "U8", [0])))
    yield "empty", safetensors({})
    yield "rank-8", safetensors(entries_of(("a", "U8", [1, 2, 1, 2, 1, 2, 1, 2])))
    yield "names", safetensors(entries_of(("层.权重", "F32", [1]), ("a\"b\\c", "F32", [1]),
                                          ("", "F32", [1]), ("\u00e9\n", "F32", [1])))
    gap = {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
           "b": {"dtype": "U8", "shape": [4], "data_offsets": [10, 14]}}
    yield "gap", safetensors(gap)
    yield "tail", safetensors(plain, data=500)
    yield "more-keys", safetensors({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1],
                                          "note": {"x": [1, {"y": 2}]}}})
    yield "unknown-type", safetensors({"a": {"dtype": "F3", "shape": [8], "data_offsets": [0, 3]},
                                       "b": {"dtype": "U8", "shape": [1], "data_offsets": [3, 4]}})


def find(raw, what, after=0):
    return raw.index(what, after)


def with_header(text, data=0):
    return struct.pack("<Q", len(text)) + text + bytes(data)


def bad_safetensors():
    yield "short-length", b"\x10\0\0\0", "safetensors.short", 4, 3
    yield "huge-header", struct.pack("<Q", 2**63) + b"{}", "safetensors.header-limit", 0, 3
    raw = struct.pack("<Q", 100) + b"{}"
    yield "short-header", raw, "safetensors.short-header", len(raw), 3
    yield "header-is-list", with_header(b"[]"), "safetensors.no-object", 8, 3
    yield "header-is-cut", with_header(b'{"a":'), "json.short", 13, 3
    yield "header-is-text", with_header(b"hello wo"), "json.unexpected", 8, 3
    yield "header-has-more", with_header(b"{} {}"), "json.more", 11, 3
    yield "entry-is-list", with_header(b'{"a":[]}'), "safetensors.no-entry", 13, 3

    def entry(text, id, mark, data=64, status=3):
        raw = with_header(b'{"a":{' + text + b"}}", data)
        at = len(raw) if mark is None else find(raw, mark)
        return raw, id, at, status

    ok = b'"dtype":"F32","shape":[2],"data_offsets":[0,8]'
    yield "no-type", *entry(b'"shape":[2],"data_offsets":[0,8]', "safetensors.incomplete", b'"a"')
    yield "no-shape", *entry(b'"dtype":"F32","data_offsets":[0,8]', "safetensors.incomplete",
                             b'"a"')
    yield "no-offsets", *entry(b'"dtype":"F32","shape":[2]', "safetensors.incomplete", b'"a"')
    yield "type-twice", *entry(ok + b', "dtype":"F32"', "json.duplicate-key", b'"dtype":"F32"}')
    yield "type-is-number", *entry(ok.replace(b'"F32"', b"32"), "safetensors.no-type", b"32")
    yield "shape-is-number", *entry(ok.replace(b"[2]", b"2"), "safetensors.no-shape", b"2,")
    yield "shape-negative", *entry(ok.replace(b"[2]", b"[-2]"), "safetensors.no-count", b"-2")
    yield "shape-fraction", *entry(ok.replace(b"[2]", b"[2.0]"), "safetensors.no-count", b"2.0")
    yield "shape-too-large", *entry(ok.replace(b"[2]", b"[18446744073709551616]"),
                                    "safetensors.no-count", b"18446744073709551616")
    yield "shape-overflow", *entry(ok.replace(b"[2]", b"[4294967296,4294967296]"),
                                   "safetensors.shape-overflow", b"[4294967296")
    yield "bytes-overflow", *entry(ok.replace(b"[2]", b"[9223372036854775808]"),
                                   "safetensors.shape-overflow", b"[9223372036854775808")
    yield "rank-9", *entry(ok.replace(b"[2]", b"[1,1,1,1,1,1,1,1,9]"), "safetensors.rank", b"9]")
    yield "size", *entry(ok.replace(b"[0,8]", b"[0,7]"), "safetensors.size", b"[0,7]")
    yield "backwards", *entry(ok.replace(b"[0,8]", b"[8,0]"), "safetensors.backwards", b"[8,0]")
    yield "offsets-three", *entry(ok.replace(b"[0,8]", b"[0,8,9]"), "safetensors.offsets",
                                  b"[0,8,9]")
    yield "offsets-one", *entry(ok.replace(b"[0,8]", b"[0]"), "safetensors.offsets", b"[0]")
    yield "offsets-object", *entry(ok.replace(b"[0,8]", b"{}"), "safetensors.offsets", b"{}}}")
    yield "data-cut", *entry(ok, "safetensors.cut-short", None, data=7)
    yield "half-byte", *entry(b'"dtype":"F4","shape":[3],"data_offsets":[0,2]',
                              "safetensors.half-byte", b"[3]")
    yield "six-bits", *entry(b'"dtype":"F6_E2M3","shape":[6],"data_offsets":[0,5]',
                             "safetensors.half-byte", b"[6]")
    one = b'{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
    two = b'{"dtype":"U8","shape":[2],"data_offsets":[2,4]}'
    raw = with_header(b'{"a":' + one + b',"b":' + two + b',"a":'
                      + two.replace(b"[2,4]", b"[4,6]") + b"}", 6)
    yield "tensor-twice", raw, "read.duplicate-tensor", find(raw, b'a"', find(raw, b'"b"')), 3
    raw = with_header(b'{"a":' + one + b',"b":' + two.replace(b"[2,4]", b"[1,3]") + b"}", 4)
    yield "overlap", raw, "read.overlap", len(raw) - 4 + 1, 3
    raw = with_header(b'{"a":' + one + b',"b":' + one + b"}", 4)
    yield "same-place", raw, "read.overlap", len(raw) - 4, 3
    raw = with_header(b'{"__metadata__":{"n":1}}')
    yield "metadata-number", raw, "safetensors.metadata", find(raw, b"1}"), 3
    raw = with_header(b'{"__metadata__":[]}')
    yield "metadata-list", raw, "safetensors.metadata", find(raw, b"[]"), 3
    raw = with_header(b'{"__metadata__":{},"__metadata__":{}}')
    yield "metadata-twice", raw, "safetensors.metadata-twice", find(raw, b'"__', 20), 3
    yield "empty-file", b"", "read.empty", 0, 3
    yield "pointer", (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
                      + b"\nsize 9\n"), "read.lfs-pointer", 0, 3
    yield "link", b"../../blobs/model.safetensors", "read.link-text", 0, 3


# ---- folders ----


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, (dict, list)):
        content = json.dumps(content, indent=1).encode()
    path.write_bytes(content)


def folders(out):
    one, two = entries_of(("a", "F32", [4]), ("b", "F16", [2, 2])), entries_of(("c", "F32", [3]))
    index = {"metadata": {"total_size": 36},
             "weight_map": {"a": "model-00001-of-00002.safetensors",
                            "b": "model-00001-of-00002.safetensors",
                            "c": "model-00002-of-00002.safetensors"}}
    config = {"model_type": "llama", "hidden_size": 8}

    def shards(name, first=one, second=two, index=index):
        write(out / name / "config.json", config)
        if index:
            write(out / name / "model.safetensors.index.json", index)
        for i, part in enumerate((first, second)):
            if part is not None:
                raw = part if isinstance(part, bytes) else safetensors(part)
                write(out / name / f"model-0000{i + 1}-of-00002.safetensors", raw)

    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    shards("sharded")
    shards("sharded-no-total", index={"weight_map": index["weight_map"]})
    shards("sharded-no-index", index=None)
    shards("missing-part", one, None, None)
    shards("index-only", None, None)
    shards("missing-shard", one, None)
    shards("pointer-shards", pointer, pointer)
    last = "model-00002-of-00002.safetensors"
    shards("index-differs", index={"weight_map": {**index["weight_map"], "d": last}})
    shards("index-leaves", index={"weight_map": {"a": "../sharded/" + last}})
    below = {"weight_map": {"a": "weights/part.safetensors", "b": "weights/part.safetensors"}}
    shards("below", None, None, below)
    write(out / "below/weights/part.safetensors", safetensors(one))
    write(out / "adapter/adapter_config.json", {"peft_type": "LORA", "r": 8})
    write(out / "adapter/adapter_model.safetensors", safetensors(one))
    write(out / "twice/model-1-of-2.safetensors", safetensors(one))
    write(out / "twice/model-2-of-2.safetensors", safetensors(one))
    write(out / "clash/x.safetensors", safetensors(one))
    write(out / "clash/y.safetensors", safetensors(entries_of(("a", "F32", [5]))))
    write(out / "mistral/config.json", config)
    write(out / "mistral/model.safetensors", safetensors(one))
    write(out / "mistral/consolidated.safetensors", safetensors(two))
    write(out / "two-copies/consolidated.safetensors", safetensors(one))
    write(out / "two-copies/weights.safetensors", safetensors(two))
    write(out / "bin/config.json", config)
    write(out / "bin/pytorch_model.bin", b"PK\x03\x04")
    write(out / "bin-only/pytorch_model.bin", b"PK\x03\x04")
    write(out / "bin-index/config.json", config)
    write(out / "bin-index/pytorch_model.bin.index.json",
          {"metadata": {"total_size": 1234.0},
           "weight_map": {"a": "pytorch_model-00001-of-00002.bin"}})
    write(out / "quantized/config.json", config)
    write(out / "quantized/hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}})
    write(out / "ernie/ernie_config.json", {"hidden_size": 768})
    write(out / "nothing/readme.txt", b"no model")
    write(out / "models--org--name/snapshots/0123/config.json", config)
    write(out / "pipeline/model_index.json",
          {"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
           "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"],
           "tokenizer": ["transformers", "CLIPTokenizer"], "safety_checker": [None, None],
           "scheduler": ["diffusers", "PNDMScheduler"], "requires_safety_checker": False})
    write(out / "pipeline/unet/config.json", {"_class_name": "UNet2DConditionModel"})
    write(out / "pipeline/unet/diffusion_pytorch_model.safetensors", safetensors(one))
    write(out / "pipeline/text_encoder/config.json", {"model_type": "clip_text_model"})
    write(out / "pipeline-leaves/model_index.json",
          {"_class_name": "P", "../pipeline/unet": ["diffusers", "UNet2DConditionModel"]})
    write(out / "pipeline-nested/model_index.json", {"_class_name": "P", "x": ["l", "C"]})
    write(out / "pipeline-nested/x/config.json", {"_class_name": "InnerPipeline", "x": ["l", "C"]})
    part = lambda i, n: (Gguf().key("split.no", U16, i).key("split.count", U16, n)
                         .key("split.tensors.count", I32, 3))
    g = [part(0, 2).tensor("a", 0, [8]).tensor("b", 1, [8]), part(1, 2).tensor("c", 0, [8])]
    for name, parts in (("split", g), ("split-missing", g[:1]),
                        ("split-twice", [g[0], part(1, 2).tensor("a", 0, [8])]),
                        ("split-count", [part(0, 3).tensor("a", 0, [8]), g[1]]),
                        ("split-fewer", [g[0], part(1, 2)])):
        for i, p in enumerate(parts):
            write(out / name / f"m-0000{i + 1}-of-00002.gguf", p.build())
    write(out / "split-renamed/part.gguf", g[0].build())
    write(out / "several/a-Q4.gguf", plain_gguf().build())
    write(out / "several/b-Q8.gguf", plain_gguf().build())
    write(out / "projector/model.gguf", plain_gguf().build())
    write(out / "projector/mmproj-model.gguf", plain_gguf().build())
    write(out / "list.json", [])
    write(out / "adapter_config.json", {"peft_type": "LORA", "r": 8})
    write(out / "layers.json", {"schema": "trivet.model/1", "name": "my-net", "layers": []})
    write(out / "wrapped.json", {"schema": "trivet.model/1", "name": "my-llm", "config": config})
    write(out / "model.onnx", b"\x08\x07")
    write(out / "notes.txt", b"just text")


def write_list(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def main(out):
    shutil.rmtree(out, ignore_errors=True)
    good, bad = [], []
    for name, g in good_gguf():
        write(out / "good" / f"{name}.gguf", g.build())
    for name, raw in good_safetensors():
        write(out / "good" / f"{name}.safetensors", raw)
    for path in sorted((out / "good").iterdir()):
        good.append({"path": f"good/{path.name}", **plain_reader.read(path)})
    for ending, cases in ((".gguf", bad_gguf()), (".safetensors", bad_safetensors())):
        for name, raw, id, offset, status in cases:
            write(out / "bad" / (name + ending), raw)
            bad.append({"path": f"bad/{name}{ending}", "id": id, "offset": offset,
                        "status": status})
    folders(out / "folders")
    write_list(out / "good.jsonl", good)
    write_list(out / "bad.jsonl", bad)


CONFIGS = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64},
    "unet": {"_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64]},
    "pipeline": {"_class_name": "P", "unet": ["diffusers", "UNet2DConditionModel"]},
    "layers": {"schema": "trivet.model/1", "name": "n", "layers": [["conv", 3]]},
    "variants": {"schema": "trivet.model/1", "name": "n", "config": {"model_type": "bert", "a": {}},
                 "variants": [{"name": "v", "config": {"a": {"b": 1}}}, {"name": "w"}]},
    "adapter": {"peft_type": "LORA", "r": 8},
    "index": {"metadata": {"total_size": 1.2e10},
              "weight_map": {"a": "m-00001-of-00002.safetensors", "b": "m-2.safetensors"}},
    "list": [],
}


def corpus(out, largest=2048):
    for ending, good, bad in ((".gguf", good_gguf(), bad_gguf()),
                              (".safetensors", good_safetensors(), bad_safetensors())):
        files = [(n, g if isinstance(g, bytes) else g.build()) for n, g in good]
        files += [("bad-" + case[0], case[1]) for case in bad]
        for name, raw in files:
            if raw and len(raw) <= largest:
                write(out / ending[1:] / name, raw)
    for name, doc in CONFIGS.items():
        write(out / "hf_config" / f"{name}.json", doc)


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(pathlib.Path(sys.argv[2]))
        sys.exit()
    main(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).touch()

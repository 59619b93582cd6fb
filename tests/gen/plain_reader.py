"""A second reader of safetensors and GGUF, written apart from src/read and as plainly as possible:
whole file in memory, no limits, no checks beyond what slicing does. The tests compare the two.

Block sizes are sums over the fields of each block, as ggml-common.h lists them, so that a wrong
number in the C table does not appear here by copying."""

import json
import struct

H, F = 2, 4  # half, float

# number: (name, elements per block, bytes per block)
GGML = {
    0: ("F32", 1, F),
    1: ("F16", 1, H),
    2: ("Q4_0", 32, H + 32 // 2),
    3: ("Q4_1", 32, 2 * H + 32 // 2),
    6: ("Q5_0", 32, H + 4 + 32 // 2),
    7: ("Q5_1", 32, 2 * H + 4 + 32 // 2),
    8: ("Q8_0", 32, H + 32),
    9: ("Q8_1", 32, 2 * H + 32),
    10: ("Q2_K", 256, 2 * H + 256 // 16 + 256 // 4),
    11: ("Q3_K", 256, H + 256 // 4 + 256 // 8 + 12),
    12: ("Q4_K", 256, 2 * H + 12 + 256 // 2),
    13: ("Q5_K", 256, 2 * H + 12 + 256 // 2 + 256 // 8),
    14: ("Q6_K", 256, H + 256 // 16 + 3 * 256 // 4),
    15: ("Q8_K", 256, F + 256 + 256 // 16 * 2),
    16: ("IQ2_XXS", 256, H + 256 // 8 * 2),
    17: ("IQ2_XS", 256, H + 256 // 8 * 2 + 256 // 32),
    18: ("IQ3_XXS", 256, H + 3 * 256 // 8),
    19: ("IQ1_S", 256, H + 256 // 8 + 256 // 16),
    20: ("IQ4_NL", 32, H + 32 // 2),
    21: ("IQ3_S", 256, H + 13 * 256 // 32 + 256 // 64),
    22: ("IQ2_S", 256, H + 256 // 4 + 256 // 16),
    23: ("IQ4_XS", 256, H + 2 + 256 // 64 + 256 // 2),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 256 // 8 + 256 // 16 + 256 // 32),
    30: ("BF16", 1, 2),
    31: ("Q4_0", 32, H + 32 // 2),
    32: ("Q4_0", 32, H + 32 // 2),
    33: ("Q4_0", 32, H + 32 // 2),
    34: ("TQ1_0", 256, H + 256 // 64 + (256 - 4 * 256 // 64) // 5),
    35: ("TQ2_0", 256, H + 256 // 4),
    36: ("IQ4_NL", 32, H + 32 // 2),
    37: ("IQ4_NL", 32, H + 32 // 2),
    38: ("IQ4_NL", 32, H + 32 // 2),
    39: ("MXFP4", 32, 1 + 32 // 2),
    40: ("NVFP4", 64, 64 // 16 + 64 // 2),
    41: ("Q1_0", 128, H + 128 // 8),
    42: ("Q2_0", 64, H + 64 // 4),
}

SAFETENSORS_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F16": 16,
    "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}

KEPT = 512  # longer arrays are counted only


def product(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def read_safetensors(path):
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    metadata = header.pop("__metadata__", None)
    tensors = []
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        bits = SAFETENSORS_BITS.get(entry["dtype"])
        if bits:
            assert product(entry["shape"]) * bits == (end - begin) * 8, name
        tensors.append({"name": name, "type": entry["dtype"] if bits else "unknown",
                        "dims": entry["shape"], "bytes": end - begin, "offset": 8 + n + begin})
    return {"tensors": sorted(tensors, key=lambda t: t["name"].encode()), "metadata": metadata}


class Bytes:
    def __init__(self, data):
        self.data, self.at, self.order, self.size = data, 0, "<", "Q"

    def take(self, form):
        form = self.order + form
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.take(self.size)
        self.at += n
        return self.data[self.at - n : self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, n = self.take("I"), self.take(self.size)
            items = [self.value(inner) for _ in range(n)]
            return items if n <= KEPT else {"n": n}
        value = self.take("BbHhIifB--Qqd"[kind])
        return bool(value) if kind == 7 else value


def read_gguf(path):
    b = Bytes(path.read_bytes())
    magic = b.data[:4]
    b.at = 4
    version = b.take("I")
    if magic == b"FUGG" or version > 0xFFFF:
        b.order, b.at = ">", 4
        version = b.take("I")
    b.size = "I" if version == 1 else "Q"
    n_tensors, n_keys = b.take(b.size), b.take(b.size)
    metadata = {}
    for _ in range(n_keys):
        key = b.text()
        metadata[key] = b.value(b.take("I"))
    tensors = []
    for _ in range(n_tensors):
        name = b.text()
        dims = [b.take(b.size) for _ in range(b.take("I"))]
        number, offset = b.take("I"), b.take("Q")
        label, block, block_bytes = GGML.get(number, ("unknown", 1, 0))
        tensors.append({"name": name, "type": label, "dims": dims[::-1], "offset": offset,
                        "bytes": product(dims) // block * block_bytes})
    align = metadata.get("general.alignment", 32)
    start = -(-b.at // align) * align
    for t in tensors:
        t["offset"] += start
    ordered = sorted(tensors, key=lambda t: t["offset"])
    for t, after in zip(ordered, [t["offset"] for t in ordered[1:]] + [len(b.data)]):
        if t["type"] == "unknown":
            t["bytes"] = after - t["offset"]
    return {"tensors": sorted(tensors, key=lambda t: t["name"].encode()), "metadata": metadata}


def read(path):
    return read_gguf(path) if path.suffix == ".gguf" else read_safetensors(path)

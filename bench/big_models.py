"""Writes models that are huge in their headers' eyes and almost nothing on disk: the data is a
hole in the file.

    big_models.py OUT    OUT/one.safetensors   100 GB, 1,000 tensors
                         OUT/many.safetensors  680 GB, 90,000 tensors
                         OUT/sharded/          the same 90,000 in 160 files with an index
                         OUT/model.gguf        100 GB, 1,000 tensors, a vocabulary of 150,000
                         OUT/large.onnx        500 MB in 800 tensors, within the file
                         OUT/bins/             138 GB of Llama 70B in 15 .bin files with an index
                         OUT/nodes.onnx        100,000 nodes, 20,000 small weights"""

import json
import pathlib
import struct
import sys


def sparse(path, head, data_bytes):
    with path.open("wb") as f:
        f.write(head)
        f.truncate(len(head) + data_bytes)


def names(n):
    parts = ["gate_proj", "up_proj", "down_proj"]
    for i in range(n):
        layer, expert = divmod(i // 6, 256)
        tail = "weight_scale_inv" if i % 2 else "weight"
        yield f"model.layers.{layer}.mlp.experts.{expert}.{parts[i // 2 % 3]}.{tail}"


def safetensors(path, some_names, tensor_bytes):
    at, header = 0, {"__metadata__": {"format": "pt"}}
    for name in sorted(some_names):
        header[name] = {"dtype": "BF16", "shape": [tensor_bytes // 2048, 1024],
                        "data_offsets": [at, at + tensor_bytes]}
        at += tensor_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    sparse(path, struct.pack("<Q", len(text)) + text, at)


def sharded(folder, n, shards, tensor_bytes):
    folder.mkdir(parents=True, exist_ok=True)
    every, where = sorted(names(n)), {}
    for i in range(shards):
        own = every[i * n // shards : (i + 1) * n // shards]
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        safetensors(folder / file, own, tensor_bytes)
        where.update((name, file) for name in own)
    index = {"metadata": {"total_size": n * tensor_bytes}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (folder / "config.json").write_text('{"model_type": "deepseek_v3"}')


def llama_70b():
    h, i = 8192, 28672
    shapes = {"model.embed_tokens.weight": (32000, h)}
    for n in range(80):
        p = f"model.layers.{n}."
        shapes.update({p + "self_attn.q_proj.weight": (h, h), p + "self_attn.o_proj.weight": (h, h),
                       p + "self_attn.k_proj.weight": (1024, h),
                       p + "self_attn.v_proj.weight": (1024, h), p + "mlp.gate_proj.weight": (i, h),
                       p + "mlp.up_proj.weight": (i, h), p + "mlp.down_proj.weight": (h, i),
                       p + "input_layernorm.weight": (h,),
                       p + "post_attention_layernorm.weight": (h,)})
    return {**shapes, "model.norm.weight": (h,), "lm_head.weight": (32000, h)}


def torch_zip(path, shapes):
    """As torch.save lays it out, every size in Zip64 fields, storages as holes."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/gen"))
    import torch_files
    data, storages = torch_files.dump(
        {n: torch_files.tensor(s, "HalfStorage") for n, s in shapes.items()})
    entries = [("archive/data.pkl", data, len(data))]
    entries += [(f"archive/data/{s.key}", b"", s.bytes()) for s in storages]
    wide, central = 0xFFFFFFFF, b""
    with path.open("wb") as f:
        for name, content, size in entries:
            at, raw = f.tell(), name.encode()
            f.write(struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 33, 0, wide, wide,
                                len(raw), 20) + raw + struct.pack("<HHQQ", 1, 16, size, size))
            f.write(content)
            f.seek(size - len(content), 1)
            central += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, 0, 0, 33, 0, wide,
                                   wide, len(raw), 28, 0, 0, 0, 0, wide)
            central += raw + struct.pack("<HHQQQ", 1, 24, size, size, at)
        begin, n = f.tell(), len(entries)
        f.write(central + struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n, n,
                                      len(central), begin))
        f.write(struct.pack("<4sIQI", b"PK\6\7", 0, begin + len(central), 1))
        f.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, wide, wide, 0))


def bins(folder, shards=15):
    folder.mkdir(parents=True, exist_ok=True)
    shapes, where = llama_70b(), {}
    every = list(shapes)
    for i in range(shards):
        own = every[i * len(every) // shards : (i + 1) * len(every) // shards]
        file = f"pytorch_model-{i + 1:05}-of-{shards:05}.bin"
        torch_zip(folder / file, {name: shapes[name] for name in own})
        where.update((name, file) for name in own)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    (folder / "config.json").write_text('{"model_type": "llama"}')


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def gguf(path, n, tensor_bytes, tokens):
    keys = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    words = b"".join(text(f"token{i}") for i in range(tokens))
    keys += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, tokens) + words
    keys += text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, tokens) + bytes(4 * tokens)
    table = b"".join(text(f"blk.{i}.ffn_up.weight") + struct.pack(
        "<IQQIQ", 2, 1024, tensor_bytes // 2048, 1, i * tensor_bytes) for i in range(n))
    head = b"GGUF" + struct.pack("<IQQ", 3, n, 3) + keys + table
    sparse(path, head + bytes(-len(head) % 32), n * tensor_bytes)


def varint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7f | 0x80])
        v >>= 7
    return out + bytes([v])


def field(number, value):
    """One protobuf field: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_node(op, inputs, output):
    names = b"".join(field(1, name.encode()) for name in inputs)
    return field(1, names + field(2, output.encode()) + field(3, f"/layers.{output}/{op}".encode())
                 + field(4, op.encode()) + field(5, field(1, b"axis") + field(3, 1)
                                                 + field(20, 2)))


def onnx_value(number, name):
    dims = b"".join(field(1, field(1, n)) for n in (1, 1024))
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, dims))))


def onnx(path, n_nodes, n_weights, shape):
    """The weights' bytes are holes where they are large, so the parts are written one by one."""
    length = 4 * shape[0] * shape[1]
    parts = [(b"", 0)]
    for i in range(n_nodes):
        before, weight = f"v{i - 1}" if i else "x", f"w{i % n_weights}"
        parts.append((onnx_node("MatMul" if i % 2 else "Add", [before, weight], f"v{i}"), 0))
    for i in range(n_weights):
        dims = b"".join(field(1, n) for n in shape)
        head = dims + field(2, 1) + field(8, f"w{i}".encode()) + varint(9 << 3 | 2) + varint(length)
        parts.append((varint(5 << 3 | 2) + varint(len(head) + length) + head, length))
    parts.append((field(2, b"graph") + onnx_value(11, b"x")
                  + onnx_value(12, f"v{n_nodes - 1}".encode()), 0))
    total = sum(len(head) + hole for head, hole in parts)
    with path.open("wb") as f:
        f.write(field(1, 8) + field(2, b"bench") + field(8, field(1, b"") + field(2, 17)))
        f.write(varint(7 << 3 | 2) + varint(total))
        for head, hole in parts:
            f.write(head)
            f.seek(hole, 1)
        f.truncate(f.tell())


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    safetensors(out / "one.safetensors", names(1000), 100 << 20)
    safetensors(out / "many.safetensors", names(90000), 7 << 20)
    sharded(out / "sharded", 90000, 160, 7 << 20)
    bins(out / "bins")
    gguf(out / "model.gguf", 1000, 100 << 20, 150000)
    onnx(out / "large.onnx", 1000, 800, (160, 1024))
    onnx(out / "nodes.onnx", 100000, 20000, (1, 64))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

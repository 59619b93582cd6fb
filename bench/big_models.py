"""Writes models that are huge in their headers' eyes and almost nothing on disk: the data is a
hole in the file.

    big_models.py OUT    OUT/one.safetensors   100 GB, 1,000 tensors
                         OUT/many.safetensors  680 GB, 90,000 tensors
                         OUT/sharded/          the same 90,000 in 160 files with an index
                         OUT/model.gguf        100 GB, 1,000 tensors, a vocabulary of 150,000"""

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


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    safetensors(out / "one.safetensors", names(1000), 100 << 20)
    safetensors(out / "many.safetensors", names(90000), 7 << 20)
    sharded(out / "sharded", 90000, 160, 7 << 20)
    gguf(out / "model.gguf", 1000, 100 << 20, 150000)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

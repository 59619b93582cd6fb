"""Holds tests/gen/plain_reader.py, against which the unit tests hold src/read, to the packages
`gguf` and `safetensors`, where they are installed (they are not needed for anything else).

    compare_readers.py FOLDER...    every .gguf and .safetensors file below"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "gen"))
import plain_reader  # noqa: E402

try:
    import gguf
    from safetensors import safe_open
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)


def with_gguf(path):
    reader = gguf.GGUFReader(path)
    return {t.name: (t.tensor_type.name, [int(d) for d in t.shape][::-1], int(t.n_bytes),
                     int(t.data_offset)) for t in reader.tensors}


def with_safetensors(path):
    """The package tells names, shapes and types; the bytes follow from its own check of them."""
    with safe_open(path, "numpy") as f:
        parts = {name: f.get_slice(name) for name in f.keys()}
        return {name: (p.get_dtype(), list(p.get_shape())) for name, p in parts.items()}


def compare(path):
    plain = plain_reader.read(path)["tensors"]
    if path.suffix == ".gguf":
        ours = {t["name"]: (t["type"], t["dims"], t["bytes"], t["offset"]) for t in plain}
        return ours, with_gguf(path)
    return {t["name"]: (t["type"], t["dims"]) for t in plain}, with_safetensors(path)


def main(folders):
    same, refused = 0, []
    files = [f for folder in folders for ending in ("gguf", "safetensors")
             for f in sorted(pathlib.Path(folder).rglob(f"*.{ending}"))]
    for path in files:
        try:
            ours, theirs = compare(path)
        except Exception as e:  # what a package does not read is listed, not compared
            refused.append(f"{path}: {type(e).__name__}: {str(e)[:100]}")
            continue
        if ours != theirs:
            print(f"{path} differs:\n  {ours}\n  {theirs}")
            sys.exit(1)
        same += 1
    print(f"{same} of {len(files)} files agree; not compared:")
    print("\n".join(refused))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Writes small ONNX files of every shape that the reader must know.

    onnx_files.py --corpus DIR    into DIR/onnx/, as starting points for the fuzzer

Field numbers: onnx/onnx.proto of github.com/onnx/onnx."""
import pathlib
import struct
import sys

FLOAT, UINT8, INT64, STRING, BOOL, FLOAT16, BFLOAT16, INT4, INT2 = 1, 2, 7, 8, 9, 10, 16, 22, 26


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def data(field, v):
    v = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(v)) + v


def real(field, v):
    return varint(field << 3 | 5) + struct.pack("<f", v)


def packed(field, values):
    return data(field, b"".join(varint(v) for v in values))


def names(field, text):
    return b"".join(data(field, "" if name == "-" else name) for name in text.split())


def dim(d):
    if d is None:
        return b""
    return number(1, d) if isinstance(d, int) else data(2, d)


def value(name, kind=FLOAT, dims=()):
    shape = b"" if dims is False else data(2, b"".join(data(1, dim(d)) for d in dims))
    return data(1, name) + data(2, data(1, number(1, kind) + shape))


def tensor(name, kind, dims, stored=b""):
    return b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + stored


def entry(key, text):
    return data(1, key) + data(2, text)


def external(name, dims, **entries):
    return tensor(name, FLOAT, dims, number(14, 1) + b"".join(
        data(13, entry(key, str(v))) for key, v in entries.items()))


def attribute(name, kind, fields):
    return data(5, data(1, name) + fields + number(20, kind))


def node(op, reads, writes, *attributes, name="", domain=""):
    return data(1, names(1, reads) + names(2, writes) + data(3, name) + data(4, op)
                + data(7, domain) + b"".join(attributes))


def graph(*parts, name="g"):
    return data(2, name) + b"".join(parts)


def model(body, *more, opset=17, ir=8):
    return (number(1, ir) + data(2, "pytorch") + data(3, "2.1") + data(7, body)
            + data(8, data(1, "") + number(2, opset)) + b"".join(more))


def zeros(n):
    return data(9, bytes(n))


def convolution():
    return model(graph(
        node("Conv", "x w -", "y", attribute("pads", 7, packed(8, [1, 1, 1, 1])),
             attribute("auto_pad", 3, data(4, "NOTSET")), name="/layer1/layer1.0/conv/Conv"),
        node("BatchNormalization", "y s b m v", "z", attribute("epsilon", 1, real(2, 1e-5))),
        data(5, tensor("w", FLOAT, [2, 3, 1, 1], zeros(24))),
        *(data(5, tensor(n, FLOAT, [2], real(4, 1.0) + real(4, 2.0))) for n in "sbmv"),
        data(11, value("x", FLOAT, ["batch", 3, None, -1])),
        data(11, value("w", FLOAT, [2, 3, 1, 1])),
        data(12, value("z", FLOAT, False)), data(13, value("y", FLOAT, ["batch", 2, 8, 8]))))


def branches():
    inner = graph(node("Add", "x w", "a"), data(5, tensor("w", FLOAT, [2], zeros(8))),
                  data(12, value("a", FLOAT, False)), name="then")
    loop = graph(node("Add", "v y", "w"), node("Identity", "go", "on"),
                 data(11, value("i", INT64)), data(11, value("go", BOOL)), data(11, value("v")),
                 data(12, value("on", BOOL)), data(12, value("w")), name="body")
    outer = graph(node("Neg", "w", "b"),
                  node("Loop", "n k b", "c", attribute("body", 5, data(6, loop))),
                  data(5, tensor("w", FLOAT, [2], zeros(8))), data(12, value("c")), name="else")
    return model(graph(
        node("If", "k", "z", attribute("then_branch", 5, data(6, inner)),
             attribute("else_branch", 5, data(6, outer))),
        node("Relu", "x", "y"), data(11, value("x", FLOAT, [2])), data(11, value("k", BOOL)),
        data(11, value("n", INT64)), data(12, value("z", FLOAT, [2]))))


def functions():
    ref = data(5, data(1, "alpha") + number(20, 1) + data(21, "slope"))
    act = (data(1, "Act") + names(4, "in") + names(5, "out") + names(6, "slope")
           + data(7, names(1, "in") + names(2, "out") + data(4, "LeakyRelu") + ref)
           + data(9, number(2, 17)) + data(10, "my") + data(11, data(1, "beta") + number(3, 3)
                                                            + number(20, 2))
           + data(12, value("out")) + data(13, "v2"))
    call = data(1, names(1, "x") + names(2, "y") + data(4, "Act") + data(7, "my") + data(8, "v2"))
    return model(graph(call, data(11, value("x")), data(12, value("y"))), data(25, act),
                 data(8, data(1, "my") + number(2, 1)))


def types():
    stored = [
        tensor("i64", INT64, [3], packed(7, [1, 2, -1])),
        tensor("bf16", BFLOAT16, [2], packed(5, [16256, 16256])),
        tensor("i4", INT4, [5], zeros(3)), tensor("i2", INT2, [5], packed(5, [1, 2])),
        tensor("text", STRING, [2], data(6, "ab") + data(6, "c")),
        tensor("odd", 99, [2], zeros(6)), tensor("six", 27, [5], zeros(4)),
        tensor("none", FLOAT, [7, 3]), tensor("empty", FLOAT, [0, 4]),
        tensor("f64", 11, [2], data(10, struct.pack("<dd", 1, 2))),
        tensor("u64", 13, [2], packed(11, [1, 1 << 63])),
        tensor("c64", 14, [1], data(4, struct.pack("<ff", 1, 2)))]
    return model(graph(*(data(5, t) for t in stored)), ir=13)


def constants():
    sparse = (data(1, tensor("v", FLOAT, [2], real(4, 1.0) + real(4, 2.0)))
              + data(2, tensor("i", INT64, [2], packed(7, [1, 4]))) + number(3, 2) + number(3, 3))
    maybe = data(9, data(1, data(1, number(1, FLOAT16))))
    ten = data(5, tensor("", FLOAT, [10], zeros(40)))
    return model(graph(
        node("Constant", "", "w", attribute("value", 4, ten)),
        node("Constant", "", "s", attribute("sparse_value", 11, data(22, sparse))),
        node("Constant", "", "f", attribute("value_floats", 6, real(7, 1.0) + real(7, 2.0))),
        node("Constant", "", "t", attribute("value_strings", 8, data(9, "a") + data(9, "b"))),
        node("Constant", "", "i", attribute("value_int", 2, b"")),
        node("Optional", "", "o", attribute("type", 13, data(14, maybe))),
        node("Nested", "w", "n", attribute("bodies", 10, data(11, graph(name="a"))
                                           + data(11, graph(name="b")))),
        node("List", "", "l", attribute("ts", 9, data(10, tensor("", UINT8, [1], zeros(1)))
                                        + data(10, tensor("", UINT8, [1], zeros(1))))),
        data(15, sparse), data(12, value("w", FLOAT, [10]))))


def sequences():
    element = data(1, number(1, FLOAT) + data(2, data(1, number(1, 3))))
    return model(graph(
        data(11, data(1, "list") + data(2, data(4, data(1, element)))),
        data(11, data(1, "map") + data(2, data(5, number(1, INT64)))),
        data(11, data(1, "sparse") + data(2, data(8, number(1, FLOAT)))),
        node("SequenceLength", "list", "n"), data(12, value("n", INT64))),
        data(14, entry("names", "{0: 'cat'}")), data(20, b""))


def externals():
    return model(graph(data(5, external("a", [4], location="a.bin", offset=16, length=16)),
                       data(5, external("b", [4], location="./sub/b.bin"))))


def unsorted():
    scopes = data(9, entry("pkg.torch.onnx.name_scopes", "['', 'layer1', 'layer1.conv', 'conv2d']"))
    body = graph(node("Add", "d x", "e"), data(12, value("e", FLOAT, False)))
    return model(graph(
        node("Neg", "b", "c", name="same"), node("Abs", "a", "b", name="same"),
        node("If", "k", "z", attribute("then_branch", 5, data(6, body))),
        data(1, names(1, "x") + names(2, "a") + data(4, "Exp") + scopes), node("Log", "c", "d"),
        data(11, value("x")), data(11, value("x")), data(11, value("k", BOOL)),
        data(12, value("z"))))


def broken():
    yield "bad-cycle", model(graph(node("Neg", "b", "a"), node("Abs", "a", "b")))
    yield "bad-undefined", model(graph(node("Neg", "a", "b")))
    yield "bad-twice", model(graph(node("A", "", "b"), node("A", "", "b")))
    yield "bad-size", model(graph(data(5, tensor("w", FLOAT, [2], zeros(9)))))
    yield "bad-shape", model(graph(data(5, tensor("w", FLOAT, [1 << 62, 8]))))
    yield "bad-outside", model(graph(data(5, external("w", [1], location="../a"))))
    yield "bad-nowhere", model(graph(data(5, tensor("w", FLOAT, [1], number(14, 1)))))
    yield "bad-no-graph", number(1, 8) + data(2, "x")
    yield "bad-group", b"\x0b\x14\x0c"
    yield "no-opset", number(1, 99) + data(7, graph(name=""))
    deep = graph()
    for _ in range(35):
        deep = graph(node("Op", "", "y", attribute("body", 5, data(6, deep))))
    yield "bad-deep", model(deep)


def corpus():
    for make in (convolution, branches, functions, types, constants, sequences, externals,
                 unsorted):
        yield make.__name__, make()
    yield from broken()


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "--corpus":
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2]) / "onnx"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in corpus():
        (folder / f"{name}.onnx").write_bytes(content)


if __name__ == "__main__":
    main()

"""Writes small networks twice: as ONNX, the way exporters take modules apart, and as what trivet
reads without a graph (a configuration, a description layer by layer). Both must count the same.

    program_files.py DIR STAMP
    program_files.py --corpus DIR    the graphs without their weights' numbers, into DIR/program/"""
import json
import pathlib
import struct
import sys

from onnx_files import (FLOAT, INT64, attribute, data, graph, model, node, number, packed, real,
                        tensor, value)

HIDDEN, HEADS, INNER, LAYERS, WORDS, PLACES, LABELS = 32, 4, 64, 3, 100, 16, 3


class Net:
    hollow = False # sizes without numbers

    def __init__(self):
        self.nodes, self.weights, self.n = [], [], 0

    def weight(self, name, *dims):
        size = 4
        for d in dims:
            size *= d
        numbers = b"" if Net.hollow else data(9, bytes(size))
        self.weights.append(data(5, tensor(name, FLOAT, list(dims), numbers)))
        return name

    def ints(self, name, dims, values):
        self.weights.append(data(5, tensor(name, INT64, dims, data(
            9, b"".join(struct.pack("<q", v) for v in values)))))
        return name

    def scalar(self, v):
        self.n += 1
        name = f"/Constant_{self.n}_output_0"
        self.weights.append(data(5, tensor(name, FLOAT, [], data(9, struct.pack("<f", v)))))
        return name

    def op(self, kind, *reads, path="", **attributes):
        self.n += 1
        out = f"v{self.n}"
        fields = [attribute(k, 7, packed(8, v)) if isinstance(v, list)
                  else attribute(k, 2, number(3, v)) if isinstance(v, int)
                  else attribute(k, 1, real(2, v)) for k, v in attributes.items()]
        self.nodes.append(node(kind, " ".join(reads), out, *fields, name=f"{path}/{kind}_{self.n}"))
        return out

    def file(self, inputs, out, width):
        return model(graph(*self.nodes, *self.weights, *(data(11, i) for i in inputs),
                           data(12, value(out, FLOAT, ["batch", width]))))


def linear(net, x, path, n_in, n_out):
    module = path.strip("/").replace("/", ".")
    w = net.weight(f"onnx::MatMul_{net.n}", n_in, n_out)
    return net.op("Add", net.weight(module + ".bias", n_out), net.op("MatMul", x, w, path=path),
                  path=path)


def layer_norm(net, x, path, width):
    module = path.strip("/").replace("/", ".")
    d = net.op("Sub", x, net.op("ReduceMean", x, path=path, axes=[-1]), path=path)
    v = net.op("ReduceMean", net.op("Pow", d, net.scalar(2.0), path=path), path=path, axes=[-1])
    root = net.op("Sqrt", net.op("Add", v, net.scalar(1e-12), path=path), path=path)
    y = net.op("Mul", net.op("Div", d, root, path=path), net.weight(module + ".weight", width),
               path=path)
    return net.op("Add", y, net.weight(module + ".bias", width), path=path)


def gelu(net, x, path):
    e = net.op("Erf", net.op("Div", x, net.scalar(2 ** 0.5), path=path), path=path)
    y = net.op("Mul", x, net.op("Add", e, net.scalar(1.0), path=path), path=path)
    return net.op("Mul", y, net.scalar(0.5), path=path)


def heads(net, x, path, order):
    shape = net.ints(f"onnx::Reshape_{net.n}", [4], [0, 0, HEADS, HIDDEN // HEADS])
    return net.op("Transpose", net.op("Reshape", x, shape, path=path), path=path, perm=order)


def encoder_layer(net, x, path):
    a = path + "/attention/self"
    q = heads(net, linear(net, x, a + "/query", HIDDEN, HIDDEN), a, [0, 2, 1, 3])
    k = heads(net, linear(net, x, a + "/key", HIDDEN, HIDDEN), a, [0, 2, 3, 1])
    v = heads(net, linear(net, x, a + "/value", HIDDEN, HIDDEN), a, [0, 2, 1, 3])
    scores = net.op("Div", net.op("MatMul", q, k, path=a), net.scalar((HIDDEN / HEADS) ** 0.5),
                    path=a)
    y = net.op("MatMul", net.op("Softmax", scores, path=a, axis=-1), v, path=a)
    back = net.ints(f"onnx::Reshape_{net.n}", [3], [0, 0, HIDDEN])
    y = net.op("Reshape", net.op("Transpose", y, path=a, perm=[0, 2, 1, 3]), back, path=a)
    y = linear(net, y, path + "/attention/output/dense", HIDDEN, HIDDEN)
    x = layer_norm(net, net.op("Add", y, x, path=path + "/attention/output"),
                   path + "/attention/output/LayerNorm", HIDDEN)
    y = gelu(net, linear(net, x, path + "/intermediate/dense", HIDDEN, INNER),
             path + "/intermediate/act")
    y = linear(net, y, path + "/output/dense", INNER, HIDDEN)
    return layer_norm(net, net.op("Add", y, x, path=path + "/output"), path + "/output/LayerNorm",
                      HIDDEN)


def encoder():
    net = Net()
    e = "/bert/embeddings"
    words = net.op("Gather", net.weight("bert.embeddings.word_embeddings.weight", WORDS, HIDDEN),
                   "input_ids", path=e + "/word_embeddings")
    kinds = net.op("Gather", net.weight("bert.embeddings.token_type_embeddings.weight", 2, HIDDEN),
                   "token_type_ids", path=e + "/token_type_embeddings")
    one = net.ints("one", [1], [1])
    length = net.op("Gather", net.op("Shape", "input_ids", path=e), one, path=e, axis=0)
    places = net.op("Slice", net.ints("bert.embeddings.position_ids", [1, PLACES], range(PLACES)),
                    net.ints("zero", [1], [0]), length, one, path=e)
    table = net.weight("bert.embeddings.position_embeddings.weight", PLACES, HIDDEN)
    places = net.op("Gather", table, places, path=e + "/position_embeddings")
    x = net.op("Add", net.op("Add", words, kinds, path=e), places, path=e)
    x = layer_norm(net, x, e + "/LayerNorm", HIDDEN)
    for i in range(LAYERS):
        x = encoder_layer(net, x, f"/bert/encoder/layer.{i}")
    first = net.op("Gather", x, net.ints("/first", [], [0]), path="/bert/pooler", axis=1)
    y = net.op("Tanh", linear(net, first, "/bert/pooler/dense", HIDDEN, HIDDEN),
               path="/bert/pooler/activation")
    y = linear(net, y, "/classifier", HIDDEN, LABELS)
    ids = [value(n, INT64, ["batch", "sequence"]) for n in ("input_ids", "token_type_ids")]
    return net.file(ids, y, LABELS)


def encoder_config():
    return {"model_type": "bert", "architectures": ["BertForSequenceClassification"],
            "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": INNER, "vocab_size": WORDS, "max_position_embeddings": PLACES,
            "type_vocab_size": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0, "torch_dtype": "float32",
            "id2label": {str(i): str(i) for i in range(LABELS)}}


def decoder_layer(net, x, path, i):
    a = path + "/attn"
    y = layer_norm(net, x, path + "/ln_1", HIDDEN)
    q = heads(net, linear(net, y, a + "/q", HIDDEN, HIDDEN), a, [0, 2, 1, 3])
    k = heads(net, linear(net, y, a + "/k", HIDDEN, HIDDEN), a, [0, 2, 1, 3])
    v = heads(net, linear(net, y, a + "/v", HIDDEN, HIDDEN), a, [0, 2, 1, 3])
    k = net.op("Concat", f"past_key_values.{i}.key", k, path=a, axis=2)
    v = net.op("Concat", f"past_key_values.{i}.value", v, path=a, axis=2)
    scores = net.op("MatMul", q, net.op("Transpose", k, path=a, perm=[0, 1, 3, 2]), path=a)
    scores = net.op("Div", scores, net.scalar((HIDDEN / HEADS) ** 0.5), path=a)
    y = net.op("MatMul", net.op("Softmax", scores, path=a, axis=-1), v, path=a)
    back = net.ints(f"onnx::Reshape_{net.n}", [3], [0, 0, HIDDEN])
    y = net.op("Reshape", net.op("Transpose", y, path=a, perm=[0, 2, 1, 3]), back, path=a)
    x = net.op("Add", linear(net, y, a + "/o", HIDDEN, HIDDEN), x, path=path)
    y = layer_norm(net, x, path + "/ln_2", HIDDEN)
    y = linear(net, gelu(net, linear(net, y, path + "/mlp/up", HIDDEN, INNER), path + "/mlp/act"),
               path + "/mlp/down", INNER, HIDDEN)
    return net.op("Add", y, x, path=path), k, v


def decoder():
    """With the keys and values of earlier tokens as inputs, as exporters for serving write it."""
    net = Net()
    x = net.op("Gather", net.weight("wte.weight", WORDS, HIDDEN), "input_ids", path="/wte")
    ids, kept = [value("input_ids", INT64, ["batch_size", "sequence_length"])], []
    for i in range(LAYERS):
        x, k, v = decoder_layer(net, x, f"/h.{i}", i)
        kept += [k, v]
        ids += [value(f"past_key_values.{i}.{part}", FLOAT,
                      ["batch_size", HEADS, "past_sequence_length", HIDDEN // HEADS])
                for part in ("key", "value")]
    y = net.op("MatMul", layer_norm(net, x, "/ln_f", HIDDEN),
               net.weight("onnx::MatMul_head", HIDDEN, WORDS), path="/lm_head")
    return model(graph(*net.nodes, *net.weights, *(data(11, i) for i in ids),
                       data(12, value(y, FLOAT, ["batch_size", "sequence_length", WORDS])),
                       *(data(12, value(v, FLOAT, ["batch_size", HEADS, "total_sequence_length",
                                                   HIDDEN // HEADS])) for v in kept)))


def convolution(net, x, path, n_in, n_out, stride, folded):
    module = path.strip("/").replace("/", ".")
    pads = dict(pads=[1, 1, 1, 1], strides=[stride, stride], kernel_shape=[3, 3])
    if folded == "instance": # nnU-Net's modules run under another name than they are registered
        y = net.op("Conv", x, net.weight(module + ".conv.weight", n_out, n_in, 3, 3),
                   net.weight(module + ".conv.bias", n_out), path=path + "/all/conv", **pads)
        return net.op("InstanceNormalization", y, net.weight(module + ".norm.weight", n_out),
                      net.weight(module + ".norm.bias", n_out), path=path + "/all/norm",
                      epsilon=1e-5)
    if folded:
        w = net.weight(f"onnx::Conv_{net.n}", n_out, n_in, 3, 3)
        return net.op("Conv", x, w, net.weight(f"onnx::Conv_{net.n}_b", n_out),
                      path=path + "/conv", **pads)
    y = net.op("Conv", x, net.weight(module + ".conv.weight", n_out, n_in, 3, 3),
               path=path + "/conv", **pads)
    return net.op("BatchNormalization", y, net.weight(module + ".norm.weight", n_out),
                  net.weight(module + ".norm.bias", n_out),
                  net.weight(module + ".norm.running_mean", n_out),
                  net.weight(module + ".norm.running_var", n_out), path=path + "/norm",
                  epsilon=1e-5)


def network(folded, batch="batch", odd=False):
    net, act = Net(), "LeakyRelu" if folded == "instance" else "Relu"
    x = net.op(act, convolution(net, "image", "/stem", 3, 8, 2, folded), path="/stem/act")
    x = net.op("MaxPool", x, path="/pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for i in range(3):
        path = f"/blocks.{i}"
        y = net.op(act, convolution(net, x, path + "/first", 8, 8, 1, folded),
                   path=path + "/act")
        y = convolution(net, y, path + "/second", 8, 8, 1, folded)
        x = net.op(act, net.op("Add", y, x, path=path), path=path + "/act")
    if odd:
        net.nodes.append(node("Mystery", x, "odd", name="/odd/Mystery", domain="our.own"))
        x = "odd"
        net.nodes.append(node("Reshape", "odd shape", "shaped", name="/odd/Reshape"))
        net.ints("shape", [4], [0, 8, 8, 8])
        x = "shaped"
    x = net.op("Flatten", net.op("GlobalAveragePool", x, path="/pool"), path="")
    y = net.op("Gemm", x, net.weight("head.weight", 10, 8), net.weight("head.bias", 10),
               path="/head", transB=1)
    more = [data(8, data(1, "our.own") + number(2, 1))] if odd else []
    return net.file([value("image", FLOAT, [batch, 3, 32, 32])], y, 10) + b"".join(more)


def description(norm="batch", act="relu"):
    conv = {"op": "conv", "out": 8, "kernel": 3, "norm": norm}
    if norm == "instance":
        conv["bias"] = True
    return {"schema": "trivet.model/1", "name": "small", "torch_dtype": "float32",
            "input": {"channels": 3, "size": [32, 32]},
            "blocks": {"basic": {"layers": [
                {"op": "residual", "body": [dict(conv, act=act), conv], "act": act}]}},
            "layers": [dict(conv, stride=2, act=act),
                       {"op": "maxpool", "kernel": 3, "stride": 2, "pad": 1},
                       {"op": "basic", "repeat": 3}, {"op": "globalpool"},
                       {"op": "linear", "out": 10}]}


def corpus(folder):
    global LAYERS
    Net.hollow, LAYERS = True, 2
    out = pathlib.Path(folder) / "program"
    out.mkdir(parents=True, exist_ok=True)
    for name, content in (("encoder", encoder()), ("decoder", decoder()),
                          ("network", network(False)), ("folded", network(True)),
                          ("batch", network(False, batch=4)), ("odd", network(False, odd=True))):
        (out / (name + ".onnx")).write_bytes(content)


def main(folder, stamp):
    if folder == "--corpus":
        corpus(stamp)
        return
    out = pathlib.Path(folder)
    (out / "encoder").mkdir(parents=True, exist_ok=True)
    (out / "encoder.onnx").write_bytes(encoder())
    (out / "encoder" / "config.json").write_text(json.dumps(encoder_config()))
    (out / "decoder.onnx").write_bytes(decoder())
    (out / "network.onnx").write_bytes(network(False))
    (out / "network-folded.onnx").write_bytes(network(True))
    (out / "network-batch.onnx").write_bytes(network(False, batch=4))
    (out / "network-odd.onnx").write_bytes(network(False, odd=True))
    (out / "network-instance.onnx").write_bytes(network("instance"))
    (out / "network-instance.json").write_text(json.dumps(description("instance", "leaky_relu")))
    (out / "network.json").write_text(json.dumps(description()))
    pathlib.Path(stamp).write_text("")


if __name__ == "__main__":
    main(*sys.argv[1:])

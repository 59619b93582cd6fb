"""Writes small Paddle files of every shape that the readers must know.

    paddle_files.py --corpus DIR    into DIR/paddle_program/, paddle_params/, paddle_pir/ and so on,
                                    as starting points for the fuzzers

    paddle_files.py --models DIR    DIR/small/ and DIR/cut/: a model with parameters and settings

Field numbers: Paddle, paddle/fluid/framework/framework.proto."""
import json
import pathlib
import struct
import sys

BOOL, INT64, FP32, BF16 = 0, 3, 5, 22
TENSOR, FEED, FETCH, ARRAY, RAW = 7, 9, 10, 13, 17


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


def tensor(kind, dims):
    return number(1, kind) + b"".join(number(2, d) for d in dims)


def var(name, dims=(), kind=FP32, persistable=False, what=TENSOR, **flags):
    shape = data(1, tensor(kind, dims))
    holds = {TENSOR: data(3, shape), ARRAY: data(4, shape)}.get(what, b"")
    out = data(1, name) + data(2, number(1, what) + holds)
    out += number(3, 1) if persistable else b""
    for key, v in flags.items():
        out += number({"check_feed": 4, "is_parameter": 5, "stop_gradient": 6}[key], v)
    return data(3, out)


def attr(name, v, kind=None):
    if kind is None:
        first = v[0] if isinstance(v, list) and v else v
        kind = {bool: 6, int: 0, float: 1, str: 2}[type(first)]
        if isinstance(v, list):
            kind = {6: 7, 0: 3, 1: 4, 2: 5}[kind]
    out = data(1, name) + number(2, kind)
    field = {0: 3, 1: 4, 2: 5, 3: 6, 4: 7, 5: 8, 6: 10, 7: 11, 8: 12, 9: 13, 10: 14, 11: 15,
             12: 16, 13: 17, 14: 18, 15: 19}[kind]
    for one in v if isinstance(v, list) else [v]:
        if field in (4, 7):
            out += varint(field << 3 | 5) + struct.pack("<f", one)
        elif field in (16, 19):
            out += varint(field << 3 | 1) + struct.pack("<d", one)
        elif field in (5, 8, 17, 18):
            out += data(field, one)
        else:
            out += number(field, one)
    return data(4, out)


def op(kind, inputs, outputs, *attrs):
    out = b""
    for field, slots in ((1, inputs), (2, outputs)):
        for slot, names in slots.items():
            out += data(field, data(1, slot) + b"".join(data(2, n) for n in names))
    return data(4, out + data(3, kind) + b"".join(attrs))


def block(index, parent, *parts):
    return data(1, number(1, index) + number(2, parent) + b"".join(parts))


def program(*blocks, version=3001001):
    return b"".join(blocks) + (data(4, number(1, version)) if version is not None else b"")


def fully_connected(version=3001001, stack=True):
    frame = attr("op_callstack", ["  File \"train.py\", line 1"]) if stack else b""
    return program(block(
        0, -1,
        var("feed", what=FEED, persistable=True), var("fetch", what=FETCH, persistable=True),
        var("x", [-1, 4], check_feed=1),
        var("fc_0.w_0", [4, 3], persistable=True, is_parameter=1),
        var("fc_0.b_0", [3], persistable=True, is_parameter=1),
        var("fc_0.tmp_0", [-1, 3]), var("fc_0.tmp_1", [-1, 3]),
        op("feed", {"X": ["feed"]}, {"Out": ["x"]}, attr("col", 0)),
        op("mul", {"X": ["x"], "Y": ["fc_0.w_0"]}, {"Out": ["fc_0.tmp_0"]},
           attr("x_num_col_dims", 1), attr("y_num_col_dims", 1), frame),
        op("elementwise_add", {"X": ["fc_0.tmp_0"], "Y": ["fc_0.b_0"]}, {"Out": ["fc_0.tmp_1"]},
           attr("axis", 1), frame),
        op("fetch", {"X": ["fc_0.tmp_1"]}, {"Out": ["fetch"]}, attr("col", 0))), version=version)


def statistics():
    """A batch norm whose statistics are read and written, and every kind of attribute."""
    return program(block(
        0, -1,
        var("feed", what=FEED, persistable=True), var("x", [2, 3, 8, 8]),
        *(var(f"bn.{n}", [3], persistable=True) for n in ("w_0", "b_0", "w_1", "w_2")),
        var("flag", [1], BOOL, persistable=True), var("y", [2, 3, 8, 8]),
        op("feed", {"X": ["feed"]}, {"Out": ["x"]}, attr("col", 0)),
        op("batch_norm", {"X": ["x"], "Scale": ["bn.w_0"], "Bias": ["bn.b_0"], "Mean": ["bn.w_1"],
                          "Variance": ["bn.w_2"]},
           {"Y": ["y"], "MeanOut": ["bn.w_1"], "VarianceOut": ["bn.w_2"]},
           attr("epsilon", 1e-5), attr("is_test", True), attr("data_layout", "NCHW"),
           attr("longs", [1 << 40, -1], 11), attr("doubles", [0.5], 12), attr("double", 2.5, 15),
           attr("flags", [True, False]), attr("floats", [1.5, 2.5]), attr("names", ["a", "b"]),
           attr("long", 1 << 33, 9), attr("dtype", FP32), attr("value", "x", 13),
           attr("values", ["x", "y"], 14))))


def loop():
    """A while with a block of its own, an array of tensors, and an undeclared name."""
    return program(
        block(0, -1, var("x", [-1, 4], check_feed=1), var("i", [1], INT64), var("go", [1], BOOL),
              var("all", [-1, 4], what=ARRAY), var("scopes", what=11),
              op("fill_constant", {}, {"Out": ["i"]}, attr("shape", [1], 11), attr("value", 0.0),
                 attr("dtype", INT64)),
              op("while", {"X": ["x"], "Condition": ["go"]},
                 {"Out": ["x"], "StepScopes": ["scopes"]},
                 attr("sub_block", 1, 8)),
              op("conditional_block", {"Cond": ["go"]}, {"Out": ["x"]}, attr("sub_block", 2, 8))),
        block(1, 0, var("inner", [-1, 4]),
              op("scale", {"X": ["x"]}, {"Out": ["inner"]}, attr("scale", 2.0)),
              op("write_to_array", {"X": ["inner"], "I": ["i"]}, {"Out": ["all"]}),
              op("increment", {"X": ["i"]}, {"Out": ["i"]}, attr("step", 1.0)),
              op("assign", {"X": ["unheard"]}, {"Out": ["x"]})),
        block(2, 0, op("assign", {"X": ["x"]}, {"Out": ["x"]})), version=0)


def training():
    """Forward, backward and optimizer, told apart by their roles."""
    return program(block(
        0, -1,
        var("x", [-1, 4], check_feed=1), var("w", [4, 1], persistable=True, is_parameter=1),
        var("y", [-1, 1]), var("loss", []), var("w@GRAD", [4, 1]), var("loss@GRAD", []),
        var("w_moment1_0", [4, 1], persistable=True), var("lr", [1], persistable=True),
        op("mul", {"X": ["x"], "Y": ["w"]}, {"Out": ["y"]}, attr("op_role", 0)),
        op("reduce_mean", {"X": ["y"]}, {"Out": ["loss"]}, attr("op_role", 256)),
        op("reduce_mean_grad", {"X": ["y"]}, {"X@GRAD": ["loss@GRAD"]}, attr("op_role", 1)),
        op("mul_grad", {"X": ["x"]}, {"Y@GRAD": ["w@GRAD"]}, attr("op_role", 1)),
        op("adam", {"Param": ["w"], "Grad": ["w@GRAD"], "Moment1": ["w_moment1_0"],
                    "LearningRate": ["lr"]}, {"ParamOut": ["w"]}, attr("op_role", 2))))


def written_for_two():
    """A batch of two and no other: a constant of that size is added."""
    return program(block(
        0, -1, var("feed", what=FEED, persistable=True), var("fetch", what=FETCH, persistable=True),
        var("x", [2, 4], check_feed=1), var("w", [4, 3], persistable=True, is_parameter=1),
        var("y", [2, 3]), var("c", [2, 3]), var("z", [2, 3]),
        op("feed", {"X": ["feed"]}, {"Out": ["x"]}, attr("col", 0)),
        op("matmul_v2", {"X": ["x"], "Y": ["w"]}, {"Out": ["y"]}),
        op("fill_constant", {}, {"Out": ["c"]}, attr("shape", [2, 3], 11), attr("value", 1.0),
           attr("dtype", FP32)),
        op("elementwise_add", {"X": ["y"], "Y": ["c"]}, {"Out": ["z"]}, attr("axis", -1)),
        op("fetch", {"X": ["z"]}, {"Out": ["fetch"]}, attr("col", 0))))


def record(kind, dims, levels=(), cut=0):
    size = {BOOL: 1, INT64: 8, FP32: 4, BF16: 2}[kind]
    n = 1
    for d in dims:
        n *= d
    desc = tensor(kind, dims)
    out = struct.pack("<IQ", 0, len(levels))
    for level in levels:
        out += struct.pack("<Q", 8 * len(level)) + struct.pack(f"<{len(level)}Q", *level)
    out += struct.pack("<Ii", 0, len(desc)) + desc + bytes(n * size)
    return out[:len(out) - cut]


def dtensor(dims, element="f32"):
    return {"#": "0.t_dtensor", "D": [{"#": f"0.t_{element}"}, dims, "NCHW", [], 0]}


def vec(*types):
    return {"#": "0.t_vec", "D": list(types)}


def pir_attr(name, kind, v):
    return {"AT": {"#": kind, "D": v}, "N": name}


def pir_op(name, inputs, outputs, *attrs, regions=None):
    out = {"#": name, "A": list(attrs), "I": [{"%": i} for i in inputs],
           "O": [{"%": i, "TT": t} for i, t in outputs]}
    if regions:
        out["regions"] = [{"#": f"region_{i}", "blocks": [{"#": f"block_{i}", "args": args,
                                                           "ops": ops}]}
                          for i, (args, ops) in enumerate(regions, 1)]
    return out


def parameter(i, name, dims, trainable=1, persistable=1):
    return {"#": "p", "A": [0, 1, 1, name], "O": {"%": i, "TT": dtensor(dims)},
            "OA": [persistable, 1 - trainable, trainable]}


def pir(*ops, version=1, magic="pir", trainable=True):
    return json.dumps({"base_code": {"magic": magic, "trainable": trainable, "version": version},
                       "program": {"regions": [{"#": "region_0", "blocks": [
                           {"#": "block_0", "args": [], "ops": list(ops)}]}]}},
                      separators=(",", ":")).encode()


def pir_lists():
    t, i64 = dtensor([-1, 4]), dtensor([], "i64")
    yes = pir_attr("flag", "0.a_bool", True)
    return pir(
        parameter(1, "fc.w_0", [4, 4]), parameter(2, "bn.w_1", [4], trainable=0),
        parameter(3, "state__non_persistable", [], 0, 0),
        pir_op("1.data", [], [(4, t)], pir_attr("name", "0.a_str", "x"),
               pir_attr("shape", "1.a_intarray", [-1, 4]),
               pir_attr("dtype", "1.a_dtype", "float32"),
               pir_attr("place", "1.a_place", [0, 0, ""])),
        pir_op("1.split_with_num", [4, 0], [(5, vec(t, t))], yes),
        pir_op("0.slice", [5], [(6, t)], pir_attr("index", "0.a_i32", 1)),
        pir_op("0.split", [5], [(7, t), (8, t)]),
        pir_op("0.combine", [6, 7, 8], [(9, vec(t, t, t))]),
        pir_op("1.full", [], [(10, i64)], pir_attr("value", "0.a_f64", 1.0),
               pir_attr("shape", "1.a_intarray", [])),
        pir_op("1.concat", [9, 10], [(11, t)],
               pir_attr("struct_name", "0.a_str", "/Net/Concat/"),
               pir_attr("list", "0.a_array", [{"#": "0.a_f32", "D": 0.5},
                                              {"#": "0.a_f32", "VD": "-INF"}]),
               pir_attr("ints", "0.a_array", [{"#": "0.a_i64", "D": -3}]),
               pir_attr("words", "0.a_array", [{"#": "0.a_str", "D": "a\\\"b"}])),
        pir_op("1.batch_norm_", [11, 2, 2, 1, 1], [(12, t), (13, t)]),
        pir_op("3.my_op", [12], [(14, t)]),
        pir_op("1.fetch", [14], [(15, t)], pir_attr("name", "0.a_str", "out"),
               pir_attr("col", "0.a_i32", 0)))


def pir_branches():
    t, b = dtensor([-1, 4]), dtensor([1], "bool")
    return pir(
        parameter(1, "w", [4, 4]),
        pir_op("1.data", [], [(2, t)], pir_attr("name", "0.a_str", "x")),
        pir_op("1.full", [], [(3, b)], pir_attr("value", "0.a_f64", 1.0)),
        pir_op("1.if", [3], [(4, t)], regions=[
            ([], [pir_op("1.matmul", [2, 1], [(5, t)]), pir_op("2.yield", [5], [])]),
            ([], [pir_op("2.yield", [2], [])])]),
        pir_op("1.while", [3, 4], [(6, t)], regions=[
            ([{"#": -1, "TT": t}], [pir_op("1.relu", [-1], [(7, t)]),
                                    pir_op("2.yield", [3, 7], [])])]),
        pir_op("1.fetch", [6], [(8, t)]), version=4)


def array(dims, kind="f4", text=False):
    """An array as numpy pickles it; text: as protocol 2 writes bytes."""
    n = {"f4": 4, "u2": 2, "i8": 8, "b1": 1}[kind]
    for d in dims:
        n *= d
    shape = b"(" + b"".join(b"K" + bytes([d]) for d in dims) + b"t"
    dtype = (b"cnumpy\ndtype\n(X" + struct.pack("<I", 2) + kind.encode() +
             b"\x89\x88tR(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb")
    values = bytes(i % 256 for i in range(n))
    if text:
        raw = values.decode("latin-1").encode()
        values = (b"c_codecs\nencode\n(X" + struct.pack("<I", len(raw)) + raw +
                  b"X\x06\0\0\0latin1tR")
    else:
        values = b"B" + struct.pack("<I", n) + values
    return (b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tC\x01btR(K\x01" +
            shape + dtype + b"\x89" + values + b"tb")


def word(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def state(items, protocol=4):
    return (bytes([0x80, protocol]) + b"}(" + b"".join(word(k) + v for k, v in items) + b"u.")


TABLE = ("StructuredToParameterName@@", b"}(" + word("w") + word("linear_0.w_0") + b"u")


def states():
    parts = b"}(" + word("big") + b"}(" + word("OriginShape") + b"(K\x04K\x03t" + word("slices") + (
        b"](" + word("big@@.0") + word("big@@.1") + b"eu") + b"u"
    return {
        "bytes": state([("w", array([3, 2])), ("half", array([4], "u2")), TABLE]),
        "text": state([("w", array([16, 8], text=True)), TABLE], 2),
        "pairs": state([("w", b"(" + word("linear_0.w_0") + array([2]) + b"t"),
                        ("step", b"K\x05")]),
        "nested": state([("model", b"}(" + word("w") + array([2], "i8") + b"u"),
                         ("master_weights", b"}(" + word("w") + array([2]) + b"u")]),
        "parts": state([("big@@.0", array([6])), ("big@@.1", array([6])),
                        ("UnpackBigParamInfor@@", parts)], 2),
        "size": state([("w", array([3, 2]).replace(b"K\x03", b"K\x04", 1))]),
        "none": state([("step", b"K\x05")]), "empty": b"\x80\x04}."}


def small_net():
    """An image classifier with open sizes: ([program], [parameters in their order])."""
    weights = {"conv2d_0.w_0": [8, 3, 3, 3], "batch_norm2d_0.w_0": [8], "batch_norm2d_0.b_0": [8],
               "batch_norm2d_0.w_1": [8], "batch_norm2d_0.w_2": [8], "conv2d_1.w_0": [16, 8, 3, 3],
               "conv2d_1.b_0": [16], "linear_0.w_0": [16, 10], "linear_0.b_0": [10]}
    temporary = {"conv2d_0.tmp_0": [-1, 8, -1, -1], "batch_norm2d_0.tmp_0": [-1, 8, -1, -1],
                 "hardswish_0.tmp_0": [-1, 8, -1, -1], "conv2d_1.tmp_0": [-1, 16, -1, -1],
                 "conv2d_1.tmp_1": [-1, 16, -1, -1], "relu_0.tmp_0": [-1, 16, -1, -1],
                 "pool2d_0.tmp_0": [-1, 16, 1, 1], "flatten_0.tmp_0": [-1, 16],
                 "linear_0.tmp_0": [-1, 10], "linear_0.tmp_1": [-1, 10],
                 "softmax_0.tmp_0": [-1, 10]}
    conv = [attr("strides", [2, 2]), attr("paddings", [1, 1]), attr("dilations", [1, 1]),
            attr("groups", 1), attr("padding_algorithm", "EXPLICIT"), attr("data_format", "NCHW")]
    frame = attr("op_callstack", ["  File \"net.py\", line 7, in forward"])
    ops = [
        op("feed", {"X": ["feed"]}, {"Out": ["image"]}, attr("col", 0)),
        op("conv2d", {"Input": ["image"], "Filter": ["conv2d_0.w_0"]},
           {"Output": ["conv2d_0.tmp_0"]}, *conv, frame),
        op("batch_norm", {"X": ["conv2d_0.tmp_0"], "Scale": ["batch_norm2d_0.w_0"],
                          "Bias": ["batch_norm2d_0.b_0"], "Mean": ["batch_norm2d_0.w_1"],
                          "Variance": ["batch_norm2d_0.w_2"]},
           {"Y": ["batch_norm2d_0.tmp_0"], "MeanOut": ["batch_norm2d_0.w_1"],
            "VarianceOut": ["batch_norm2d_0.w_2"]}, attr("is_test", True),
           attr("data_layout", "NCHW"), frame),
        op("hard_swish", {"X": ["batch_norm2d_0.tmp_0"]}, {"Out": ["hardswish_0.tmp_0"]}),
        op("conv2d", {"Input": ["hardswish_0.tmp_0"], "Filter": ["conv2d_1.w_0"]},
           {"Output": ["conv2d_1.tmp_0"]}, *conv, frame),
        op("elementwise_add", {"X": ["conv2d_1.tmp_0"], "Y": ["conv2d_1.b_0"]},
           {"Out": ["conv2d_1.tmp_1"]}, attr("axis", 1)),
        op("relu", {"X": ["conv2d_1.tmp_1"]}, {"Out": ["relu_0.tmp_0"]}),
        op("pool2d", {"X": ["relu_0.tmp_0"]}, {"Out": ["pool2d_0.tmp_0"]}, attr("ksize", [1, 1]),
           attr("adaptive", True), attr("pooling_type", "avg")),
        op("flatten_contiguous_range", {"X": ["pool2d_0.tmp_0"]}, {"Out": ["flatten_0.tmp_0"]},
           attr("start_axis", 1), attr("stop_axis", -1)),
        op("matmul_v2", {"X": ["flatten_0.tmp_0"], "Y": ["linear_0.w_0"]},
           {"Out": ["linear_0.tmp_0"]}, attr("trans_x", False), attr("trans_y", False)),
        op("elementwise_add", {"X": ["linear_0.tmp_0"], "Y": ["linear_0.b_0"]},
           {"Out": ["linear_0.tmp_1"]}, attr("axis", 1)),
        op("softmax", {"X": ["linear_0.tmp_1"]}, {"Out": ["softmax_0.tmp_0"]}, attr("axis", -1)),
        op("fetch", {"X": ["softmax_0.tmp_0"]}, {"Out": ["fetch"]}, attr("col", 0))]
    variables = [var("feed", what=FEED, persistable=True),
                 var("fetch", what=FETCH, persistable=True),
                 var("image", [-1, 3, -1, -1], check_feed=1)]
    variables += [var(k, v, persistable=True, is_parameter=1) for k, v in weights.items()]
    variables += [var(k, v) for k, v in temporary.items()]
    return (program(block(0, -1, *variables, *ops), version=2006002),
            b"".join(record(FP32, weights[k]) for k in sorted(weights)))


SMALL_SETTINGS = b"""Global:
  model_name: harbour-signs
PreProcess:
  transform_ops:
  - ResizeImage: {resize_short: 256}
  - CropImage: {size: 192}
"""


def models(root):
    """A whole model with its settings; and one whose parameters are cut."""
    net, parameters = small_net()
    for name, end in (("small", len(parameters)), ("cut", len(parameters) - 7)):
        path = pathlib.Path(root) / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "inference.pdmodel").write_bytes(net)
        (path / "inference.pdiparams").write_bytes(parameters[:end])
        (path / "inference.yml").write_bytes(SMALL_SETTINGS)


SETTINGS = b"""mode: paddle
Global:
  model_name: PP-Small_det
arch: DETR
Preprocess:
- {type: Resize, target_size: [640, 480], keep_ratio: false}
- type: Permute
label_list: [yes, 'no', 1, "1", ~, 1e-3, -7]
Hpi:
  backend_configs:
    paddle_infer:
      trt_dynamic_shapes: &id001
        x: [[1, 3, 32, 32], [1, 3, 736, 736], [8, 3, 4000, 4000]]
    tensorrt:
      dynamic_shapes: *id001
"""


def corpus(root):
    files = {
        "paddle_state": states(),
        "paddle_program": {
            "fc": fully_connected(), "old": fully_connected(None, False),
            "statistics": statistics(), "loop": loop(), "training": training(),
            "two.pdmodel": written_for_two(),
            "cut": fully_connected()[:-40],
            "self": program(block(0, -1, op("while", {}, {}, attr("sub_block", 0, 8)))),
            "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"},
        "paddle_params": {
            "two": record(FP32, [3]) + record(FP32, [4, 3]),
            "kinds": record(BOOL, [1]) + record(INT64, [2]) + record(BF16, []),
            "levels": record(FP32, [4], levels=[[0, 2, 4]]),
            "cut": record(FP32, [3]) + record(FP32, [4, 3], cut=5)},
        "paddle_pir": {
            "lists": pir_lists(), "branches": pir_branches(), "empty": pir(),
            "other_magic": pir(magic="pie"), "cut": pir_lists()[:-60]},
        "yaml": {
            "settings": SETTINGS, "aliases": b"a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n",
            "scalars": b"- ~\n- 'x''y'\n- \"\\u4e2d\\n\"\n- |\n  text\n- >-\n  a\n  b\n- 0x1f\n",
            "broken": b"a: [1, 2\nb: }\n"},
    }
    files["paddle_run"] = {
        **{name: files["paddle_program"][name]
           for name in ("fc", "statistics", "loop", "training", "two.pdmodel")},
        **{name: files["paddle_pir"][name] for name in ("lists", "branches")},
        "small": small_net()[0]}
    for folder, members in files.items():
        path = pathlib.Path(root) / folder
        path.mkdir(parents=True, exist_ok=True)
        for name, content in members.items():
            (path / name).write_bytes(content)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--corpus":
        corpus(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "--models":
        models(sys.argv[2])
    else:
        sys.exit(__doc__)

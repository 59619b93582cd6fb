"""Writes small archives as torch.export.save lays them out, by hand, without torch, and says what
must be found in them.

    pt2_files.py OUT [STAMP]   OUT/*.pt2 and OUT/pt2s.jsonl: for each good archive its values and
                               nodes, for each broken one the error's id
    pt2_files.py --corpus DIR  the archives and the programs' JSON, as starting points for the
                               fuzzer"""

import io
import json
import pathlib
import struct
import sys
import zipfile

WHEN = (2020, 1, 1, 0, 0, 0)
S0 = "Symbol('s0', positive=True, integer=True)"


def size(d):
    if isinstance(d, int):
        return {"as_int": d}
    return {"as_expr": {"expr_str": d, "hint": {"as_int": 2}}}


def meta(dims, dtype=7, grad=False):
    strides, step = [], 1
    for d in reversed(dims):
        strides.insert(0, {"as_int": step})
        step *= d if isinstance(d, int) else 2
    return {"dtype": dtype, "sizes": [size(d) for d in dims], "requires_grad": grad,
            "device": {"type": "cpu", "index": None}, "strides": strides,
            "storage_offset": {"as_int": 0}, "layout": 7}


def tensor(name):
    return {"as_tensor": {"name": name}}


def arg(name, value):
    return {"name": name, "arg": value, "kind": 1}


def node(target, inputs, outputs, stack=None, **more):
    data = {"stack_trace": "  File \"model.py\", line 3, in forward\n    return \u4e2d(x)\n"}
    if stack:
        data["nn_module_stack"] = stack
    return {"target": target, "inputs": inputs, "outputs": outputs, "metadata": data, **more}


def inner(op, name):
    return {"as_graph": {"name": name, "graph": {
        "inputs": [tensor("y")], "outputs": [tensor("z")],
        "nodes": [node(f"torch.ops.aten.{op}.default", [arg("self", tensor("y"))], [tensor("z")])],
        "tensor_values": {"y": meta([S0, 4]), "z": meta([S0, 4])},
        "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False}}}


ROOT = "L__self__,,model.M;"


def nodes():
    yield node("torch.ops.aten.sym_size.int",
               [arg("self", tensor("x")), arg("dim", {"as_int": 0})],
               [{"as_sym_int": {"as_name": "rows"}}])
    yield node("torch.ops.aten.linear.default",
               [arg("input", tensor("x")), arg("weight", tensor("p_w")),
                arg("bias", tensor("p_b"))],
               [tensor("linear")], ROOT + "L__self___fc,layers.0.fc@1,torch.nn.Linear",
               name="linear")
    yield node("torch.ops.aten.view.default",
               [arg("self", tensor("linear")),
                arg("size", {"as_sym_ints": [{"as_name": "rows"}, {"as_int": 2}, {"as_int": 2}]})],
               [tensor("view")])
    yield node("torch.ops.aten.split_with_sizes.default",
               [arg("self", tensor("view")), arg("split_sizes", {"as_ints": [1, 1]}),
                arg("dim", {"as_int": -1})], [{"as_tensors": [{"name": "a"}, {"name": "b"}]}])
    yield node("torch.ops.aten.index.Tensor",
               [arg("self", tensor("view")),
                arg("indices", {"as_optional_tensors": [{"as_none": True}, tensor("c_i")]})],
               [tensor("picked")])
    yield node("torch.ops.aten.full.default",
               [arg("size", {"as_ints": [4]}), arg("fill_value", {"as_float": float("-inf")}),
                arg("dtype", {"as_scalar_type": 6}), arg("pin_memory", {"as_bool": False}),
                arg("device", {"as_device": {"type": "cpu", "index": None}})], [tensor("full")])
    yield node("torch.ops.aten.clone.default",
               [arg("self", tensor("full")), arg("memory_format", {"as_memory_format": 1})],
               [tensor("clone")])
    yield node("torch.ops.higher_order.cond",
               [arg("", tensor("c_t")), arg("", inner("sin", "yes")), arg("", inner("cos", "no")),
                arg("", {"as_tensors": [{"name": "linear"}]})], [tensor("getitem")],
               is_hop_single_tensor_return=False)
    yield node("torch.ops.aten.add.Tensor",
               [arg("self", tensor("getitem")), arg("other", {"as_sym_int": {"as_name": "rows"}}),
                arg("alpha", {"as_none": True})], [tensor("add")])


VALUES = {"p_w": meta([4, 3], grad=True), "p_b": meta([4]), "b_m": meta([4]), "c_i": meta([2], 5),
          "c_t": meta([], 12), "x": meta([S0, 3]), "linear": meta([S0, 4]),
          "view": meta([f"Mul(Integer(1), {S0})", 2, 2]), "a": meta([S0, 2, 1]),
          "b": meta([S0, 2, 1]), "picked": meta([S0, 2, 2]), "full": meta([4], 6),
          "clone": meta([4], 6), "getitem": meta([S0, 4]), "add": meta([S0, 4])}
INPUTS = [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "layers.0.fc.weight"}},
          {"parameter": {"arg": {"name": "p_b"}, "parameter_name": "layers.0.fc.bias"}},
          {"buffer": {"arg": {"name": "b_m"}, "buffer_name": "mean", "persistent": True}},
          {"tensor_constant": {"arg": {"name": "c_i"}, "tensor_constant_name": "index"}},
          {"tensor_constant": {"arg": {"name": "c_t"}, "tensor_constant_name": "flag"}},
          {"user_input": {"arg": tensor("x")}}]
OUTPUTS = [{"buffer_mutation": {"arg": {"name": "clone"}, "buffer_name": "mean"}},
           {"user_output": {"arg": tensor("add")}}, {"user_output": {"arg": tensor("picked")}}]
SYMBOLS = {"rows": {"as_expr": {"expr_str": S0, "hint": {"as_int": 2}}}}


def program():
    graph = {"inputs": [tensor(n) for n in list(VALUES)[:6]],
             "outputs": [tensor("clone"), tensor("add"), tensor("picked")],
             "nodes": list(nodes()), "tensor_values": VALUES, "sym_int_values": SYMBOLS,
             "sym_bool_values": {}, "is_single_tensor_return": False}
    return {"graph_module": {"graph": graph,
                             "signature": {"input_specs": INPUTS, "output_specs": OUTPUTS},
                             "module_call_graph": [{"fqn": "", "signature": None}]},
            "opset_version": {"aten": 10},
            "range_constraints": {"s0": {"min_val": 0, "max_val": 64}},
            "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"],
            "torch_version": "2.15.0"}


def program_of_2_1():
    """Version 1: metas inside {"meta": ...}, printed expressions, names for optional tensors."""
    text = json.dumps(program()).replace(json.dumps(f"Mul(Integer(1), {S0})"), '"1*s0"')
    text = text.replace(json.dumps(S0), '"s0"').replace('"hint": {"as_int": 2}', '"hint": 2')
    p = json.loads(text)
    graph = p["graph_module"]["graph"]
    graph["tensor_values"] = {k: {"meta": {**v, "requires_grad": False}}
                              for k, v in graph["tensor_values"].items()}
    graph["nodes"][4]["inputs"][1]["arg"]["as_optional_tensors"] = [{"as_none": []},
                                                                    {"as_tensor": "c_i"}]
    p["graph_module"]["signature"] = {
        "inputs_to_parameters": {"p_w": "layers.0.fc.weight", "p_b": "layers.0.fc.bias"},
        "inputs_to_buffers": {"b_m": "mean", "c_i": "index", "c_t": "flag"}, "user_inputs": ["x"],
        "user_outputs": ["add", "picked"], "buffers_to_mutate": {"clone": "mean"},
        "backward_signature": None}
    p["schema_version"] = 1
    for key in ("verifiers", "torch_version"):
        del p[key]
    return p


def pack(entries, method=zipfile.ZIP_STORED):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as z:
        for name, data in entries:
            x = zipfile.ZipInfo(name, WHEN)
            x.compress_type = method
            z.writestr(x, data)
    return raw.getvalue()


def text(document):
    return json.dumps(document).encode()


DATA = {"layers.0.fc.weight": ("weight_0", bytes(48), meta([4, 3])),
        "layers.0.fc.bias": ("weight_1", bytes(16), meta([4])),
        "mean": ("weight_2", bytes(16), meta([4])),
        "index": ("tensor_0", struct.pack("<2q", 1, 0), meta([2], 5)),
        "flag": ("tensor_1", b"\1", meta([], 12))}


def table(names):
    return text({"config": {n: {"path_name": DATA[n][0], "is_param": "fc" in n,
                                "use_pickle": False, "tensor_meta": DATA[n][2]} for n in names}})


def new_entries(document=None, root="m/", model="model"):
    weights, constants = list(DATA)[:3], list(DATA)[3:]
    for n in weights:
        yield f"{root}data/weights/{DATA[n][0]}", DATA[n][1]
    yield f"{root}data/weights/{model}_weights_config.json", table(weights)
    for n in constants:
        yield f"{root}data/constants/{DATA[n][0]}", DATA[n][1]
    yield f"{root}data/constants/{model}_constants_config.json", table(constants)
    yield f"{root}models/{model}.json", text(document or program())
    yield f"{root}archive_format", b"pt2"


def old_entries(document=None):
    yield "serialized_exported_program.json", text(document or program())
    yield "serialized_state_dict.pt", bytes(200)
    yield "serialized_constants.pt", bytes(100)
    yield "version", b"8.2"


def middle_entries():
    yield "m/models/model.json", text(program())
    yield "m/data/weights/model.pt", bytes(200)
    yield "m/data/constants/model.pt", bytes(100)


WANT = {"params": 16, "buffers": 7, "nodes": 9, "inputs": 1, "outputs": 2,
        "input": ["s0", 3], "view": ["1*s0", 2, 2]}


def good():
    yield "since-2.9", pack(new_entries()), {**WANT, "contents": True, "frozen": 1}
    yield "deflated", pack(new_entries(), zipfile.ZIP_DEFLATED), {**WANT, "frozen": 1}
    yield "2.8", pack(middle_entries()), {**WANT, "frozen": 1}
    yield "2.6", pack(old_entries()), {**WANT, "frozen": 1}
    yield "2.1", pack(old_entries(program_of_2_1())), WANT
    two = [*new_entries(), ("m/models/other.json", text(program()))]
    yield "two", pack(two), {**WANT, "contents": True, "frozen": 1, "warnings": 1}


def changed(path, value):
    p = json.loads(text(program()))
    at = p
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return pack(new_entries(p))


def swapped(name, data, entries):
    return pack((n, data if n == name else d) for n, d in entries)


def without(name, entries):
    return pack((n, d) for n, d in entries if n != name)


GRAPH = ("graph_module", "graph")


def bad():
    new = list(new_entries())
    yield "no-program", pack([("m/data/weights/weight_0", b"")]), "pt2.no-program"
    yield "compiled", pack([("m/data/aotinductor/model/x.so", b"ELF")]), "pt2.compiled"
    yield "no-graph", changed(("graph_module",), {}), "pt2.graph-missing"
    yield "list", swapped("m/models/model.json", b"[]", new), "pt2.expected-object"
    yield "cut", swapped("m/models/model.json", text(program())[:-9], new), "json.short"
    yield "version", changed(("schema_version",), {"major": 9, "minor": 0}), "pt2.version"
    yield "input", changed((*GRAPH, "tensor_values"), []), "pt2.expected-object"
    yield "kind", changed((*GRAPH, "nodes", 1, "inputs", 0, "arg"), 5), "pt2.no-union"
    yield "tensor", changed((*GRAPH, "nodes", 1, "inputs", 0, "arg"), {"as_tensor": 3}), \
        "pt2.no-tensor"
    yield "ints", changed((*GRAPH, "nodes", 3, "inputs", 1, "arg"), {"as_ints": 7}), "pt2.no-list"
    yield "whole", changed((*GRAPH, "nodes", 3, "inputs", 2, "arg"), {"as_int": 1.5}), \
        "pt2.no-whole"
    yield "target", changed((*GRAPH, "nodes", 1, "target"), None), "pt2.no-target"
    yield "order", changed((*GRAPH, "nodes", 1, "inputs", 0), {"arg": tensor("x"), "name": "x"}), \
        "pt2.no-name"
    yield "rank", changed((*GRAPH, "tensor_values", "x"), meta([1] * 9)), "pt2.rank"
    yield "negative", changed((*GRAPH, "tensor_values", "x"), meta([-3])), "pt2.negative-size"
    yield "size", changed((*GRAPH, "tensor_values", "x", "sizes"), [[3]]), "pt2.no-size"
    yield "subgraph", changed((*GRAPH, "nodes", 7, "inputs", 1, "arg"),
                              {"as_graph": {"name": "g", "graph": 3}}), "pt2.no-graph"
    yield "stranger", changed(("graph_module", "signature", "input_specs", 0, "parameter", "arg"),
                              {"name": "nobody"}), "pt2.no-input"
    yield "table", swapped("m/data/weights/model_weights_config.json", b"{}", new), "pt2.table"
    yield "row", swapped("m/data/weights/model_weights_config.json",
                         text({"config": {"a": {"path_name": "weight_0", "tensor_meta": {}}}}),
                         new), "pt2.table"
    yield "entry", without("m/data/weights/weight_0", new), "pt2.no-entry"
    yield "short", swapped("m/data/weights/weight_0", bytes(47), new), "pt2.short-entry"
    yield "short-old", swapped("serialized_state_dict.pt", bytes(47), list(old_entries())), \
        "pt2.short-entry"


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, raw, want in good():
        (out / f"{name}.pt2").write_bytes(raw)
        rows.append({"path": f"{name}.pt2", **want})
    for name, raw, error in bad():
        (out / f"bad-{name}.pt2").write_bytes(raw)
        rows.append({"path": f"bad-{name}.pt2", "id": error})
    (out / "pt2s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def corpus(out):
    out.mkdir(parents=True, exist_ok=True)
    for name, raw, *_ in [*good(), *bad()]:
        (out / f"{name}.pt2").write_bytes(raw)
    (out / "program.json").write_bytes(text(program()))
    (out / "program-2.1.json").write_bytes(text(program_of_2_1()))
    small = json.loads(text(program()))
    small["graph_module"]["graph"]["nodes"] = small["graph_module"]["graph"]["nodes"][1:2]
    (out / "one-node.json").write_bytes(text(small))


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(pathlib.Path(sys.argv[2]))
        sys.exit()
    main(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).touch()

"""Writes tests/aten/cases.jsonl: calls of ATen operators, each as a program of one node in the form
of torch.export, with the shapes and types that torch gives them. Needs torch (2.6 or newer).

    aten_cases.py OUT.jsonl [EXPORTS.pt2 ...]

With exported programs, the distinct calls in them are added to the ones listed here."""

import io
import json
import sys
import zipfile

import torch
import torch.nn.functional as F

A = torch.ops.aten
X = torch.randn(2, 3, 8, 8)
S = torch.randn(2, 5, 16)
M = torch.randn(4, 6)
V = torch.randn(6)
I = torch.randint(0, 4, (2, 3))  # noqa: E741
B = torch.ones(4, 6, dtype=torch.bool)
Q = torch.randn(2, 4, 5, 16)

ONE = """relu relu6 leaky_relu elu selu celu gelu silu hardswish hardsigmoid hardtanh hardshrink
softshrink sigmoid log_sigmoid tanh mish softplus exp exp2 expm1 log log1p log2 log10 sqrt rsqrt
reciprocal square abs neg sign sgn floor ceil round trunc frac erf erfc lgamma digamma sin cos
tan asin acos atan sinh cosh asinh acosh atanh logical_not isnan isinf isfinite nan_to_num clone
detach alias positive relu_ sigmoid_ tanh_ silu_ gelu_ exp_ neg_ abs_ deg2rad rad2deg sinc i0
erfinv logit signbit tril triu t numpy_T mT zeros_like ones_like empty_like rand_like randn_like
bernoulli contiguous argsort msort sort sum mean prod max min any all amax amin aminmax argmax
argmin std var std_mean var_mean median cumsum:0 cumprod:0 logcumsumexp:0 cummax:0 cummin:0
log_softmax:1 softmax:1 logsumexp:1 flatten squeeze fliplr flipud glu count_nonzero ravel diag
unbind""".split()
TWO = """add sub mul div maximum minimum fmax fmin eq ne lt le gt ge atan2 hypot logaddexp xlogy
copysign remainder fmod floor_divide true_divide pow rsub mse_loss l1_loss smooth_l1_loss huber_loss
kl_div binary_cross_entropy_with_logits expand_as view_as type_as""".split()


def calls():
    for name in ONE:
        name, _, arg = name.partition(":")
        yield getattr(A, name), (M.abs() / 3,) + ((int(arg),) if arg else ()), {}
    for name in TWO:
        yield getattr(A, name), (M, M.clone()), {}
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
                 "bitwise_xor", "__and__", "__or__"):
        yield getattr(A, name), (B, B.clone()), {}
    for name in ("__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"):
        yield getattr(A, name), (I, 1), {}
    for f, v in ((A.add, 2), (A.mul, 2.5), (A.sub, 1), (A.div, 3), (A.pow, 2), (A.gt, 0),
                 (A.rsub, 1.0), (A.floor_divide, 2), (A.clamp, 0.1), (A.clamp_min, 0),
                 (A.clamp_max, 1), (A.masked_fill, (B, 0.0)), (A.dropout, (0.1, True)),
                 (A.native_dropout, (0.1, True)), (A.feature_dropout, (0.1, True))):
        rest = v if isinstance(v, tuple) else (v,)
        yield f, (M, *rest), {}
    yield A.bitwise_not, (B,), {}
    yield A.threshold, (M, 0.1, 0.0), {}
    yield A.prelu, (X, torch.randn(3)), {}
    yield A.lerp, (M, M.clone(), 0.5), {}
    yield A.addcmul, (M, M.clone(), V), {}
    yield A.addcdiv, (M, M.clone(), V), {}
    yield A.where, (B, M, M.clone()), {}
    yield A.norm, (M, 2, [1], True), {}
    yield A.linalg_vector_norm, (M, 2, [1]), {}
    yield A.mean, (X, [2, 3], True), {}
    yield A.sum, (X, [-1]), {}
    yield A.max, (M, 1, True), {}
    yield A.var_mean, (M, [1]), {"correction": 0, "keepdim": True}
    yield A.topk, (M, 2), {}
    yield A.kthvalue, (M, 2), {}
    yield from layout()
    yield from kernels()
    yield from made()
    yield from moves()


def layout():
    yield A.view, (X, [2, -1]), {}
    yield A.reshape, (X, [6, 64]), {}
    yield A._unsafe_view, (X, [6, 64]), {}
    yield A.unflatten, (X, 1, [3, 1]), {}
    yield A.unsqueeze, (M, -1), {}
    yield A.squeeze, (M[:, None], 1), {}
    yield A.permute, (X, [0, 2, 3, 1]), {}
    yield A.transpose, (X, 1, -1), {}
    yield A.swapaxes, (X, 0, 1), {}
    yield A.movedim, (X, 1, 3), {}
    yield A.expand, (V, [4, -1]), {}
    yield A.broadcast_to, (V, [4, 6]), {}
    yield A.repeat, (M, [2, 1, 3]), {}
    yield A.tile, (M, [2]), {}
    yield A.repeat_interleave, (M, 3, 1), {}
    yield A.cat, ([M, M.clone()], 1), {}
    yield A.stack, ([M, M.clone()], 1), {}
    yield A.hstack, ([M, M.clone()],), {}
    yield A.split, (M, 4, 1), {}
    yield A.split_with_sizes, (M, [1, 5], 1), {}
    yield A.chunk, (M, 4, 1), {}
    yield A.tensor_split, (M, 4, 1), {}
    yield A.unbind, (M, 1), {}
    yield A.select, (X, 1, -1), {}
    yield A.slice, (X, 2, 1, -1, 2), {}
    yield A.narrow, (X, 2, 1, 4), {}
    yield A.unfold, (X, 2, 3, 2), {}
    yield A.as_strided, (M, [2, 3], [6, 1]), {}
    yield A.diagonal, (M,), {}
    yield A.diag_embed, (V,), {}
    yield A.to, (M, torch.float16), {}
    yield A._to_copy, (M,), {"dtype": torch.bfloat16}
    yield A.copy, (M, V), {}
    yield A.copy_, (M.clone(), V), {}
    yield A.pad, (X, [1, 2, 0, 3]), {}
    yield A.constant_pad_nd, (X, [1, -1]), {}
    yield A.reflection_pad2d, (X, [1, 2, 3, 0]), {}
    yield A.replication_pad2d, (X, [1, 2, 3, 0]), {}
    yield A.roll, (X, [1, 2], [2, 3]), {}
    yield A.flip, (X, [1]), {}
    yield A.rot90, (M, 1, [0, 1]), {}
    yield A.pixel_shuffle, (torch.randn(1, 8, 4, 4), 2), {}
    yield A.pixel_unshuffle, (torch.randn(1, 2, 4, 4), 2), {}
    yield A.channel_shuffle, (torch.randn(1, 8, 4, 4), 2), {}
    yield A.im2col, (X, [3, 3], [1, 1], [0, 0], [1, 1]), {}
    yield A.col2im, (torch.randn(1, 27, 36), [8, 8], [3, 3], [1, 1], [0, 0], [1, 1]), {}
    yield A.meshgrid, ([V, V.clone()],), {"indexing": "xy"}
    yield A.slice_scatter, (M, M[:, :2].clone(), 1, 0, 2), {}
    yield A.select_scatter, (M, V.clone(), 0, 1), {}
    yield A.diff, (M,), {}
    yield A.one_hot, (I, 5), {}
    yield A.view_as_complex, (torch.randn(3, 2),), {}
    yield A.view_as_real, (torch.randn(3, dtype=torch.complex64),), {}
    yield A.complex, (V, V.clone()), {}
    yield A.block_diag, ([M, M.clone()],), {}
    yield A.cartesian_prod, ([V, V.clone()],), {}


def kernels():
    w = torch.randn(6, 3, 3, 3)
    yield A.mm, (M, M.t()), {}
    yield A.bmm, (S, S.transpose(1, 2)), {}
    yield A.matmul, (Q, Q.transpose(2, 3)), {}
    yield A.mv, (M, V), {}
    yield A.dot, (V, V.clone()), {}
    yield A.outer, (V, V.clone()), {}
    yield A.addmm, (torch.randn(4), M, M.t()), {}
    yield A.addmv, (torch.randn(4), M, V), {}
    yield A.baddbmm, (torch.randn(2, 5, 5), S, S.transpose(1, 2)), {}
    yield A.linear, (S, torch.randn(7, 16), torch.randn(7)), {}
    yield A.einsum, ("bhid,bhjd->bhij", [Q, Q.clone()]), {}
    yield A.conv2d, (X, w, torch.randn(6), [2, 2], [1, 1]), {}
    yield A.conv2d, (X, torch.randn(6, 1, 3, 3), None, [1, 1], "same", [2, 2], 3), {}
    yield A.conv2d, (X[0], w), {}
    yield A.conv1d, (S, torch.randn(4, 5, 3), None, [2], [1]), {}
    yield A.conv3d, (torch.randn(1, 2, 5, 6, 7), torch.randn(4, 2, 3, 3, 3)), {}
    yield A.convolution, (X, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), {}
    yield A.convolution, (X, torch.randn(3, 5, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [1, 1],
                          1), {}
    yield A._convolution, (X, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, True,
                           True), {}
    yield A.conv_transpose1d, (S, torch.randn(5, 4, 3), None, [2], [1], [1]), {}
    yield A.conv_transpose2d, (X, torch.randn(3, 2, 4, 4), None, [2, 2], [1, 1], [0, 0], 1), {}
    yield A.conv_transpose3d, (torch.randn(1, 2, 3, 4, 5), torch.randn(2, 3, 2, 2, 2)), {}
    yield A.max_pool1d, (S, [2]), {}
    yield A.max_pool2d, (X, [3, 3], [2, 2], [1, 1], [1, 1], True), {}
    yield A.max_pool2d_with_indices, (X, [3, 3], [2, 2], [1, 1]), {}
    yield A.max_pool3d, (torch.randn(1, 2, 4, 6, 8), [2, 2, 2]), {}
    yield A.avg_pool1d, (S, [2]), {}
    yield A.avg_pool2d, (X, [3, 3], [2, 2], [1, 1], True), {}
    yield A.avg_pool3d, (torch.randn(1, 2, 4, 6, 8), [2, 2, 2]), {}
    yield A.adaptive_avg_pool1d, (S, [3]), {}
    yield A.adaptive_avg_pool2d, (X, [1, 1]), {}
    yield A._adaptive_avg_pool2d, (X, [3, 2]), {}
    yield A.adaptive_avg_pool3d, (torch.randn(1, 2, 4, 6, 8), [1, 2, 3]), {}
    yield A.adaptive_max_pool1d, (S, [3]), {}
    yield A.adaptive_max_pool2d, (X, [3, 2]), {}
    yield A.upsample_nearest1d, (S, [32]), {}
    yield A.upsample_nearest2d.vec, (X, None, [2.0, 3.0]), {}
    yield A.upsample_nearest2d, (X, [5, 4]), {}
    yield A._upsample_nearest_exact2d, (X, [5, 4]), {}
    yield A.upsample_linear1d, (S, [32], False), {}
    yield A.upsample_bilinear2d.vec, (X, [16, 12], False, None), {}
    yield A.upsample_bicubic2d, (X, [16, 12], True), {}
    yield A.upsample_trilinear3d, (torch.randn(1, 2, 4, 4, 4), [8, 8, 8], False), {}
    yield A._upsample_bilinear2d_aa, (X, [4, 4], False), {}
    yield A.grid_sampler, (X, torch.randn(2, 5, 6, 2), 0, 0, False), {}
    yield A.grid_sampler_2d, (X, torch.randn(2, 5, 6, 2), 0, 0, False), {}
    yield A.affine_grid_generator, (torch.randn(2, 2, 3), [2, 3, 4, 5], False), {}
    n = [torch.ones(3) for _ in range(4)]
    yield A.batch_norm, (X, *n, True, 0.1, 1e-5, True), {}
    yield A.native_batch_norm, (X, *n, True, 0.1, 1e-5), {}
    yield A._native_batch_norm_legit, (X, *n, True, 0.1, 1e-5), {}
    yield A._native_batch_norm_legit_no_training, (X, *n, 0.1, 1e-5), {}
    yield A._native_batch_norm_legit_functional, (X, *n, True, 0.1, 1e-5), {}
    yield A.layer_norm, (S, [16], torch.ones(16), torch.zeros(16)), {}
    yield A.native_layer_norm, (S, [5, 16], None, None, 1e-5), {}
    yield A.rms_norm, (S, [16], torch.ones(16)), {}
    yield A.group_norm, (X, 3, torch.ones(3), torch.zeros(3)), {}
    yield A.native_group_norm, (X, None, None, 2, 3, 64, 3, 1e-5), {}
    yield A.instance_norm, (X, None, None, None, None, True, 0.1, 1e-5, True), {}
    yield A._weight_norm, (w, torch.randn(6, 1, 1, 1)), {}
    yield A.scaled_dot_product_attention, (Q, Q.clone(), Q.clone()), {"is_causal": True}
    yield A._scaled_dot_product_flash_attention_for_cpu, (Q, Q.clone(), Q.clone()), {}
    g = [torch.randn(*s) for s in ((24, 16), (24, 6), (24,), (24,))]
    yield A.lstm, (S, [torch.zeros(1, 2, 6), torch.zeros(1, 2, 6)], g, True, 1, 0.0, True, False,
                   True), {}
    g = [torch.randn(*s) for s in ((18, 16), (18, 6), (18,), (18,))]
    yield A.gru, (S, torch.zeros(1, 2, 6), g, True, 1, 0.0, True, False, True), {}
    g = [torch.randn(*s) for s in ((6, 16), (6, 6), (6,), (6,))]
    yield A.rnn_tanh, (S, torch.zeros(1, 2, 6), g, True, 1, 0.0, True, False, True), {}
    yield A.lstm_cell, (torch.randn(2, 6), [torch.zeros(2, 3), torch.zeros(2, 3)],
                        torch.randn(12, 6), torch.randn(12, 3)), {}
    yield A.gru_cell, (torch.randn(2, 6), torch.zeros(2, 3), torch.randn(9, 6),
                       torch.randn(9, 3)), {}
    yield A.embedding, (M, I), {}
    yield A.embedding_bag, (M, torch.tensor([0, 1, 2]), torch.tensor([0, 2])), {}
    yield A.cross_entropy_loss, (M, torch.zeros(4, dtype=torch.int64)), {}
    yield A.nll_loss_forward, (M, torch.zeros(4, dtype=torch.int64), None, 1, -100), {}
    yield A.nll_loss_nd, (M, torch.zeros(4, dtype=torch.int64), None, 0), {}
    yield A.binary_cross_entropy, (torch.rand(4, 6), torch.rand(4, 6), None, 0), {}
    yield A.cdist, (M, M.clone()), {}
    yield A._fft_r2c, (M, [1], 0, True), {}


def made():
    yield A.arange, (7,), {}
    yield A.arange, (1, 7.5, 2), {}
    yield A.full, ([2, 3], 1.5), {}
    yield A.zeros, ([2, 3],), {"dtype": torch.int64}
    yield A.ones, ([2, 3],), {}
    yield A.empty, ([2, 3],), {}
    yield A.new_zeros, (M, [2]), {}
    yield A.new_ones, (M, [2]), {}
    yield A.new_full, (M, [2], 3), {}
    yield A.full_like, (M, 2), {}
    yield A.scalar_tensor, (3.0,), {}
    yield A.linspace, (0, 1, 5), {}
    yield A.eye, (3,), {}
    yield A.eye, (3, 4), {}
    yield A.tril_indices, (3, 3), {}
    yield A.triu_indices, (3, 3), {}
    yield A.hann_window, (8,), {}
    yield A.rand, ([2, 3],), {}
    yield A.randn, ([2, 3],), {}
    yield A.randint, (5, [2, 3]), {}
    yield A.randperm, (5,), {}
    yield A.fill, (M, 0), {}


def moves():
    yield A.gather, (M, 1, I.new_zeros(4, 2)), {}
    yield A.take_along_dim, (M, I.new_zeros(4, 2), 1), {}
    yield A.index_select, (M, 1, torch.tensor([0, 2])), {}
    yield A.index, (M, [None, torch.tensor([0, 2])]), {}
    yield A.index, (X, [torch.tensor([0, 1]), None, torch.tensor([[0], [1]])]), {}
    yield A.index_put, (M, [torch.tensor([0, 2])], V), {}
    yield A.index_add, (M, 0, torch.tensor([0, 2]), M[:2].clone()), {}
    yield A.index_fill, (M, 0, torch.tensor([0, 2]), 0.0), {}
    yield A.scatter, (M, 1, I.new_zeros(4, 2), 1.0), {}
    yield A.scatter_add, (M, 1, I.new_zeros(4, 2), M.clone()), {}
    yield A.scatter_reduce, (M, 1, I.new_zeros(4, 2), M.clone(), "sum"), {}
    yield A.masked_scatter, (M, B, M.clone()), {}
    yield A.multinomial, (M.abs(), 3), {}
    yield A.bucketize, (M, torch.arange(3.0)), {}
    yield A.searchsorted, (torch.arange(3.0), M), {}
    yield A.isin, (I, torch.tensor([1, 2])), {}


class Call(torch.nn.Module):
    def __init__(self, f, args, kwargs):
        super().__init__()
        self.f, self.args, self.kwargs = f, args, kwargs

    def forward(self, tensors):
        left = list(tensors)

        def take(x):
            if isinstance(x, torch.Tensor):
                return left.pop(0)
            return [take(y) for y in x] if isinstance(x, list) else x
        return self.f(*[take(x) for x in self.args], **self.kwargs)


def tensors_of(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for y in x for t in tensors_of(y)] if isinstance(x, (list, tuple)) else []


def document(program):
    raw = io.BytesIO()
    torch.export.save(program, raw)
    with zipfile.ZipFile(raw) as z:
        name = next(n for n in z.namelist() if n.endswith("models/model.json"))
        return json.loads(z.read(name))


def slim(meta):
    return {"dtype": meta["dtype"], "sizes": meta["sizes"]}


def names_in(x):
    if isinstance(x, dict):
        if set(x) == {"name"} and isinstance(x["name"], str):
            yield x["name"]
        for value in x.values():
            yield from names_in(value)
    if isinstance(x, list):
        for value in x:
            yield from names_in(value)


def is_static(meta):
    return all("as_int" in d for d in meta["sizes"])


def case(node, values):
    """A program of this node alone; what it puts out is said apart."""
    reads = list(dict.fromkeys(n for x in node["inputs"] for n in names_in(x["arg"])))
    writes = [n for x in node["outputs"] for n in names_in(x)]
    used = {n: values.get(n) for n in reads + writes}
    if not writes or not all(v and is_static(v) for v in used.values()) or any(
            "as_graph" in x["arg"] for x in node["inputs"]):
        return None
    short = {n: f"v{i}" for i, n in enumerate(used)}
    text = json.dumps([{"name": x["name"], "arg": x["arg"]} for x in node["inputs"]])
    outputs = json.dumps(node["outputs"])
    for n, s in short.items():
        text = text.replace(f'"name": "{n}"}}', f'"name": "{s}"}}')
        outputs = outputs.replace(f'"name": "{n}"}}', f'"name": "{s}"}}')
    graph = {"inputs": [{"as_tensor": {"name": short[n]}} for n in reads],
             "outputs": [{"as_tensor": {"name": short[n]}} for n in writes],
             "nodes": [{"target": node["target"], "inputs": json.loads(text),
                        "outputs": json.loads(outputs), "metadata": {}}],
             "tensor_values": {short[n]: slim(used[n]) for n in reads}, "sym_int_values": {}}
    return {"op": node["target"].removeprefix("torch.ops."),
            "want": [[used[n]["dtype"], [d["as_int"] for d in used[n]["sizes"]]] for n in writes],
            "program": {"graph_module": {"graph": graph}}}


def cases_of(graph):
    for node in graph["nodes"]:
        made = case(node, graph["tensor_values"])
        if made:
            yield made


def main(out, exports):
    seen, lines, failed = set(), [], []

    def add(made, limit):
        key = json.dumps(made["program"])
        if key in seen or sum(1 for row in lines if row["op"] == made["op"]) >= limit:
            return
        seen.add(key)
        lines.append(made)

    for f, args, kwargs in calls():
        tensors = tensors_of(args)
        try:
            program = torch.export.export(Call(f, list(args), kwargs), (tensors,), strict=False)
            for made in cases_of(document(program)["graph_module"]["graph"]):
                add(made, 4)
        except Exception as e:  # a call that this torch does not export is left out, and said
            failed.append(f"{f}: {str(e).splitlines()[0][:80]}")
    for path in exports:
        with zipfile.ZipFile(path) as z:
            name = next(n for n in z.namelist() if n.endswith("models/model.json"))
            for made in cases_of(json.loads(z.read(name))["graph_module"]["graph"]):
                add(made, 3)
    lines.sort(key=lambda row: row["op"])
    with open(out, "w", encoding="utf-8") as f:
        f.write("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in lines))
    print(f"{len(lines)} cases of {len({row['op'] for row in lines})} operators")
    print("\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

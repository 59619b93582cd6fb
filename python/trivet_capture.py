#!/usr/bin/env python3
"""Writes down what one forward pass of a module does, for trivet to read as a model.

    import trivet_capture
    trivet_capture.capture(make_model, torch.empty(1, 3, 224, 224), "model.json")

    python3 trivet_capture.py my_module:make_model --input 1x3x224x224 -o model.json

The file lists every operator that ran with its tensors' shapes and types, which tensors share
memory, and what autograd kept for the backward pass. With PyTorch 2 nothing is computed: tensors
are fake, no GPU and no memory is needed. trivet reckons the backward pass from it.

Needs PyTorch 1.13 or newer, or PaddlePaddle 2.4 or newer, and nothing else. The format is described in
docs/formats.md, section "Captures".
"""

import argparse
import contextlib
import functools
import importlib
import json
import logging
import os
import sys
import warnings

SCHEMA = "trivet.capture/1"
SYMBOL = "B"


class CaptureError(Exception):
    """The module or the inputs cannot be captured; the text says why."""


# ---------------------------------------------------------------------------------------------
# The record: what both frameworks fill, and how it becomes JSON.
# ---------------------------------------------------------------------------------------------


class Value:
    """A tensor at one place of the program. In-place operators put out a new value of the same
    storage."""

    __slots__ = ("dtype", "shape", "storage", "grad", "role", "name", "offset")

    def __init__(self, dtype, shape, storage, role, name="", offset=0):
        self.dtype = dtype
        self.shape = shape
        self.storage = storage
        self.grad = False
        self.role = role  # "temp", "input", "parameter", "buffer", "constant"
        self.name = name
        self.offset = offset


class Op:
    __slots__ = ("name", "module", "inputs", "outputs", "slots", "attrs", "saved", "region")

    def __init__(self, name, module):
        self.name = name
        self.module = module
        self.inputs = []  # value index, None, or a list of these
        self.outputs = []
        self.slots = None  # Paddle: the outputs by slot, as in inputs
        self.attrs = {}
        self.saved = []
        self.region = 0


class Record:
    """One run."""

    def __init__(self):
        self.values = []
        self.ops = []
        self.storages = []  # bytes of each
        self.operators = {}  # name -> [name, its tensor arguments, Paddle: its results]
        self.inputs = []
        self.outputs = []
        self.loss = None
        self.regions = []  # values that each checkpointed region keeps
        self.notes = []

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)


def linear(x, y, b):
    """A number that is x at batch b and y at batch b + 1, as a number or an expression."""
    if x == y:
        return x
    slope = y - x
    rest = x - slope * b
    text = SYMBOL if slope == 1 else "%d*%s" % (slope, SYMBOL)
    if rest > 0:
        text += "+%d" % rest
    elif rest < 0:
        text += "-%d" % -rest
    return text


def same_kind(x, y):
    return type(x) is type(y) or (isinstance(x, int) and isinstance(y, int))


def merge_attr(x, y, b):
    """An attribute in both runs as one; raises ValueError where they are not alike."""
    if isinstance(x, (list, tuple)):
        if not isinstance(y, (list, tuple)) or len(x) != len(y):
            raise ValueError("lists differ in length")
        return [merge_attr(i, j, b) for i, j in zip(x, y)]
    if x == y or (x != x and y != y):
        return x
    if isinstance(x, bool) or not same_kind(x, y):
        raise ValueError("attributes differ")
    if isinstance(x, int):
        return linear(x, y, b)
    if isinstance(x, float):
        return x  # 1/batch and the like: no size depends on it
    raise ValueError("attributes differ")


def difference(one, two):
    """Why two runs are not the same program at two batches; None when they are."""
    if len(one.ops) != len(two.ops):
        return "%d operators at one batch, %d at the next" % (len(one.ops), len(two.ops))
    for i, (x, y) in enumerate(zip(one.ops, two.ops)):
        if x.name != y.name:
            return "operator %d is %s at one batch, %s at the next" % (i, x.name, y.name)
        if x.inputs != y.inputs or x.outputs != y.outputs or sorted(x.saved) != sorted(y.saved):
            return "operator %d (%s) is wired differently at the next batch" % (i, x.name)
        if sorted(x.attrs) != sorted(y.attrs):
            return "operator %d (%s) has other attributes at the next batch" % (i, x.name)
    if len(one.values) != len(two.values):
        return "%d tensors at one batch, %d at the next" % (len(one.values), len(two.values))
    for i, (x, y) in enumerate(zip(one.values, two.values)):
        if x.dtype != y.dtype or len(x.shape) != len(y.shape) or x.storage != y.storage:
            return "tensor %d is of another kind at the next batch" % i
    return None


def merge(one, two, b):
    """Writes sizes of `one` as expressions in the batch, from the run at b + 1."""
    for x, y in zip(one.values, two.values):
        x.shape = [linear(i, j, b) for i, j in zip(x.shape, y.shape)]
    for x, y in zip(one.ops, two.ops):
        for key in x.attrs:
            x.attrs[key] = merge_attr(x.attrs[key], y.attrs[key], b)
    one.storages = [linear(i, j, b) for i, j in zip(one.storages, two.storages)]


ITEM_BYTES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1,
    "bool": 1, "c64": 8, "c128": 16, "f8_e4m3": 1, "f8_e5m2": 1,
}


def number_of(dim, b):
    """The size that an expression of `linear` had in the run at b."""
    if isinstance(dim, int):
        return dim
    return eval(dim, {"__builtins__": {}}, {SYMBOL: b})  # written by linear() above


def storage_is_first(record, b):
    """Storages whose bytes are not those of the first value in them."""
    first = {}
    for v in record.values:
        if v.storage not in first:
            n = ITEM_BYTES.get(v.dtype, 0)
            for d in v.shape:
                n *= number_of(d, b)
            first[v.storage] = n
    return {s: record.storages[s] for s, n in first.items()
            if n and number_of(record.storages[s], b) != n}


class Modules:
    """The paths and types of the root's modules, and the one that runs."""

    def __init__(self, root, named):
        self.rows = []
        self.index = {}
        self.of = {}
        for path, module in named:
            if id(module) not in self.of:
                self.of[id(module)] = self.add(path, type(module).__name__)
        self.stack = []

    def add(self, path, kind):
        if path not in self.index:
            self.index[path] = len(self.rows)
            self.rows.append((path, kind))
        return self.index[path]

    def enter(self, module):
        top = self.stack[-1] if self.stack else self.add("", "")
        self.stack.append(self.of.get(id(module), top))

    def leave(self):
        if self.stack:
            self.stack.pop()

    def now(self):
        return self.stack[-1] if self.stack else self.add("", "")


def compact(x):
    return json.dumps(x, separators=(",", ":"), ensure_ascii=False)


def lines_of(rows):
    return "[\n" + ",\n".join(compact(r) for r in rows) + "]"


def op_row(op, names):
    row = {"o": names.setdefault(op.name, len(names))}
    if op.inputs:
        row["i"] = op.inputs
    if op.outputs:
        row["p"] = op.outputs if op.slots is None else op.slots
    if op.module:
        row["m"] = op.module
    if op.attrs:
        row["a"] = op.attrs
    if op.saved:
        row["s"] = op.saved
    if op.region:
        row["r"] = op.region
    return row


def value_row(v):
    row = [v.dtype, v.shape, v.storage]
    return row + [1] if v.grad else row


def write(path, head, record, modules, weights, buffers):
    """Streams the document; one line an operator, so that two captures can be compared."""
    names = {}
    ops = [op_row(o, names) for o in record.ops]
    odd = storage_is_first(record, head["batch"]["run"])
    parts = [(k, compact(v)) for k, v in head.items()]
    parts += [
        ("notes", compact(record.notes)),
        ("modules", lines_of(modules.rows)),
        ("parameters", lines_of(weights)),
        ("buffers", lines_of(buffers)),
        ("inputs", compact(record.inputs)),
        ("outputs", compact(record.outputs)),
        ("operators", lines_of([record.operators[n] for n in names])),
        ("storages", compact(sorted([k, v] for k, v in odd.items()))),
        ("regions", compact(record.regions)),
        ("values", lines_of([value_row(v) for v in record.values])),
        ("ops", lines_of(ops)),
    ]
    text = "{" + ",\n".join('"%s":%s' % p for p in parts) + "}\n"
    if path == "-":
        sys.stdout.write(text)
        return
    temporary = "%s.tmp%d" % (path, os.getpid())
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, path)


def tree_map(f, x, kinds):
    """Applies f to the tensors of nested lists, tuples and dicts (also of their subclasses)."""
    if isinstance(x, kinds):
        return f(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[tree_map(f, i, kinds) for i in x])
    if isinstance(x, (list, tuple)):
        return type(x)(tree_map(f, i, kinds) for i in x)
    if isinstance(x, dict):
        return {k: tree_map(f, v, kinds) for k, v in x.items()}
    return x


def tree_leaves(x, kinds, out=None):
    out = [] if out is None else out
    if isinstance(x, kinds):
        out.append(x)
    elif isinstance(x, (list, tuple)):
        for i in x:
            tree_leaves(i, kinds, out)
    elif isinstance(x, dict):
        for i in x.values():
            tree_leaves(i, kinds, out)
    elif hasattr(x, "__dict__") and not isinstance(x, type) and not callable(x):
        for i in vars(x).values():
            tree_leaves(i, kinds, out)
    return out


# ---------------------------------------------------------------------------------------------
# PyTorch
# ---------------------------------------------------------------------------------------------

TORCH_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2",
}


def torch_dtype_name(dtype):
    name = str(dtype).replace("torch.", "")
    return TORCH_DTYPES.get(name, name)


def torch_version(torch):
    parts = []
    for p in torch.__version__.split("+")[0].split(".")[:2]:
        digits = "".join(c for c in p if c.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


# Operators that move no tensor: questions about a tensor, asserts, profiler marks.
SILENT = ("prim::", "profiler::", "aten::is_same_size", "aten::_local_scalar_dense",
          "aten::_assert", "aten::sym_", "aten::equal", "aten::is_nonzero")
# Arguments that no size and no FLOP depends on.
PASSED_OVER = ("layout", "device", "pin_memory", "generator", "non_blocking", "requires_grad")


class TorchRecorder:
    """Sees every operator below autograd, and what autograd packs around it.

    Autograd packs an operator's saved inputs before the operator runs and its saved outputs after
    it, so a pack in the gap between two operators belongs to one of them. The node of the earlier
    one is known by then: how many of its results it keeps stands in the names of its attributes
    (`_saved_result`, beside those named like the operator's arguments). So many packs of its own
    outputs are its; the others belong to the operator to come."""

    def __init__(self, torch, modules, keep):
        self.torch = torch
        self.record = Record()
        self.modules = modules
        self.keep = [] if keep else None
        self.by_id = {}  # id(tensor) -> (weak reference or tensor, value)
        self.by_place = {}  # storage, offset, shape, strides, type -> value
        self.by_cdata = {}  # address of a storage -> its number
        self.first_of = {}  # storage -> its first value
        self.weak = []  # storages' weak references: no address is used twice
        self.gap = []
        self.last = None
        self.last_tensors = []
        self.last_schema = None
        self.results_kept = {}
        self.region = 0
        self.silent = 0

    # ---- values ----

    def storage_object(self, t):
        return t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()._storage \
            if hasattr(t.storage(), "_storage") else t.storage()

    def storage_of(self, t, fresh):
        try:
            storage = self.storage_object(t)
            at = storage._cdata
            size = storage.nbytes()
        except (RuntimeError, NotImplementedError):
            at, size = id(t), t.numel() * t.element_size()
            storage = None
        if fresh or at not in self.by_cdata:
            self.by_cdata[at] = len(self.record.storages)
            self.record.storages.append(int(size))
            if storage is not None:
                from torch.multiprocessing.reductions import StorageWeakRef
                self.weak.append(StorageWeakRef(storage))
        return self.by_cdata[at]

    def place(self, t, storage):
        if t.layout is not self.torch.strided:
            return (storage, tuple(t.shape), t.dtype)
        return (storage, t.storage_offset(), tuple(t.shape), t.stride(), t.dtype)

    def add(self, t, role, name="", fresh=False):
        storage = self.storage_of(t, fresh)
        v = Value(torch_dtype_name(t.dtype), [int(d) for d in t.shape], storage, role, name)
        index = len(self.record.values)
        self.record.values.append(v)
        self.first_of.setdefault(storage, index)
        self.by_place[self.place(t, storage)] = index
        if self.keep is not None:
            self.keep.append(t)
        self.by_id[id(t)] = (self.reference(t), index)
        return index

    def reference(self, t):
        if self.keep is not None:
            return lambda: t
        import weakref
        return weakref.ref(t)

    def known(self, t):
        found = self.by_id.get(id(t))
        if found is not None and found[0]() is t:
            return found[1]
        try:
            at = self.storage_object(t)._cdata
        except (RuntimeError, NotImplementedError):
            return None
        if at not in self.by_cdata:
            return None
        return self.by_place.get(self.place(t, self.by_cdata[at]))

    def value(self, t):
        """The value of a tensor that an operator reads or autograd keeps."""
        index = self.known(t)
        if index is None:
            index = self.add(t, "constant")
            self.record.values[index].grad = bool(t.requires_grad)
        return index

    # ---- saved tensors ----

    def pack(self, t):
        if self.silent == 0:
            storage = self.storage_of(t, False)
            index = self.known(t)
            if index is None:
                index = self.first_of.get(storage)
            if index is None:
                index = self.add(t, "constant")
            self.gap.append(index)
        return t

    def node_of_last(self):
        """The autograd node of the last operator; None where there is none, or where it must not be
        asked for: a view that was written to makes its node anew when asked, under a lock that the
        question may already hold."""
        for t in self.last_tensors:
            if t.requires_grad and not t._is_view() and t.grad_fn is not None:
                return t.grad_fn
        return None

    def results_of(self, node):
        """How many results of the last operator its node keeps at most; None: everything in the
        gap is its (a function written in Python)."""
        if node is None:
            written = self.last.name.split(".")[-2].endswith("_")
            return 1 if written and any(t._is_view() for t in self.last_tensors) else 0
        key = (node.name(), self.last.name)
        if key not in self.results_kept:
            names = set(dir(node))
            if "saved_tensors" in names or "saved_for_forward" in names:
                self.results_kept[key] = None
            else:
                arguments = {a.name for a in self.last_schema.arguments}
                kept = {n[11:] for n in names if n.startswith("_raw_saved_")}
                self.results_kept[key] = len(kept - arguments)
        return self.results_kept[key]

    def settle(self):
        """Gives the last operator what it kept of its results, notes whether gradients flow to
        them, and returns the packs of the operator to come."""
        if self.last is None:
            rest, self.gap = self.gap, []
            return rest
        for t, index in zip(self.last_tensors, self.last.outputs):
            self.record.values[index].grad = bool(t.requires_grad)
        n = self.results_of(self.node_of_last())
        mine = {self.record.values[i].storage for i in self.last.outputs}
        gap, self.gap = self.gap, []
        taken = 0
        while taken < len(gap) and (n is None or
                                    (taken < n and self.record.values[gap[taken]].storage in mine)):
            taken += 1
        self.keep_for(self.last, gap[:taken])
        return gap[taken:]

    def keep_for(self, op, values):
        for v in values:
            if v not in op.saved:
                op.saved.append(v)

    def finish(self):
        rest = self.settle()
        if self.last is not None:
            self.keep_for(self.last, rest)
        self.last, self.last_tensors = None, []

    # ---- operators ----

    def attr(self, x):
        torch = self.torch
        if isinstance(x, torch.dtype):
            return torch_dtype_name(x)
        if isinstance(x, torch.memory_format):
            return str(x).replace("torch.", "")
        if isinstance(x, (bool, int, str)):
            return x
        if isinstance(x, float):
            return x if x - x == 0 else str(x)
        if isinstance(x, (list, tuple)):
            return [self.attr(i) for i in x]
        if isinstance(x, complex):
            return str(x)
        if x is None:
            return None
        try:
            return int(x)
        except (TypeError, ValueError, RuntimeError):
            return str(x)

    def take_arguments(self, op, schema, args, kwargs):
        torch = self.torch
        if op.name not in self.record.operators:
            arguments = [a.name for a in schema.arguments if "Tensor" in str(a.type)]
            self.record.operators[op.name] = [op.name, arguments]
        for i, a in enumerate(schema.arguments):
            given = i < len(args) or a.name in kwargs
            x = args[i] if i < len(args) else kwargs.get(a.name)
            is_tensor = "Tensor" in str(a.type)
            if isinstance(x, torch.Tensor):
                op.inputs.append(self.value(x))
            elif isinstance(x, (list, tuple)) and is_tensor:
                op.inputs.append([None if t is None else self.value(t) for t in x])
            elif is_tensor and not isinstance(x, (bool, int, float)):
                op.inputs.append(None)
            elif given and x is not None and a.name not in PASSED_OVER:
                op.attrs[a.name] = self.attr(x)
                if is_tensor:
                    op.inputs.append(None)
        while op.inputs and op.inputs[-1] is None:
            op.inputs.pop()

    def see(self, func, args, kwargs, result_of):
        torch = self.torch
        schema = func._schema
        if any(schema.name.startswith(s) for s in SILENT):
            return result_of()
        pending = self.settle()
        name = schema.name.replace("::", ".")
        op = Op("%s.%s" % (name, schema.overload_name or "default"), self.modules.now())
        op.region = self.region
        self.take_arguments(op, schema, args, kwargs)
        self.keep_for(op, pending)
        read = [t for t in tree_leaves([args, kwargs], torch.Tensor)]
        seen = {self.storage_of(t, False) for t in read}
        self.last, self.last_tensors = None, []
        result = result_of()
        gap, self.gap = self.gap, []
        self.keep_for(op, gap)
        results = tree_leaves(result, torch.Tensor)
        if not results and not schema.name.endswith("_"):
            return result
        for t in results:
            op.outputs.append(self.put_out(t, read, seen))
        self.record.ops.append(op)
        self.last, self.last_tensors, self.last_schema = op, results, schema
        return result

    def put_out(self, t, read, seen):
        fresh = True
        try:
            at = self.storage_object(t)._cdata
            fresh = self.by_cdata.get(at) not in seen
        except (RuntimeError, NotImplementedError):
            pass
        return self.add(t, "temp", fresh=fresh)


def torch_dispatch_mode(torch, recorder):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            return recorder.see(func, args, kwargs, lambda: func(*args, **kwargs))

    return Mode()


# ---- attention: the kernel that a GPU would take ----


def sdpa_choice(torch, q, k, v, mask, gqa, wanted):
    """flash, efficient or math: the order in which current PyTorch asks on compute capability 8.0
    and newer (sdp_utils.cpp), without cuDNN's kernel, whose saved tensors have the same sizes as
    flash's."""
    half = q.dtype in (torch.float16, torch.bfloat16)
    usual = q.dim() == 4 and k.dim() == 4 and v.dim() == 4
    flash = (half and usual and mask is None and q.shape[-1] <= 256 and
             q.shape[-1] == k.shape[-1] == v.shape[-1])
    step = 8 if half else 4
    efficient = (usual and (half or q.dtype == torch.float32) and not gqa and
                 q.shape[-1] % step == 0 and v.shape[-1] % step == 0 and
                 q.shape[1] == k.shape[1] == v.shape[1])
    if wanted in ("auto", "flash") and flash:
        return "flash"
    if wanted in ("auto", "flash", "efficient") and efficient:
        return "efficient"
    return "math"


def torch_sdpa_mode(torch, recorder, wanted):
    """Fake CUDA tensors always take the mathematical fallback, because no GPU is there to ask.
    This calls the kernel's operator that a GPU would run."""
    from torch.overrides import TorchFunctionMode
    F = torch.nn.functional

    def mask_for(q, k, mask):
        if mask is None:
            return None
        if mask.dtype == torch.bool:
            mask = torch.where(mask, torch.zeros((), dtype=q.dtype, device=q.device),
                               torch.full((), float("-inf"), dtype=q.dtype, device=q.device))
        last = mask.shape[-1]
        if last % 16:  # pad_bias<16>: the kernel wants aligned rows
            mask = F.pad(mask, (0, 16 - last % 16))[..., :last]
        return mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])

    def run(original, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
            enable_gqa=False):
        aten = torch.ops.aten
        kind = "math"
        if q.device.type == "cuda":
            kind = sdpa_choice(torch, q, k, v, attn_mask, enable_gqa, wanted)
        recorder.record.note("attention: %s" % kind)
        if kind == "flash":
            width = q.shape[-1]
            if scale is None:
                scale = width ** -0.5
            if width % 8:  # pad_last_dim<8>
                q, k, v = (F.pad(x, (0, 8 - width % 8)) for x in (q, k, v))
            out = aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False,
                                                           scale=scale)[0]
            return out[..., :width] if width % 8 else out
        if kind == "efficient":
            wants = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or
                                                 v.requires_grad)
            return aten._scaled_dot_product_efficient_attention(
                q, k, v, mask_for(q, k, attn_mask), wants, dropout_p, is_causal, scale=scale)[0]
        more = {}
        if scale is not None:
            more["scale"] = scale
        if enable_gqa:
            more["enable_gqa"] = True
        return original(q, k, v, attn_mask, dropout_p, is_causal, **more)

    recurrent = {getattr(torch._VF, n) for n in ("lstm", "gru", "rnn_tanh", "rnn_relu")}

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func is F.scaled_dot_product_attention:
                return run(func, *args, **kwargs)
            if func is F.multi_head_attention_forward:
                # runs with this mode taken off: the function inside it is found by its name
                original = F.scaled_dot_product_attention
                F.scaled_dot_product_attention = functools.partial(run, original)
                try:
                    return func(*args, **kwargs)
                finally:
                    F.scaled_dot_product_attention = original
            if func in recurrent and args[0].device.type == "cuda":
                recorder.record.note("recurrent layers: PyTorch's own kernels, not cuDNN's")
                with torch.backends.cudnn.flags(enabled=False):
                    return func(*args, **kwargs)
            return func(*args, **kwargs)

    return Mode()


# ---- autocast without a GPU ----


def torch_autocast_state(torch):
    if hasattr(torch, "get_autocast_dtype"):
        return torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    return torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()


def torch_set_autocast(torch, state):
    if hasattr(torch, "get_autocast_dtype"):
        torch.set_autocast_enabled("cuda", state[0])
        torch.set_autocast_dtype("cuda", state[1])
    else:
        torch.set_autocast_enabled(state[0])
        torch.set_autocast_gpu_dtype(state[1])


@contextlib.contextmanager
def torch_autocast(torch, dtype, device):
    """torch.autocast("cuda") switches itself off where no GPU is there. What it would set is set
    by hand: the thread's autocast flag and type, which the dispatcher looks at; fake CUDA tensors
    carry the key that it acts on. Code of the module that opens autocast itself is let through."""
    if device != "cuda":
        with torch.autocast(device, dtype=dtype) if dtype is not None else contextlib.nullcontext():
            yield
        return
    common = getattr(torch.cuda.amp, "common", None)
    old = getattr(common, "amp_definitely_not_available", None)
    if old is not None:
        common.amp_definitely_not_available = lambda: False
    old_bf16 = getattr(torch.cuda, "is_bf16_supported", None)
    torch.cuda.is_bf16_supported = lambda *a, **k: True
    was = torch_autocast_state(torch)
    try:
        if dtype is not None:
            torch_set_autocast(torch, (True, dtype))
            torch.set_autocast_cache_enabled(True)
            torch.autocast_increment_nesting()
        yield
    finally:
        if dtype is not None:
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()
            torch_set_autocast(torch, was)
        if old is not None:
            common.amp_definitely_not_available = old
        if old_bf16 is not None:
            torch.cuda.is_bf16_supported = old_bf16


# ---- checkpointing ----


@contextlib.contextmanager
def torch_checkpoints(torch, recorder):
    """Regions under torch.utils.checkpoint run plainly and are marked: trivet runs them again
    when backward reaches them, and keeps only what went into them."""
    import torch.utils.checkpoint as module

    def begin(args, kwargs):
        kept = [recorder.value(t) for t in tree_leaves([args, kwargs], torch.Tensor)]
        recorder.record.regions.append(sorted(set(kept)))
        recorder.region, before = len(recorder.record.regions), recorder.region
        return before

    def end(before):
        recorder.region = before

    class Plain:
        @staticmethod
        def apply(function, preserve, *args):
            if recorder.region:
                return function(*args)
            before = begin(args, {})
            try:
                return function(*args)
            finally:
                end(before)

    def generator(function, *settings_and_args, **kwargs):
        args = settings_and_args[4:]
        inside = recorder.region
        before = begin(args, kwargs) if not inside else inside
        yield
        end(before)

    def direct(function, preserve=True, *args, **kwargs):
        return Plain.apply(lambda *a: function(*a, **kwargs), preserve, *args)

    changed = {"CheckpointFunction": Plain}
    if hasattr(module, "_checkpoint_without_reentrant_generator"):
        changed["_checkpoint_without_reentrant_generator"] = generator
    elif hasattr(module, "_checkpoint_without_reentrant"):
        changed["_checkpoint_without_reentrant"] = direct
    old = {k: getattr(module, k) for k in changed if hasattr(module, k)}
    try:
        for k in old:
            setattr(module, k, changed[k])
        yield
    finally:
        for k, v in old.items():
            setattr(module, k, v)


@contextlib.contextmanager
def torch_no_init(torch):
    """Weights get no values: their initialisers take time, and some look at what they made."""
    init = torch.nn.init
    old = {n: f for n, f in vars(init).items() if n.endswith("_") and not n.startswith("_") and
           callable(f)}
    try:
        for n in old:
            setattr(init, n, lambda tensor, *_, **__: tensor)
        yield
    finally:
        for n, f in old.items():
            setattr(init, n, f)


# ---- the module on tensors that hold nothing ----


class TorchStage:
    """The module with its parameters, buffers and other tensors replaced by ones of the wanted
    kind, and put back at the end. Ties stay ties."""

    def __init__(self, torch, root, convert):
        self.torch = torch
        self.root = root
        self.convert = convert
        self.memo = {}
        self.changed = []

    def swap(self, table, key, t):
        torch = self.torch
        if id(t) not in self.memo:
            with torch.no_grad():
                new = self.convert(t.detach() if not isinstance(t, torch.nn.Parameter) else t.data)
            if isinstance(t, torch.nn.Parameter):
                new = torch.nn.Parameter(new, requires_grad=t.requires_grad)
            else:
                new.requires_grad_(t.requires_grad)
            self.memo[id(t)] = (t, new)
        self.changed.append((table, key, t))
        table[key] = self.memo[id(t)][1]

    def __enter__(self):
        torch = self.torch
        for module in self.root.modules():
            for table in (module._parameters, module._buffers, module.__dict__):
                for key, t in list(table.items()):
                    if isinstance(t, torch.Tensor):
                        self.swap(table, key, t)
                    elif table is module.__dict__ and self.holds_tensors(key, t):
                        self.changed.append((table, key, t))
                        table[key] = tree_map(self.other, t, torch.Tensor)
        return self

    def holds_tensors(self, key, x):
        """A list or dict of tensors that the module keeps (flat weights, caches)."""
        if key in ("_parameters", "_buffers", "_modules") or "hook" in key:
            return False
        return isinstance(x, (list, tuple, dict)) and bool(tree_leaves(x, self.torch.Tensor))

    def other(self, t):
        one = {"t": t}
        self.swap(one, "t", t)
        self.changed.pop()
        return one["t"]

    def __exit__(self, *_):
        for table, key, t in reversed(self.changed):
            table[key] = t


def torch_weights(torch, root, recorder):
    """Declares parameters and buffers as values; their rows for the file."""
    parameters, buffers, ties = [], [], {}
    first = {}
    for name, p in root.named_parameters(remove_duplicate=False) if \
            torch_version(torch) >= (2, 0) else every_parameter(root):
        if id(p) in first:
            ties[name] = first[id(p)]
            continue
        first[id(p)] = name
        index = recorder.add(p, "parameter", name)
        recorder.record.values[index].grad = bool(p.requires_grad)
        parameters.append([name, index, 1 if p.requires_grad else 0])
    for name, b in root.named_buffers():
        index = recorder.add(b, "buffer", name)
        buffers.append([name, index])
    return parameters, buffers, ties


def every_parameter(root):
    for path, module in root.named_modules():
        for name, p in module._parameters.items():
            if p is not None:
                yield (path + "." + name if path else name), p


def default_loss(torch, output):
    """The output's own loss where it has one, else the sum of all outputs that gradients reach."""
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    parts = [t for t in tree_leaves(output, torch.Tensor) if t.requires_grad and
             t.dtype.is_floating_point]
    if not parts:
        return None
    total = parts[0].sum()
    for t in parts[1:]:
        total = total + t.sum()
    return total


def is_ours(error):
    """Whether an error was raised by this file itself: then it is to be seen."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return isinstance(error, CaptureError) or at is None or \
        at.tb_frame.f_code.co_filename == __file__ and \
        at.tb_frame.f_code.co_name not in ("<lambda>", "__torch_function__")


class TorchCapture:
    def __init__(self, module, inputs, kwargs, loss, train, autocast, device, mode, sdpa):
        import torch
        self.torch = torch
        self.version = torch_version(torch)
        self.module = module
        self.loss = loss
        self.train = train
        self.autocast = self.dtype(autocast)
        self.device = device
        self.sdpa = sdpa
        self.args = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        self.kwargs = kwargs or {}
        self.mode = mode
        self.stated = mode is not None
        self.fake = None
        if self.version < (1, 13):
            raise CaptureError("PyTorch %s is too old: 1.13 is needed" % torch.__version__)

    def dtype(self, name):
        torch = self.torch
        if name is None or isinstance(name, torch.dtype):
            return name
        short = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16"}.get(name, name)
        if short not in ("bfloat16", "float16"):
            raise CaptureError("autocast is bf16 or fp16, not %s" % name)
        return getattr(torch, short)

    # ---- the kind of tensors ----

    def convert_fake(self, t):
        torch = self.torch
        if t.layout is not torch.strided:
            raise CaptureError("sparse parameters are not captured")
        return torch.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device=self.device)

    def convert_meta(self, t):
        return self.torch.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")

    def convert_real(self, t):
        torch = self.torch
        return torch.zeros(t.shape, dtype=t.dtype) if t.device.type == "meta" else t.cpu()

    def around(self):
        return self.fake if self.fake is not None else contextlib.nullcontext()

    def sized(self, t, b, batch):
        """An input at another batch."""
        torch = self.torch
        shape = list(t.shape)
        if b is not None and shape and shape[0] == batch and b != batch:
            shape[0] = b
            if self.mode == "real" and t.device.type != "meta":
                t = t.detach()[[i % batch for i in range(b)]]
            else:
                new = torch.empty(shape, dtype=t.dtype,
                                  device="meta" if self.mode == "meta" else "cpu")
                new.requires_grad_(t.requires_grad)
                t = new
        wants = t.requires_grad
        convert = {"fake": self.convert_fake, "meta": self.convert_meta,
                   "real": self.convert_real}[self.mode]
        with torch.no_grad():
            new = convert(t.detach())
        return new.requires_grad_(wants)

    # ---- one run ----

    def hooks(self, modules):
        torch = self.torch
        m = torch.nn.modules.module
        before = m.register_module_forward_pre_hook(lambda mod, _: modules.enter(mod))
        after = m.register_module_forward_hook(lambda mod, _, __: modules.leave())
        return before, after

    def run(self, root, b, batch):
        torch = self.torch
        modules = Modules(root, root.named_modules())
        recorder = TorchRecorder(torch, modules, self.mode != "real")
        with self.around():
            weights = torch_weights(torch, root, recorder)
            args = tree_map(lambda t: self.sized(t, b, batch), self.args, torch.Tensor)
            kwargs = tree_map(lambda t: self.sized(t, b, batch), self.kwargs, torch.Tensor)
            for i, t in enumerate(tree_leaves([args, kwargs], torch.Tensor)):
                recorder.record.inputs.append(recorder.add(t, "input", "input%d" % i))
                recorder.record.values[recorder.record.inputs[-1]].grad = bool(t.requires_grad)
            self.forward(root, recorder, modules, args, kwargs)
        return recorder.record, modules, weights

    def forward(self, root, recorder, modules, args, kwargs):
        torch = self.torch
        hooks = self.hooks(modules)
        grad = torch.enable_grad() if self.train else torch.no_grad()
        real_device = self.device if self.mode == "fake" else "cpu"
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(grad)
                stack.enter_context(torch_checkpoints(torch, recorder))
                if self.train:
                    stack.enter_context(torch.autograd.graph.saved_tensors_hooks(
                        recorder.pack, lambda t: t))
                stack.enter_context(torch_dispatch_mode(torch, recorder))
                if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
                    stack.enter_context(torch_sdpa_mode(torch, recorder, self.sdpa))
                with torch_autocast(torch, self.autocast, real_device):
                    output = root(*args, **kwargs)
                    modules.stack = [modules.add("loss", "loss")]
                    loss = self.loss(output) if self.loss else default_loss(torch, output)
                recorder.finish()
        finally:
            for h in hooks:
                h.remove()
        seen = []
        for t in tree_leaves([output, loss], torch.Tensor):
            index = recorder.known(t)
            if index is not None and index not in seen:
                seen.append(index)
        recorder.record.outputs = seen

    # ---- the whole ----

    def made(self, light):
        """The module that the user's function makes; light: without memory."""
        torch = self.torch
        if not light:
            return self.module()
        with torch_no_init(torch), torch.device("meta"):
            return self.module()

    def root(self, light):
        torch = self.torch
        if isinstance(self.module, torch.nn.Module):
            return self.module
        made = None
        if light and self.version >= (2, 0):
            try:
                made = self.made(True)
            except Exception as e:  # a constructor that looks at its tensors' contents
                reason = str(e).split("\n")[0][:200] or type(e).__name__
                print("trivet_capture: the module is made in memory, because without: %s" % reason,
                      file=sys.stderr)
        if made is None:
            made = self.made(False)
        if not isinstance(made, torch.nn.Module):
            raise CaptureError("%r makes no torch.nn.Module" % (self.module,))
        return made

    def open_mode(self, record_notes):
        """Decides fake, meta or real."""
        if self.mode is None:
            self.mode = "fake" if self.version >= (2, 0) else "meta"
        if self.mode == "fake":
            from torch._subclasses.fake_tensor import FakeTensorMode
            self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        elif self.autocast is not None and self.mode == "meta":
            self.mode = "real"
        if self.mode != "fake":
            self.device = "cpu"
            record_notes.append("tensors of the CPU: its kernels keep other things than a GPU's "
                                "(dropout: 4 bytes a mask element where CUDA keeps 1)")

    def both_runs(self, root):
        torch = self.torch
        leaves = tree_leaves([self.args, self.kwargs], torch.Tensor)
        batches = {t.shape[0] for t in leaves if t.dim() > 0}
        if not leaves:
            raise CaptureError("no tensor among the sample inputs")
        batch = min(leaves[0].shape[:1], default=1)
        if any(t.dim() and t.shape[0] != batch for t in leaves) and len(batches) > 1:
            pass  # inputs without a batch stay as they are
        b = max(2, batch)
        fixed = None
        try:
            one = self.run(root, b, batch)
            two = self.run(root, b + 1, batch)
            fixed = difference(one[0], two[0])
        except CaptureError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError,
                AssertionError) as e:
            if batch == b:
                one = self.run(root, None, batch)  # its own failure is the user's answer
            fixed = "it does not run at batch %d: %s" % (b, str(e).split("\n")[0][:200])
        if fixed is None:
            try:
                merge(one[0], two[0], b)
                return one, b, batch, None
            except ValueError as e:
                fixed = str(e)
        return self.run(root, None, batch), batch, batch, fixed

    def once(self, notes):
        with TorchStage(self.torch, self.root_module, {
                "fake": self.convert_fake, "meta": self.convert_meta,
                "real": self.convert_real}[self.mode]) as _:
            return self.both_runs(self.root_module)

    def go(self, path):
        torch = self.torch
        notes = []
        self.open_mode(notes)
        asked = self.mode
        self.root_module = self.root(asked != "real")
        self.root_module.train(self.train)
        logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        try:
            with self.around():
                got = self.once(notes)
        except Exception as e:  # meta kernels are missing, sizes depend on data
            if asked == "real" or self.stated or is_ours(e):
                raise
            reason = str(e).split("\n")[0][:200] or type(e).__name__
            got = self.real_instead(asked, reason, notes)
        (record, modules, weights), run_at, batch, fixed = got
        if fixed:
            notes.append("the batch is fixed at %d: %s" % (batch, fixed))
        record.notes = notes + record.notes
        head = {
            "schema": SCHEMA,
            "framework": "torch",
            "version": torch.__version__,
            "device": self.device,
            "tensors": self.mode,
            "train": bool(self.train),
            "autocast": torch_dtype_name(self.autocast) if self.autocast is not None else None,
            "name": type(self.root_module).__name__,
            "batch": {"symbol": None if fixed else SYMBOL, "sample": batch, "run": run_at},
            "ties": weights[2],
        }
        write(path, head, record, modules, weights[0], weights[1])
        return head, record

    def real_instead(self, asked, reason, notes):
        """Fake or meta tensors did not get through: the module runs on the CPU for real."""
        notes.append("run on the CPU with real tensors, because with %s tensors: %s" %
                     (asked, reason))
        print("trivet_capture: %s" % notes[-1], file=sys.stderr)
        self.mode, self.fake, self.device = "real", None, "cpu"
        self.root_module = self.root(False)
        self.root_module.train(self.train)
        return self.once(notes)


# ---------------------------------------------------------------------------------------------
# Paddle
# ---------------------------------------------------------------------------------------------

PADDLE_DTYPES = {
    "FP64": "f64", "FP32": "f32", "FP16": "f16", "BF16": "bf16", "INT64": "i64", "INT32": "i32",
    "INT16": "i16", "INT8": "i8", "UINT8": "u8", "BOOL": "bool",
}

# Operators whose result is a view of their first operand; the second group where the framework's
# stride kernels are on (2.6 and newer, FLAGS_use_stride_kernel).
PADDLE_VIEWS = ("reshape2", "flatten_contiguous_range", "squeeze2", "unsqueeze2")
PADDLE_STRIDED = ("transpose2", "slice", "strided_slice", "split", "unbind", "unstack", "as_strided")

# Forward values that a gradient operator names for their shapes only: no_need_buffer in Paddle's
# backward.yaml.
PADDLE_NO_BUFFER = {
    "elementwise_add": ("X", "Y"), "elementwise_sub": ("X", "Y"), "reduce_mean": ("X",),
    "reduce_sum": ("X",), "mean": ("X",), "concat": ("X",), "slice": ("Input",),
    "strided_slice": ("Input",), "gather": ("X",), "gather_nd": ("X",), "index_select": ("X",),
    "lookup_table_v2": ("W",), "expand_v2": ("X",), "tile": ("X",), "pad": ("X",), "pad3d": ("X",),
    "where": ("X", "Y"), "batch_norm": ("Bias", "MeanOut", "VarianceOut"), "layer_norm": ("Bias",),
    "group_norm": ("Bias",), "nearest_interp_v2": ("X",), "bilinear_interp_v2": ("X",),
    "scatter": ("Updates",), "index_sample": (), "unfold": ("X",), "roll": ("X",), "flip": (),
    "transpose2": (), "cumsum": ("X",), "set_value": ("ValueTensor",), "add_n": ("X",),
    "sum": ("X",), "put_along_axis": (), "take_along_axis": (), "crop_tensor": ("X",),
}


class PaddleCapture:
    """Traces the layer into a static program (nothing is computed, no parameter has memory) and
    appends its backward: what a gradient operator reads of the forward pass is what autograd keeps
    for it."""

    def __init__(self, module, inputs, kwargs, loss, train, autocast, device, mode, sdpa):
        import paddle
        self.paddle = paddle
        self.module = module
        self.loss = loss
        self.train = train
        self.args = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        self.kwargs = kwargs or {}
        if autocast:
            raise CaptureError("autocast is not captured of Paddle: capture fp32 and state "
                               "--precision amp-fp16 or amp-bf16 to trivet")
        if isinstance(module, paddle.nn.Layer):
            raise CaptureError("Paddle traces a layer that is made inside the trace: pass its class "
                               "or a function that makes it")

    # ---- a trace ----

    def pir(self):
        """Whether this Paddle traces to the representation of 3.x."""
        try:
            return bool(self.paddle.framework.in_pir_mode())
        except AttributeError:
            return False

    def specs(self):
        kinds = (self.paddle.Tensor, self.paddle.static.InputSpec)
        return kinds, tree_leaves([self.args, self.kwargs], kinds)

    def placeholder(self, spec, i, b, batch):
        shape = [int(d) for d in spec.shape]
        if b is not None and shape and shape[0] == batch:
            shape[0] = b
        dtype = str(spec.dtype).replace("paddle.", "").split(".")[-1].lower()
        dtype = {"fp32": "float32", "fp16": "float16", "fp64": "float64"}.get(dtype, dtype)
        data = self.paddle.static.data("input%d" % i, shape, dtype)
        data.stop_gradient = getattr(spec, "stop_gradient", True) in (True, None)
        return data

    def hook(self, layer, modules, block, marks):
        def mark():
            while len(marks) < len(block.ops):
                marks.append(modules.now())

        def before(mod, _):
            mark()
            modules.enter(mod)

        def after(mod, _, __):
            mark()
            modules.leave()
        for _, sub in layer.named_sublayers(include_self=True):
            sub.register_forward_pre_hook(before)
            sub.register_forward_post_hook(after)
        return mark

    def trace(self, b, batch):
        paddle = self.paddle
        main, startup = paddle.static.Program(), paddle.static.Program()
        kinds, _ = self.specs()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            block = main.global_block()
            counter = iter(range(1 << 30))
            fill = lambda s: self.placeholder(s, next(counter), b, batch)
            args = tree_map(fill, self.args, kinds)
            kwargs = tree_map(fill, self.kwargs, kinds)
            layer = self.module()
            if not isinstance(layer, paddle.nn.Layer):
                raise CaptureError("%r makes no paddle.nn.Layer" % (self.module,))
            layer.train() if self.train else layer.eval()
            named = [("", layer)] + list(layer.named_sublayers())
            modules, marks = Modules(layer, named), []
            mark = self.hook(layer, modules, block, marks)
            out = layer(*args, **kwargs)
            mark()
            modules.stack = [modules.add("loss", "loss")]
            loss = self.loss(out) if self.loss else self.default_loss(out)
            mark()
            forward = list(block.ops)
            trained = [p for p in layer.parameters() if not p.stop_gradient]
            if self.train and loss is not None and trained:
                paddle.static.append_backward(loss)
            outputs = tree_leaves([out, loss], self.kind_of_values())
            traced = TracedPir if self.pir() else Traced
            return traced(paddle, block, forward, layer, modules, marks, outputs,
                          self.train).record()

    def kind_of_values(self):
        return self.paddle.pir.Value if self.pir() else self.paddle.static.Variable

    def default_loss(self, out):
        paddle = self.paddle
        parts = [t for t in tree_leaves(out, self.kind_of_values())
                 if any(k in str(t.dtype) for k in ("FP", "FLOAT", "float"))]
        total = None
        for t in parts:
            total = paddle.mean(t) if total is None else total + paddle.mean(t)
        return total

    # ---- the whole ----

    def both(self, batch):
        b = max(2, batch)
        try:
            one, two = self.trace(b, batch), self.trace(b + 1, batch)
            fixed = difference(one[0], two[0])
            if fixed is None:
                merge(one[0], two[0], b)
                return one, b, None
        except (ValueError, RuntimeError, TypeError, IndexError, AssertionError) as e:
            if is_ours(e):
                raise
            fixed = "it does not run at batch %d: %s" % (b, str(e).strip().split("\n")[-1][:200])
        return self.trace(None, batch), batch, fixed

    def go(self, path):
        paddle = self.paddle
        _, specs = self.specs()
        if not specs:
            raise CaptureError("no tensor among the sample inputs")
        batch = int(specs[0].shape[0]) if len(specs[0].shape) else 1
        if batch < 1:
            raise CaptureError("the sample inputs need a batch that is a number")
        was_dynamic = paddle.in_dynamic_mode()
        try:
            paddle.enable_static()
            (record, modules, weights), run_at, fixed = self.both(batch)
            pir = self.pir()
        finally:
            if was_dynamic:
                paddle.disable_static()
        if fixed:
            record.note("the batch is fixed at %d: %s" % (batch, fixed))
        head = {
            "schema": SCHEMA, "framework": "paddle", "version": paddle.__version__,
            "device": "any", "tensors": "traced", "train": bool(self.train), "autocast": None,
            "name": modules.rows[0][1], "pir": pir,
            "batch": {"symbol": None if fixed else SYMBOL, "sample": batch, "run": run_at},
            "ties": {},
        }
        write(path, head, record, modules, weights[0], weights[1])
        return head, record


class Traced:
    """A static program's operators as a record."""

    def __init__(self, paddle, block, forward, layer, modules, marks, outputs, train):
        self.block = block
        self.forward = forward
        self.layer = layer
        self.modules = modules
        self.marks = marks
        self.outputs = outputs
        self.train = train
        self.rows = Record()
        self.now = {}  # name of a variable -> its value
        strided = False
        try:
            strided = bool(list(paddle.get_flags("FLAGS_use_stride_kernel").values())[0])
        except (ValueError, RuntimeError, AttributeError):
            pass  # older than the flag
        self.views = PADDLE_VIEWS + (PADDLE_STRIDED if strided else ())

    def add(self, name, role, storage=None):
        var = self.block.var(name)
        shape = [int(d) for d in var.shape]
        kind = str(var.dtype).split(".")[-1].upper()
        kind = PADDLE_DTYPES.get(kind, kind.lower())
        if storage is None:
            storage = len(self.rows.storages)
            n = ITEM_BYTES.get(kind, 0)
            for d in shape:
                n *= d
            self.rows.storages.append(n)
        v = Value(kind, shape, storage, role, name)
        v.grad = self.train and self.block.has_var(name + "@GRAD")
        self.now[name] = len(self.rows.values)
        self.rows.values.append(v)
        return self.now[name]

    def value(self, name):
        if name not in self.now:
            self.add(name, "constant")
        return self.now[name]

    def weights(self):
        parameters, buffers = [], []
        tables = {b.name for _, b in self.layer.named_buffers()}
        for path, p in list(self.layer.named_parameters()) + list(self.layer.named_buffers()):
            if p.name in self.now:
                continue
            index = self.add(p.name, "parameter")
            if p.name in tables:
                buffers.append([path, index])
            else:
                trained = not p.stop_gradient
                self.rows.values[index].grad = trained
                parameters.append([path, index, 1 if trained else 0])
        return parameters, buffers

    def operands(self, names, of):
        """One entry a slot: a value, several, or null."""
        row = []
        for slot in names:
            values = of(slot)
            row.append(None if not values else values[0] if len(values) == 1 else values)
        return row

    def attrs(self, op):
        found = {}
        for name in op.attr_names:
            if name.startswith("op_") or name in ("with_quant_attr", "use_mkldnn", "use_cudnn",
                                                  "mkldnn_data_type", "use_quantizer"):
                continue
            x = op.attr(name)
            if isinstance(x, (bool, int, float, str)):
                found[name] = x if not isinstance(x, float) or x - x == 0 else str(x)
            elif isinstance(x, (list, tuple)) and all(isinstance(i, (bool, int, float, str))
                                                      for i in x):
                found[name] = list(x)
        return found

    def take(self, i, op):
        row = Op(op.type, self.marks[i] if i < len(self.marks) else 0)
        given = [s for s in op.input_names]
        made = [s for s in op.output_names]
        row.inputs = self.operands(given, lambda s: [self.value(n) for n in op.input(s)])
        first = next((n for s in given for n in op.input(s)), None)
        share = self.now[first] if op.type in self.views and first is not None else None
        puts = []
        for slot in made:
            names = [] if slot == "XShape" else op.output(slot)
            puts.append([self.put_out(n, share) for n in names])
        row.outputs = [v for p in puts for v in p]
        key = op.type
        self.rows.operators.setdefault(key, [key, given, made])
        row.slots = [None if not p else p[0] if len(p) == 1 else p for p in puts]
        row.attrs = self.attrs(op)
        self.rows.ops.append(row)
        return row

    def put_out(self, name, share):
        storage = None
        if share is not None:
            storage = self.rows.values[share].storage
        elif name in self.now:  # written in place: running statistics
            storage = self.rows.values[self.now[name]].storage
        return self.add(name, "temp", storage)

    def keep(self, rows):
        """Finds each gradient operator's forward operator and notes what it reads of it."""
        made_by = {}
        for op, row in zip(self.forward, rows):
            for slot in op.output_names:
                for n in op.output(slot):
                    made_by[n] = (op, row)
        values = {row: dict(zip_names(op, row)) for op, row in zip(self.forward, rows)}
        for g in self.block.ops[len(self.forward):]:
            if not g.type.endswith("_grad"):
                continue
            self.keep_of(g, made_by, values)

    def keep_of(self, g, made_by, values):
        kind = g.type[:-5]
        found = None
        for slot in g.input_names:
            for n in g.input(slot) if slot.endswith("@GRAD") else ():
                found = found or made_by.get(n.split("@GRAD")[0])
        if found is None or found[0].type != kind:
            return
        row, passed = found[1], PADDLE_NO_BUFFER.get(kind, ())
        for slot in g.input_names:
            if slot.endswith("@GRAD") or slot == "XShape" or slot in passed:
                continue
            for n in g.input(slot):
                v = values[row].get(n)
                if v is not None and v not in row.saved:
                    row.saved.append(v)

    def record(self):
        weights = self.weights()
        i = 0
        while self.block.has_var("input%d" % i):
            self.rows.inputs.append(self.add("input%d" % i, "input"))
            i += 1
        rows = [self.take(i, op) for i, op in enumerate(self.forward)]
        self.keep(rows)
        seen = []
        for n in [v.name for v in self.outputs]:
            if n in self.now and self.now[n] not in seen:
                seen.append(self.now[n])
        self.rows.outputs = seen
        return self.rows, self.modules, weights


def zip_names(op, row):
    """(name of a variable, value) of what an operator read and wrote."""
    for names, entries in ((op.input_names, row.inputs), (op.output_names, row.slots)):
        of = op.input if names is op.input_names or entries is row.inputs else op.output
        for slot, entry in zip(names, entries):
            listed = entry if isinstance(entry, list) else [entry]
            for name, v in zip(of(slot), listed):
                if v is not None:
                    yield name, v


# The same for Paddle 3's operators and argument names.
PIR_VIEWS = ("reshape", "flatten", "squeeze", "unsqueeze")
PIR_STRIDED = ("transpose", "slice", "strided_slice", "split", "split_with_num", "unbind",
               "as_strided")
PIR_NO_BUFFER = {
    "add": ("x", "y"), "subtract": ("x", "y"), "mean": ("x",), "mean_all": ("x",), "sum": ("x",),
    "concat": ("x",), "stack": ("x",), "slice": ("input",), "strided_slice": ("x",),
    "gather": ("x",), "gather_nd": ("x",), "index_select": ("x",), "embedding": ("weight",),
    "expand": ("x",), "expand_as": ("x",), "tile": ("x",), "pad": ("x",), "pad3d": ("x",),
    "where": ("x", "y"), "batch_norm": ("bias", "mean_out", "variance_out"),
    "layer_norm": ("bias",), "group_norm": ("bias",), "nearest_interp": ("x",),
    "bilinear_interp": ("x",), "bicubic_interp": ("x",), "reshape": ("x", "shape"),
    "flatten": ("x",), "squeeze": ("x",), "unsqueeze": ("x",), "unfold": ("x",), "roll": ("x",),
    "cumsum": ("x",), "as_strided": ("input",), "cast": ("x",), "meshgrid": ("inputs",),
    "add_n": ("inputs",), "scatter": ("updates",), "crop": ("x",), "kthvalue": (),
}


class TracedPir:
    """The same of a program of Paddle 3's intermediate representation. Its operators name their
    arguments; a list of tensors is one value that combine and split make and take apart."""

    def __init__(self, paddle, block, forward, layer, modules, marks, outputs, train):
        self.block = block
        self.forward = forward
        self.layer = layer
        self.modules = modules
        self.marks = marks
        self.outputs = outputs
        self.train = train
        self.rows = Record()
        self.now = {}  # id of a value -> our value, or a list of them
        self.names = {}
        strided = list(paddle.get_flags("FLAGS_use_stride_kernel").values())[0]
        self.views = PIR_VIEWS + (PIR_STRIDED if strided else ())

    @staticmethod
    def kind_and_shape(text):
        """("f32", [4, 8]) of "tensor<4x8xf32>"; sizes that only the run knows count as 0."""
        parts = text[text.index("<") + 1:text.rindex(">")].split("x")
        kind = {"i1": "bool", "b": "bool"}.get(parts[-1], parts[-1])
        return kind, [max(0, int(d)) for d in parts[:-1]]

    def add_one(self, text, grad, role, storage=None, name=""):
        kind, shape = self.kind_and_shape(text)
        if storage is None:
            storage = len(self.rows.storages)
            n = ITEM_BYTES.get(kind, 0)
            for d in shape:
                n *= d
            self.rows.storages.append(n)
        v = Value(kind, shape, storage, role, name)
        v.grad = bool(grad and self.train)
        self.rows.values.append(v)
        return len(self.rows.values) - 1

    def add(self, value, grad, role, storage=None, name=""):
        text = str(value.type())
        if text.startswith("vec["):
            made = [self.add_one(part + ">", grad, role, storage, name)
                    for part in text[4:-1].replace(" ", "").split(">") if "<" in part]
        else:
            made = self.add_one(text, grad, role, storage, name)
        self.now[value.id] = made
        return made

    def value(self, v):
        if not v.initialized():
            return None
        if v.id not in self.now:
            self.add(v, False, "constant")
        return self.now[v.id]

    def declare(self, ops):
        paths = {p.name: path for path, p in self.layer.named_parameters()}
        tables = {b.name: path for path, b in self.layer.named_buffers()}
        parameters, buffers = [], []
        for op in ops:
            name = op.attrs()["parameter_name"]
            trained = not op.attrs()["stop_gradient"][0]
            index = self.add(op.results()[0], trained, "parameter", name=name)
            if name in paths:
                parameters.append([paths[name], index, 1 if trained else 0])
            else:
                buffers.append([tables.get(name, name), index])
        return parameters, buffers

    def attrs(self, op):
        found = {}
        for name, x in op.attrs().items():
            if name in ("stop_gradient", "persistable", "struct_name", "op_callstack", "place"):
                continue
            if name == "dtype":
                found[name] = PADDLE_DTYPES.get(str(x).split(".")[-1].split(":")[0].upper()
                                                .replace("FLOAT", "FP").replace("BFP", "BF"), str(x))
            elif isinstance(x, (bool, int, float, str)):
                found[name] = x if not isinstance(x, float) or x - x == 0 else str(x)
            elif isinstance(x, (list, tuple)) and all(isinstance(i, (bool, int, float, str))
                                                      for i in x):
                found[name] = list(x)
        return found

    def share(self, kind, name, given):
        """The storage that a result lies in, where it is one of the operands'."""
        alias = None
        if kind in self.views and name == "out":
            alias = next(iter(given.values()), None)
        elif kind == "batch_norm_" and name in ("mean_out", "variance_out"):
            alias = given.get(name[:-4])
        elif kind.endswith("_") and kind != "batch_norm_" and name == "out":
            alias = given.get("x")
        if isinstance(alias, list):
            alias = alias[0] if alias else None
        return None if alias is None else self.rows.values[alias].storage

    def take(self, i, op):
        kind = op.name().replace("pd_op.", "")
        names, made = op.get_input_names(), op.get_output_names()
        given = {n: self.value(v) for n, v in zip(names, op.operands_source())}
        stops = op.attrs().get("stop_gradient") or []
        row = Op(kind, self.marks[i] if i < len(self.marks) else 0)
        row.inputs, row.slots = list(given.values()), []
        for k, (n, v) in enumerate(zip(made, op.results())):
            grad = k < len(stops) and not stops[k]
            row.slots.append(self.add(v, grad, "temp", self.share(kind, n, given))
                             if v.initialized() else None)
        row.outputs = [v for s in row.slots if s is not None
                       for v in (s if isinstance(s, list) else [s])]
        row.attrs = self.attrs(op)
        self.rows.operators.setdefault(kind, [kind, list(names), list(made)])
        self.rows.ops.append(row)
        return row

    def regroup(self, op):
        """combine and split move no data."""
        results = op.results()
        if op.name() == "builtin.combine":
            self.now[results[0].id] = [self.value(v) for v in op.operands_source()]
        else:
            for v, one in zip(results, self.value(op.operands_source()[0])):
                self.now[v.id] = one

    def flat(self, entries):
        return {v for e in entries if e is not None for v in (e if isinstance(e, list) else [e])}

    def keep(self, rows):
        """Gradient operators come in the reverse order of their forward operators."""
        waiting = {}
        for row in rows:
            waiting.setdefault(row.name.rstrip("_"), []).append(row)
        for g in self.block.ops[len(self.forward):]:
            kind = g.name().replace("pd_op.", "")
            if not kind.endswith("_grad") or not g.name().startswith("pd_op."):
                continue
            kind = kind[:-5]
            passed = PIR_NO_BUFFER.get(kind, ())
            read = {}
            for name, v in zip(g.get_input_names(), g.operands_source()):
                if v.initialized() and v.id in self.now and not name.endswith("_grad"):
                    read[name] = self.now[v.id]
            self.keep_of(waiting.get(kind, []), read, passed)

    def keep_of(self, candidates, read, passed):
        needed = self.flat(read.values())
        for row in reversed(candidates):
            if row.saved or not needed <= self.flat(row.inputs) | set(row.outputs):
                continue
            for name, entry in read.items():
                for v in self.flat([entry]) if name not in passed else ():
                    if v not in row.saved:
                        row.saved.append(v)
            return

    def record(self):
        ops = [o for o in self.forward if o.name() == "builtin.parameter"]
        weights = self.declare(ops)
        rows = []
        for i, op in enumerate(self.forward):
            if op.name() == "pd_op.data":
                index = self.add(op.results()[0], not op.attrs()["stop_gradient"][0], "input")
                self.rows.inputs.append(index)
            elif op.name() in ("builtin.combine", "builtin.split"):
                self.regroup(op)
            elif op.name().startswith("pd_op."):
                rows.append(self.take(i, op))
            elif op.name() != "builtin.parameter":
                raise CaptureError("Paddle's %s is not captured" % op.name())
        if self.train:
            self.keep(rows)
        for v in self.outputs:
            entry = self.now.get(v.id)
            for one in entry if isinstance(entry, list) else [entry]:
                if one is not None and one not in self.rows.outputs:
                    self.rows.outputs.append(one)
        return self.rows, self.modules, weights


# ---------------------------------------------------------------------------------------------
# The door
# ---------------------------------------------------------------------------------------------


def is_paddle(module, inputs):
    """Whether the module or its inputs are Paddle's; a function's own module decides else."""
    paddle = sys.modules.get("paddle")
    if paddle is None:
        return False
    if isinstance(module, type):
        return issubclass(module, paddle.nn.Layer)
    if isinstance(module, paddle.nn.Layer):
        return True
    kinds = (paddle.Tensor, paddle.static.InputSpec)
    return bool(tree_leaves(inputs, kinds)) or "torch" not in sys.modules


def capture(module, sample_inputs, path, kwargs=None, loss=None, train=True, autocast=None,
            device="cuda", tensors=None, sdpa="auto"):
    """Writes the capture of module(*sample_inputs, **kwargs) to path ("-": standard output).

    module         a module, or a function that makes one (then it needs no memory)
    sample_inputs  a tensor, or a list of them; only shapes and types are looked at
    loss           function of the output; without it the output's own .loss, else a sum
    train          training mode, with what autograd keeps; False: inference
    autocast       "bf16" or "fp16": forward and loss under torch.autocast
    device         whose kernels are captured, "cuda" or "cpu" (PyTorch 2)
    tensors        "fake", "meta" or "real"; without it the first that works
    sdpa           kernel of scaled_dot_product_attention: "auto", "flash", "efficient", "math"
    """
    maker = PaddleCapture if is_paddle(module, [sample_inputs, kwargs]) else TorchCapture
    got = maker(module, sample_inputs, kwargs, loss, train, autocast, device, tensors, sdpa)
    return got.go(path)


# ---- the command line ----

EXAMPLES = """examples:
  trivet_capture.py torchvision.models:resnet50 --input 1x3x224x224 -o resnet50.json
  trivet_capture.py nets.py:make --input ids=1x512:int64 --input mask=1x512:bool -o net.json
  trivet size resnet50.json --batch 64 --precision amp-bf16
"""


def parse_arguments(words):
    p = argparse.ArgumentParser(prog="trivet_capture.py", description=__doc__.split("\n")[0],
                                epilog=EXAMPLES,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("module", metavar="MODULE:NAME",
                   help="a module, its class, or a function that makes it; MODULE is imported, or "
                        "a file that ends in .py")
    p.add_argument("--input", action="append", default=[], metavar="[NAME=]DxDxD[:TYPE]",
                   help="shape and type (float32 unless stated) of an input, in order; with a name "
                        "it is handed over by it")
    p.add_argument("--kwarg", action="append", default=[], metavar="NAME=VALUE",
                   help="a further argument of the forward call; VALUE is JSON or text")
    p.add_argument("--make", action="append", default=[], metavar="NAME=VALUE",
                   help="an argument of the function that makes the module")
    p.add_argument("--loss", metavar="MODULE:NAME", help="function from the output to the loss")
    p.add_argument("--eval", action="store_true", help="inference: nothing is kept for backward")
    p.add_argument("--autocast", choices=["bf16", "fp16"], help="under torch.autocast")
    p.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    p.add_argument("--tensors", choices=["fake", "meta", "real"])
    p.add_argument("--sdpa", choices=["auto", "flash", "efficient", "math"], default="auto")
    p.add_argument("--framework", choices=["torch", "paddle"], default="torch")
    p.add_argument("-o", "--output", default="model.json", help="file to write; -: standard output")
    return p.parse_args(words)


def named(text, what):
    """The object that MODULE:NAME means."""
    module, colon, name = text.partition(":")
    if not colon or not name:
        raise CaptureError("%s is MODULE:NAME, not %s" % (what, text))
    if module.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        module = os.path.basename(module)[:-3]
    else:
        sys.path.insert(0, os.getcwd())
    at = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(at, part):
            raise CaptureError("%s has no %s" % (module, name))
        at = getattr(at, part)
    return at


def pair(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise CaptureError("NAME=VALUE is wanted, not %s" % text)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def shape_and_type(text):
    """("ids", [1, 512], "int64") of "ids=1x512:int64"."""
    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = "", text
    dims, _, kind = rest.partition(":")
    try:
        shape = [int(d) for d in dims.split("x")] if dims else []
    except ValueError:
        shape = [-1]
    if any(d < 0 for d in shape):
        raise CaptureError("a shape is 1x3x224x224, not %s" % dims)
    return name, shape, kind or "float32"


def empty_tensor(framework, shape, kind):
    if framework == "paddle":
        import paddle
        return paddle.static.InputSpec(shape, kind)
    import torch
    dtype = getattr(torch, kind, None)
    if not isinstance(dtype, torch.dtype):
        raise CaptureError("PyTorch has no type %s" % kind)
    return torch.empty(shape, dtype=dtype, device="meta")


def main(words=None):
    o = parse_arguments(words)
    try:
        module = named(o.module, "the module")
        made = dict(pair(m) for m in o.make)
        if callable(module) and made:
            module = functools.partial(module, **made)
        inputs, kwargs = [], dict(pair(k) for k in o.kwarg)
        for spec in o.input:
            name, shape, kind = shape_and_type(spec)
            t = empty_tensor(o.framework, shape, kind)
            if name:
                kwargs[name] = t
            else:
                inputs.append(t)
        loss = named(o.loss, "the loss") if o.loss else None
        head, record = capture(module, inputs, o.output, kwargs, loss, not o.eval, o.autocast,
                               o.device, o.tensors, o.sdpa)
    except (CaptureError, ImportError) as e:
        print("trivet_capture: %s" % e, file=sys.stderr)
        return 2
    for n in record.notes:
        print("trivet_capture: %s" % n, file=sys.stderr)
    if o.output != "-":
        print("%s: %d operators of %s" % (o.output, len(record.ops), head["name"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

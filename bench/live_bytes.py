"""What a training step keeps in memory, counted on the framework's own tensors.

The second opinion on trivet's ledger (bench/capture_accuracy.py): forward and backward run on
fake CUDA tensors, every storage is counted when an operator makes it and struck off when its
last reference goes. It shares nothing with trivet_capture but the way a module is put on fake
tensors.

The engine of autograd does not start on fake CUDA tensors where no GPU is there (it asks for
the device's context), so the graph is walked here in the engine's order: nodes of the highest
sequence number first, gradients of leaves at once, saved tensors let go when their node has
run, a second gradient added in place where nobody else holds the first. `check()` holds the
walk to the real engine on fake CPU tensors.
"""

import contextlib
import heapq
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Live(TorchDispatchMode):
    """Bytes of the storages that operators made and that are still referenced."""

    def __init__(self, device):
        super().__init__()
        self.device = device
        self.now = 0
        self.peak = 0
        self.peak_at = ""
        self.known = {}

    def add(self, tensor):
        if tensor.device.type != self.device:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.known:
            return
        size = storage.nbytes()
        self.now += size

        def gone(_, key=key, size=size):
            self.known.pop(key, None)
            self.now -= size

        self.known[key] = weakref.ref(storage, gone)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.add(t)
        if self.now > self.peak:
            self.peak, self.peak_at = self.now, str(func)
        return out

    def mark(self):
        self.peak = self.now


class Handle:
    """A saved tensor that can be let go."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor


def saved_hooks(seen):
    """seen: storage -> bytes of everything that autograd keeps, the framework's own account."""

    def pack(t):
        storage = t.untyped_storage()
        seen[storage._cdata] = storage.nbytes() if t.device.type != "cpu" or t.dim() else 0
        return Handle(t)

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda h: h.tensor)


def handles_of(node):
    found = []
    for name in dir(node):
        if not name.startswith("_raw_saved"):
            continue
        try:
            raw = getattr(node, name)
        except RuntimeError:
            continue
        for s in raw if isinstance(raw, (list, tuple)) else [raw]:
            data = getattr(s, "data", None)
            if isinstance(data, Handle):
                found.append(data)
    return found


def count_edges(root):
    """For each node that the root reaches: how many edges lead to it."""
    edges, todo = {root: 0}, [root]
    while todo:
        for node, _ in todo.pop().next_functions:
            if node is None:
                continue
            if node not in edges:
                edges[node] = 0
                todo.append(node)
            edges[node] += 1
    return edges


def is_dense(t):
    """Every element of its stretch of memory once, in some order of the axes."""
    want = 1
    for stride, size in sorted((st, n) for st, n in zip(t.stride(), t.shape) if n != 1):
        if stride != want:
            return False
        want *= size
    return True


class Walk:
    """The backward pass from a loss."""

    def __init__(self, in_place=True):
        self.in_place = in_place
        self.buffers = {}
        self.holders = {}  # id of a gradient -> how many buffers hold it
        self.storages = {}  # storage of a gradient -> likewise

    def hold(self, t, by):
        self.holders[id(t)] = self.holders.get(id(t), 0) + by
        key = t.untyped_storage()._cdata
        self.storages[key] = self.storages.get(key, 0) + by

    def deliver(self, node, slot, grad):
        buffer = self.buffers.setdefault(node, {})
        if slot not in buffer:
            buffer[slot] = grad
            self.hold(grad, 1)
            return
        old = buffer[slot]
        alone = self.in_place and self.storages[old.untyped_storage()._cdata] == 1 and \
            old.dtype == grad.dtype and is_dense(old)
        if alone:
            old.add_(grad)
            return
        self.hold(old, -1)
        buffer[slot] = old + grad
        self.hold(buffer[slot], 1)

    def leaf(self, node, grad):
        variable = node.variable
        if grad is None:
            return
        if variable.grad is not None:
            variable.grad.add_(grad)
            return
        shared = self.holders.get(id(grad), 0) > 0
        dense = is_dense(variable)
        if shared or (dense and grad.stride() != variable.stride()):
            grad = torch.empty_strided(variable.shape, variable.stride(), dtype=grad.dtype,
                                       device=grad.device).copy_(grad)
        variable.grad = grad.detach()

    def run_node(self, node):
        buffer = self.buffers.pop(node, {})
        width = max(buffer, default=-1) + 1
        metadata = getattr(node, "_input_metadata", None)
        if metadata:
            width = max(width, len(metadata))
        grads = [buffer.get(i) for i in range(width)]
        for g in buffer.values():
            self.hold(g, -1)
        buffer.clear()
        if hasattr(node, "variable"):
            self.leaf(node, grads[0])
            return ()
        if all(g is None for g in grads):
            return [None] * len(node.next_functions)
        handles = handles_of(node)
        call = node.apply if hasattr(node, "saved_tensors") else node
        if hasattr(node, "saved_tensors"):
            grads = [torch.zeros(m.shape, dtype=m.dtype, device=m.device) if g is None else g
                     for g, m in zip(grads, metadata)]
        out = call(*grads)
        del grads
        for h in handles:
            h.tensor = None
        return out if isinstance(out, (tuple, list)) else (out,)

    def run(self, loss):
        root = loss.grad_fn
        waiting = count_edges(root)
        self.deliver(root, 0, torch.ones_like(loss))
        heap, order = [], 0
        heapq.heappush(heap, (-root._sequence_nr(), order, root))
        while heap:
            node = heapq.heappop(heap)[2]
            outputs = list(self.run_node(node))
            edges = node.next_functions
            for i, (following, slot) in enumerate(edges):
                grad = outputs[i] if i < len(outputs) else None
                if i < len(outputs):
                    outputs[i] = None
                if following is None:
                    continue
                if grad is not None:
                    self.deliver(following, slot, self.fit(following, slot, grad))
                grad = None
                waiting[following] -= 1
                if waiting[following] == 0:
                    order += 1
                    heapq.heappush(heap, (-following._sequence_nr(), order, following))

    def fit(self, node, slot, grad):
        """validate_outputs: a gradient takes its variable's type and sums over expanded axes."""
        metadata = getattr(node, "_input_metadata", None)
        if not metadata or slot >= len(metadata):
            return grad
        m = metadata[slot]
        if tuple(grad.shape) != tuple(m.shape):
            grad = grad.sum_to_size(tuple(m.shape))
        return grad if grad.dtype == m.dtype else grad.to(m.dtype)


def static_bytes(root, device):
    sizes = {}
    for t in list(root.parameters()) + list(root.buffers()):
        if t.device.type == device:
            storage = t.untyped_storage()
            sizes[storage._cdata] = storage.nbytes()
    return sizes


def step(root, args, kwargs, loss_of, device="cuda", around=contextlib.nullcontext, engine=False,
         in_place=True):
    """One training step on fake tensors that stand ready. Returns bytes, parameters' gradients and
    inputs included, parameters themselves apart."""
    weights = static_bytes(root, device)
    live = Live(device)
    seen = {}
    with live, torch.enable_grad():
        for t in tree_leaves([args, kwargs]):
            if isinstance(t, torch.Tensor):
                live.add(t)
        inputs = live.now
        for key in weights:
            live.known.setdefault(key, None)
        live.mark()
        with saved_hooks(seen), around():
            out = root(*args, **kwargs)
            loss = loss_of(out)
        forward_end, forward_peak = live.now, live.peak
        forward_at = live.peak_at
        live.mark()
        if engine:
            loss.backward()
        else:
            with torch.no_grad():
                Walk(in_place).run(loss)
        del out
    return {
        "weights": sum(weights.values()),
        "inputs": inputs,
        "hooks": sum(n for k, n in seen.items() if k not in weights),
        "forward_end": forward_end,
        "forward_peak": forward_peak,
        "forward_peak_at": forward_at,
        "backward_peak": live.peak,
        "backward_peak_at": live.peak_at,
        "after": live.now,
    }

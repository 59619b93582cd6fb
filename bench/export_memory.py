"""How much main memory exporting a module takes beside the module itself, as copies of its weights.

export_memory.py KIND [BLOCKS [WIDTH]]
KIND: onnx, onnx-dynamo, export, trace, state (torch); paddle-jit, paddle-state (paddle)
Each kind needs a process of its own. Prints one JSON line: weights, peak above the loaded module,
their ratio, size of the files. Linux only (/proc). The figures are in docs/model.md, "Build
phases"."""
import importlib
import json
import os
import sys
import tempfile


def status(key):
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def torch_module(torch, blocks, width):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = self.qkv(self.norm_a(x)).chunk(3, -1)
            x = x + self.out(torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1) @ v)
            return x + self.down(nn.functional.gelu(self.up(self.norm_b(x))))

    module = nn.Sequential(*(Block() for _ in range(blocks))).eval()
    for p in module.parameters():
        p.requires_grad_(False)
    return module, sum(p.numel() * 4 for p in module.parameters())


def paddle_module(paddle, blocks, width):
    nn = paddle.nn

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = paddle.chunk(self.qkv(self.norm_a(x)), 3, -1)
            scores = nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) / 8.0, -1)
            x = x + self.out(paddle.matmul(scores, v))
            return x + self.down(nn.functional.gelu(self.up(self.norm_b(x))))

    module = nn.Sequential(*(Block() for _ in range(blocks)))
    module.eval()
    return module, sum(int(p.size) * 4 for p in module.parameters())


def torch_export(torch, kind, module, x, folder):
    if kind == "onnx":
        old = {} if torch.__version__ < "2.5" else {"dynamo": False}
        torch.onnx.export(module, (x,), folder + "/m.onnx", **old)
    elif kind == "onnx-dynamo":
        torch.onnx.export(module, (x,), folder + "/m.onnx", dynamo=True, verbose=False)
    elif kind == "export":
        torch.export.save(torch.export.export(module, (x,)), folder + "/m.pt2")
    elif kind == "trace":
        torch.jit.trace(module, (x,)).save(folder + "/m.pt")
    elif kind == "state":
        torch.save(module.state_dict(), folder + "/m.pth")


def paddle_export(paddle, kind, module, width, folder):
    if kind == "paddle-jit":
        spec = paddle.static.InputSpec([None, 16, width], "float32")
        paddle.jit.save(module, folder + "/m", input_spec=[spec])
    elif kind == "paddle-state":
        paddle.save(module.state_dict(), folder + "/m.pdparams")


def main():
    kind = sys.argv[1]
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    width = int(sys.argv[3]) if len(sys.argv) > 3 else 1024
    with tempfile.TemporaryDirectory() as folder:
        if kind.startswith("paddle"):
            paddle = importlib.import_module("paddle")
            module, weights = paddle_module(paddle, blocks, width)
            with paddle.no_grad():
                module(paddle.randn([1, 16, width]))
            before = status("VmRSS")
            forget_peak()
            paddle_export(paddle, kind, module, width, folder)
        else:
            torch = importlib.import_module("torch")
            module, weights = torch_module(torch, blocks, width)
            x = torch.randn(1, 16, width)
            with torch.no_grad():
                module(x)
                if kind == "onnx-dynamo":  # its libraries are loaded before the count
                    torch.onnx.export(torch.nn.Linear(4, 4), (torch.randn(1, 4),),
                                      folder + "/first.onnx", dynamo=True, verbose=False)
                before = status("VmRSS")
                forget_peak()
                torch_export(torch, kind, module, x, folder)
        above = status("VmHWM") - before
        size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(json.dumps({"kind": kind, "weights_bytes": weights, "above_bytes": above,
                      "copies": round(above / weights, 3), "files_bytes": size}))


main()

"""Holds trivet's Paddle reader and rules to Paddle itself (3.x from PyPI; never needed to build or
test): saves models in both forms, with stated and with open sizes, and compares parameters,
multiply-adds (paddle.flops counts convolutions and linear layers one for one) and the shape of
every value.

    paddle_models.py BUILD OUT [NAME...]

BUILD is a build folder with bench/program_check and bench/graph_figures."""
import json
import os
import pathlib
import subprocess
import sys

OLD = os.environ.get("FLAGS_enable_pir_api") == "0"


def networks():
    import paddle
    from paddle import nn
    from paddle.nn import functional as F
    from paddle.vision import models as zoo
    from paddle.vision.ops import DeformConv2D, yolo_box

    class Bert(nn.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(1000, 64), nn.Embedding(128, 64)
            self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 3)
            self.encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(64, 4, 128, activation="gelu"), 2)

        def forward(self, x):
            places = paddle.arange(x.shape[1]).unsqueeze(0)
            h = self.encoder(self.norm(self.words(x) + self.places(places)))
            return self.head(h[:, 0])

    class Crnn(nn.Layer):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2D(3, 32, 3, stride=[2, 1], padding=1)
            self.norm = nn.BatchNorm2D(32)
            self.lstm = nn.LSTM(32 * 16, 48, 2, direction="bidirect")
            self.head = nn.Linear(96, 50)

        def forward(self, x):
            h = F.hardswish(self.norm(self.conv(x))).transpose([0, 3, 1, 2]).flatten(2)
            return F.softmax(self.head(self.lstm(h)[0]))

    class Block(nn.Layer):
        def __init__(self, i, o, k=3, s=1, g=1):
            super().__init__()
            self.conv = nn.Conv2D(i, o, k, s, k // 2, groups=g, bias_attr=False)
            self.norm = nn.BatchNorm2D(o)

        def forward(self, x):
            return F.silu(self.norm(self.conv(x)))

    class Yolo(nn.Layer):
        """A small detector with a pyramid, and boxes decoded and suppressed."""

        def __init__(self):
            super().__init__()
            self.stem, self.down = Block(3, 16, 3, 2), Block(16, 32, 3, 2)
            self.deep, self.wide = Block(32, 64, 3, 2), Block(64, 64, 5, 1, 64)
            self.turn, self.mix = nn.Conv2DTranspose(64, 32, 2, 2), Block(64, 32)
            self.head = nn.Conv2D(32, 3 * 15, 1)

        def forward(self, x):
            p2 = self.down(self.stem(x))
            p3 = self.wide(self.deep(p2))
            up = F.interpolate(p3, scale_factor=2, mode="nearest")
            p2 = self.mix(paddle.concat([p2, self.turn(p3)], axis=1)) + up[:, :32]
            raw = self.head(F.max_pool2d(p2, 3, 2, 1, ceil_mode=True))
            size = paddle.full([x.shape[0], 2], 64, "int32")
            boxes, scores = yolo_box(raw, size, [10, 13, 16, 30, 33, 23], 10, 0.01, 8)
            best, which = paddle.topk(scores.max(axis=-1), 20)
            return paddle.take_along_axis(boxes, which.unsqueeze(-1), 1), best

    class Swin(nn.Layer):
        """Windows, a roll, attention written out, pixel shuffle."""

        def __init__(self):
            super().__init__()
            self.patch, self.qkv = nn.Conv2D(3, 32, 4, 4), nn.Linear(32, 96)
            self.norm, self.out = nn.LayerNorm(32), nn.Conv2D(32, 48, 1)
            self.group = nn.GroupNorm(4, 32)

        def forward(self, x):
            h = self.patch(x)
            b, c, height, width = h.shape
            t = paddle.roll(h.transpose([0, 2, 3, 1]), shifts=[2, 2], axis=[1, 2])
            t = t.reshape([b, height // 4, 4, width // 4, 4, c]).transpose([0, 1, 3, 2, 4, 5])
            t = self.norm(t.reshape([-1, 16, c]))
            q, k, v = self.qkv(t).chunk(3, axis=-1)
            a = F.softmax(paddle.matmul(q * c ** -0.5, k, transpose_y=True))
            t = paddle.matmul(a, v).reshape([b, height // 4, width // 4, 4, 4, c])
            t = t.transpose([0, 5, 1, 3, 2, 4]).reshape([b, c, height, width])
            return F.pixel_shuffle(self.out(self.group(t + h)), 4)

    class Deform(nn.Layer):
        def __init__(self):
            super().__init__()
            self.offset = nn.Conv2D(3, 18, 3, padding=1)
            self.conv = DeformConv2D(3, 8, 3, padding=1)
            self.prelu, self.norm = nn.PReLU(8), nn.InstanceNorm2D(8)

        def forward(self, x):
            y = self.norm(self.prelu(self.conv(x, self.offset(x))))
            y = F.pad(y, [1, 2, 3, 4], mode="reflect")
            return F.adaptive_avg_pool2d(y, [2, 3]).unsqueeze(-1).squeeze(-1).cumsum(axis=1)

    class Loop(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            i = paddle.zeros([1], "int64")
            while i < 3:
                x, i = self.fc(x), i + 1
            return x + 1 if x.mean() > 0 else x * 2

    image = lambda n: ([2, 3, n, n], "float32")
    return {
        "lenet": (zoo.LeNet, ([2, 1, 28, 28], "float32")),
        "resnet18": (zoo.resnet18, image(224)), "resnet50": (zoo.resnet50, image(224)),
        "mobilenet_v3_small": (zoo.mobilenet_v3_small, image(224)),
        "mobilenet_v2": (zoo.mobilenet_v2, image(224)),
        "vgg11": (zoo.vgg11, image(224)), "alexnet": (zoo.alexnet, image(224)),
        "squeezenet": (zoo.squeezenet1_0, image(224)),
        "densenet121": (zoo.densenet121, image(224)),
        "googlenet": (zoo.googlenet, image(224)), "inception_v3": (zoo.inception_v3, image(299)),
        "shufflenet": (zoo.shufflenet_v2_x1_0, image(224)),
        "bert": (Bert, ([2, 16], "int64")), "crnn": (Crnn, ([2, 3, 32, 100], "float32")),
        "yolo": (Yolo, image(64)), "swin": (Swin, image(64)), "deform": (Deform, image(20)),
        "loop": (Loop, ([2, 8], "float32")),
    }


def save(name, out):
    """One model in this process's form; prints what Paddle says of it."""
    import paddle
    from paddle.static import InputSpec
    make, (shape, dtype) = networks()[name]
    net = make()
    net.eval()
    counted = sum(p.size for p in net.parameters() if p.trainable)
    macs = 0
    if dtype == "float32" and not OLD:
        # paddle.flops turns tensors of one element into numbers, which newer NumPy refuses
        paddle.Tensor.__int__ = lambda t: int(t.numpy().reshape(-1)[0])
        try:
            macs = paddle.flops(net, [1] + shape[1:], print_detail=False)
        except Exception:  # a layer that paddle.flops cannot call
            macs = 0
    suffix = "old" if OLD else "pir"
    for kind, dims in (("fixed", shape), ("open", [-1] + shape[1:])):
        path = pathlib.Path(out) / f"{name}-{kind}-{suffix}" / "inference"
        static = paddle.jit.to_static(net, input_spec=[InputSpec(dims, dtype, "x")],
                                      full_graph=True)
        paddle.jit.save(static, str(path))
    print(json.dumps({"parameters": int(counted), "macs": int(macs)}))


def saved(name, out, old):
    env = dict(os.environ, **({"FLAGS_enable_pir_api": "0"} if old else {}))
    run = subprocess.run([sys.executable, __file__, "--save", name, out], env=env,
                         capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if run.returncode == 0 and lines else None


def trivet(build, tool, *args):
    run = subprocess.run([f"{build}/bench/{tool}", *args], capture_output=True, text=True,
                         check=False)
    return run.stdout


def compare(build, out, name):
    macs = 0
    for old in (False, True):
        said = saved(name, out, old)
        if not said:
            print(f"{name:20} {'old' if old else 'pir'}: Paddle itself could not save it")
            continue
        macs = macs or said["macs"]
        for kind in ("fixed", "open"):
            folder = f"{out}/{name}-{kind}-{'old' if old else 'pir'}"
            lines = trivet(build, "program_check", folder).splitlines()
            shapes = lines[0].split(": ", 1)[1] if lines else "?"
            figures = trivet(build, "graph_figures", folder).split("\t")
            figures = figures if len(figures) > 3 else " ".join(figures).split()
            print(f"{name:20} {'old' if old else 'pir'} {kind:5} parameters "
                  f"{figures[1]} of {said['parameters']}, multiply-adds {figures[3]} of {macs}, "
                  f"{shapes}" + "".join(f"; {x.strip()}" for x in lines[1:] if "unknown" in x))


def main():
    if sys.argv[1:2] == ["--save"]:
        save(*sys.argv[2:])
    elif len(sys.argv) >= 3:
        build, out, *names = sys.argv[1:]
        for name in names or networks():
            compare(build, out, name)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

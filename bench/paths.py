#!/usr/bin/env python3
"""The same models by every path that they can come by: the built-in description, ONNX from
PyTorch's older and newer exporter, a capture, torch.export. Parameters that train, multiply-adds of
a sample, bytes kept for backward a sample (fp32, no dropout, fused attention).

    python3 bench/onnx_exports.py DIR resnet50 mobilenet_v3_large ...
    meson compile -C build/release graph_figures
    python3 bench/paths.py --figures build/release/bench/graph_figures --exports DIR
    python3 bench/paths.py --figures ... --exports DIR --write docs/accuracy.md

A file NAME.pt2 or NAME.capture.json in DIR is one more path."""
import argparse
import pathlib
import subprocess
import sys

BEGIN = "<!-- paths: begin -->"
END = "<!-- paths: end -->"

# export, built-in name, flags, why their parameters differ where they do
MODELS = [
    ("resnet50", "resnet-50", [], ""),
    ("mobilenet_v3_large", "mobilenet-v3-large", [], ""),
    ("efficientnet_b0", "efficientnet-b0", [], ""),
    ("densenet121", "densenet-121", [], ""),
    ("convnext_tiny", "convnext-tiny", [], ""),
    ("vgg16", "vgg-16", [], ""),
    ("swin_t", "swin-t", [], ""),
    ("vit_b_16", "vit-base-16", [], ""),
    ("bert-base", "bert-base", ["--seq", "128"], ""),
    ("gpt2", "gpt2", ["--seq", "128"],
     "the older exporter stores the tied output matrix a second time"),
    ("sd15-unet", "sd-1.5", [], ""),
    ("yolov8n", "yolov8n", [], ""),
    ("yolov8s", "yolov8s", [], ""),
    ("nnunet-3d", "nnunet-3d-fullres", [], ""),
]


def figures(tool, flags, model):
    run = subprocess.run([tool, *flags, str(model)], capture_output=True, text=True)
    if run.returncode:
        sys.stderr.write(run.stderr)
        return None
    _, _, trained, products, kept, *_ = run.stdout.split("\t")
    return int(trained), int(products), int(kept)


def paths_of(folder, name):
    for kind, pattern in (("older exporter", "legacy"), ("newer exporter", "dynamo")):
        for p in sorted(folder.glob(f"{name}-{pattern}[0-9]*.onnx")):
            yield "ONNX, " + kind, p
    yield from (("capture", p) for p in folder.glob(f"{name}.capture.json"))
    yield from (("torch.export", p) for p in folder.glob(f"{name}.pt2"))


def share(x, y):
    return "same" if x == y else f"{100 * (x / y - 1):+.2f} %"


def row(model, path, f, base):
    cells = [f"{f[0]:,}", f"{f[1] / 1e9:.3f}", f"{f[2] / 1e6:.2f}"]
    if base:
        cells = [f"{c} ({share(x, y)})" for c, x, y in zip(cells, f, base)]
    return f"| {model} | {path} | " + " | ".join(cells) + " |"


def table(args):
    yield "| model | path | parameters that train | GMAC a sample | MB kept a sample |"
    yield "| --- | --- | --: | --: | --: |"
    for name, builtin, flags, why in MODELS:
        base = figures(args.figures, flags, builtin)
        if base:
            yield row(builtin, "built in", base, None)
        for path, file in paths_of(args.exports, name):
            f = figures(args.figures, flags, file)
            if f:
                yield row(builtin, path, f, base)
    notes = [f"{b}: {why}" for _, b, _, why in MODELS if why]
    yield ""
    yield ("Parameters of graphs count a batch norm that the exporter folded. Where they differ: "
           + "; ".join(notes) + ". Captures hold what autograd kept: torch's own "
           "MultiheadAttention, which torchvision's ViT is made of, keeps a contiguous copy of its "
           "output that other ViTs do not; GPT-2 gave its mask to the kernel.")


def write(path, lines):
    text = path.read_text()
    if BEGIN not in text:
        text = text.rstrip() + f"\n\n## Models by every path\n\n{BEGIN}\n{END}\n"
    head, rest = text.split(BEGIN)
    path.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", required=True, help="the program graph_figures")
    parser.add_argument("--exports", type=pathlib.Path, required=True)
    parser.add_argument("--write", type=pathlib.Path)
    args = parser.parse_args()
    lines = list(table(args))
    print("\n".join(lines))
    if args.write:
        write(args.write, lines)


if __name__ == "__main__":
    main()

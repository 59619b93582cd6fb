"""Exports models of torchvision, timm and transformers with torch.export, random weights made from
their configurations: nothing is downloaded. Needs torch (2.6 or newer), torchvision, timm and
transformers.

    pt2_exports.py OUT [--list] [NAME ...]

Writes OUT/NAME.pt2 (batch and, for text, the sequence left open; in evaluation mode),
OUT/NAME-core.pt2 (the same after run_decompositions(): core ATen) and, for some, OUT/NAME-train.pt2
(training mode). OUT/exports.jsonl says of each what torch itself finds in it: parameters,
operators, shapes, and the FLOPs that FlopCounterMode counts at the example's sizes."""

import argparse
import json
import pathlib
import time
import traceback
import warnings

import torch
from torch.export import Dim
from torch.utils.flop_counter import FlopCounterMode

warnings.filterwarnings("ignore")
MODELS = {}


def model(name, train=False):
    def add(make):
        MODELS[name] = (make, train)
        return make
    return add


class Picked(torch.nn.Module):
    """Calls a transformers model by keyword and yields tensors only."""

    def __init__(self, inner, names, pick, **fixed):
        super().__init__()
        self.inner, self.names, self.pick, self.fixed = inner, names, pick, fixed

    def forward(self, *args):
        out = self.inner(**dict(zip(self.names, args)), **self.fixed)
        return tuple(out[key] for key in self.pick)


def image(side=224, n=2):
    return (torch.randn(n, 3, side, side),)


def ids(vocabulary, length=32, n=2):
    return (torch.randint(0, vocabulary, (n, length)),)


def vision(name, side=224, train=False):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None), image(side), ({0: "batch"},)
    MODELS[name] = (make, train)


def timm_model(name, side=224):
    def make():
        import timm
        return timm.create_model(name, pretrained=False), image(side), ({0: "batch"},)
    MODELS["timm-" + name] = (make, False)


for each in ("resnet50", "mobilenet_v3_large", "efficientnet_b0", "swin_t", "vit_b_16",
             "convnext_tiny", "densenet121", "regnet_y_400mf", "shufflenet_v2_x1_0",
             "googlenet", "maxvit_t", "deeplabv3_resnet50"):
    vision(each, train=each in ("resnet50", "convnext_tiny"))
for each in ("deit_tiny_patch16_224", "mixer_b16_224", "resnext50_32x4d", "beit_base_patch16_224",
             "poolformer_s12", "mobilevit_s", "coat_lite_tiny", "hrnet_w18_small"):
    timm_model(each)


def text(name, build, vocabulary, names=("input_ids",), pick=("logits",), train=False, dims=None):
    def make():
        import transformers
        inner = build(transformers)
        args = ids(vocabulary)
        axes = ({0: "batch", 1: "seq"},) if dims is None else dims
        return Picked(inner, names, pick, use_cache=False), args, axes
    MODELS[name] = (make, train)


text("llama-tiny", lambda t: t.LlamaForCausalLM(t.LlamaConfig(
    vocab_size=1000, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
    num_attention_heads=8, num_key_value_heads=2)), 1000, train=True)
text("gpt2-tiny", lambda t: t.GPT2LMHeadModel(t.GPT2Config(
    vocab_size=1000, n_embd=256, n_layer=4, n_head=8)), 1000)
text("qwen3-tiny", lambda t: t.Qwen3ForCausalLM(t.Qwen3Config(
    vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=3,
    num_attention_heads=8, num_key_value_heads=4, head_dim=32)), 1000)
text("mamba-tiny", lambda t: t.MambaForCausalLM(t.MambaConfig(
    vocab_size=1000, hidden_size=128, num_hidden_layers=2, state_size=8)), 1000,
    dims=({0: "batch"},))


@model("bert-base")
def bert():
    import transformers as t
    inner = t.BertModel(t.BertConfig())
    return Picked(inner, ("input_ids",), ("last_hidden_state",)), ids(30522, 64), ({
        0: "batch", 1: "seq"},)


@model("whisper-tiny-encoder")
def whisper():
    import transformers as t
    inner = t.WhisperModel(t.WhisperConfig(d_model=128, encoder_layers=2, decoder_layers=2,
                                           encoder_attention_heads=4, decoder_attention_heads=4,
                                           encoder_ffn_dim=256, decoder_ffn_dim=256)).encoder
    return (Picked(inner, ("input_features",), ("last_hidden_state",)),
            (torch.randn(2, 80, 3000),), ({0: "batch"},))


@model("detr-resnet50")
def detr():
    import transformers as t
    config = t.DetrConfig(use_timm_backbone=True, backbone="resnet50",
                          use_pretrained_backbone=False)
    inner = t.DetrForObjectDetection(config)
    return (Picked(inner, ("pixel_values", "pixel_mask"), ("logits", "pred_boxes")),
            (torch.randn(2, 3, 224, 224), torch.ones(2, 224, 224, dtype=torch.int64)),
            ({}, {}))


@model("lstm-classifier")
def lstm():
    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(500, 64)
            self.lstm = torch.nn.LSTM(64, 96, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(192, 32, batch_first=True)
            self.head = torch.nn.Linear(32, 9)

        def forward(self, tokens):
            x, _ = self.lstm(self.embed(tokens))
            x, _ = self.gru(x)
            return self.head(x)
    return Tagger(), ids(500, 20), ({0: "batch"},)


def dynamic(axes):
    made = {}

    def dim(name):
        return made.setdefault(name, Dim(name, min=2, max=1 << 16))
    return tuple({i: dim(name) for i, name in one.items()} for one in axes)


def facts(program, args):
    """What torch finds in a saved program."""
    params = {k: list(v.shape) for k, v in program.named_parameters()}
    ops, shapes = {}, {}
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target.__name__ == "getitem":
            continue
        name = str(node.target)
        ops[name] = ops.get(name, 0) + 1
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            shapes[node.name] = [str(value.dtype).split(".")[1], [str(d) for d in value.shape]]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        program.module()(*args)
    distinct = {v.data_ptr(): v for _, v in program.named_parameters()}  # tied ones count once
    return {"params": sum(v.numel() for v in distinct.values()),
            "parameters": params, "buffers": len(program.state_dict) - len(params), "ops": ops,
            "shapes": shapes, "flops": counter.get_total_flops()}


def write(out, name, program, args, log):
    path = out / f"{name}.pt2"
    torch.export.save(program, path)
    again = torch.export.load(path)
    row = {"file": path.name, "torch": torch.__version__,
           "inputs": [list(a.shape) for a in args], **facts(again, args)}
    log.write(json.dumps(row) + "\n")
    log.flush()
    print(f"{path.name}: {row['params']:,} parameters, {sum(row['ops'].values())} nodes, "
          f"{row['flops']:,} FLOP")


def export(out, name, log):
    make, train = MODELS[name]
    inner, args, axes = make()
    started = time.time()
    shapes = dynamic(axes)
    if isinstance(inner, Picked):
        shapes = (shapes,)
    program = torch.export.export(inner.eval(), args, dynamic_shapes=shapes, strict=False)
    write(out, name, program, args, log)
    write(out, name + "-core", program.run_decompositions(), args, log)
    if train:
        program = torch.export.export(inner.train(), args, dynamic_shapes=shapes, strict=False)
        write(out, name + "-train", program, args, log)
    print(f"  {time.time() - started:.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MODELS))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    with open(options.out / "exports.jsonl", "a", encoding="utf-8") as log:
        for name in options.names or MODELS:
            try:
                export(options.out, name, log)
            except Exception:  # a model that this torch cannot export is news, not the end
                print(f"{name}: not exported")
                traceback.print_exc(limit=-2)


if __name__ == "__main__":
    main()

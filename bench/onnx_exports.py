"""Exports models of torchvision, transformers and diffusers to ONNX, with random weights made from
their configurations: nothing is downloaded. Needs torch, torchvision, transformers, onnx; diffusers
for the U-Nets, ultralytics and
dynamic-network-architectures for YOLO and nnU-Net, onnxscript for the newer exporter.

    onnx_exports.py OUT [--list] [--keep-weights] [--captures] [NAME ...]

Each model is written as OUT/NAME-legacy13.onnx (or -legacy17) and OUT/NAME-dynamo18.onnx, with the
batch (and the sequence) left open. Weights beyond 8 MB lie beside it in NAME-....onnx.data, a file
of the right length with nothing in it (a hole), unless --keep-weights is given: the graph and the
sizes are what a reader is tested with. OUT/exports.jsonl says what was written."""

import argparse
import json
import pathlib
import sys
import time
import traceback
import warnings
from math import prod

import torch

MODELS = {}
KEEP_INLINE_BYTES = 1024
HOLE_FROM_BYTES = 8 << 20


def model(name, opset=17):
    def add(make):
        MODELS[name] = (make, opset)
        return make
    return add


class Wrapped(torch.nn.Module):
    """Calls a transformers or diffusers model by keyword and yields tensors only."""

    def __init__(self, inner, names, pick, **fixed):
        super().__init__()
        self.inner, self.names, self.pick, self.fixed = inner, names, pick, fixed

    def forward(self, *args):
        out = self.inner(**dict(zip(self.names, args)), **self.fixed)
        return tuple(getattr(out, key) for key in self.pick)


def image(side=224, n=2):
    return torch.randn(n, 3, side, side)


def ids(vocabulary, length=16, n=2):
    return torch.randint(0, vocabulary, (n, length))


BATCH = {0: "batch"}
TEXT = {0: "batch", 1: "seq"}
SIDES = {0: "batch", 2: "height", 3: "width"}


def vision(name, axes=BATCH, side=224):
    def make():
        import torchvision
        more = {"weights_backbone": None} if name.startswith("deeplab") else {}
        net = torchvision.models.get_model(name, weights=None, **more)
        return net, (image(side),), [("image", axes)], ["out"]
    return make


for each in ("resnet50", "mobilenet_v3_large", "efficientnet_b0", "swin_t", "vit_b_16",
             "convnext_tiny", "densenet121", "regnet_y_800mf", "shufflenet_v2_x1_0",
             "inception_v3", "vgg16", "maxvit_t"):
    MODELS[each] = (vision(each), 17)
MODELS["resnet50-13"] = (vision("resnet50"), 13)
MODELS["resnet50-anysize"] = (vision("resnet50", SIDES), 17)
MODELS["deeplabv3_resnet50"] = (vision("deeplabv3_resnet50", BATCH, 256), 17)


@model("video_r3d_18")
def _():
    import torchvision
    net = torchvision.models.video.r3d_18(weights=None)
    return net, (torch.randn(1, 3, 8, 112, 112),), [("clip", BATCH)], ["out"]


@model("fasterrcnn_resnet50")
def _():
    import torchvision
    net = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)
    return net, ([image(320, 1)[0]],), [("image", {})], ["boxes", "labels", "scores"]


@model("ssdlite320")
def _():
    import torchvision
    net = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None)
    return net, ([image(320, 1)[0]],), [("image", {})], ["boxes", "scores", "labels"]


@model("detr-resnet50")
def _():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig
    backbone = ResNetConfig(out_features=["stage4"])
    net = DetrForObjectDetection(DetrConfig(use_timm_backbone=False, backbone=None,
                                            use_pretrained_backbone=False, backbone_config=backbone,
                                            backbone_kwargs=None))
    net = Wrapped(net, ["pixel_values", "pixel_mask"], ["logits", "pred_boxes"])
    return (net, (image(320), torch.ones(2, 320, 320, dtype=torch.long)),
            [("pixel_values", BATCH), ("pixel_mask", BATCH)], ["logits", "pred_boxes"])


@model("vit-base")
def _():
    from transformers import ViTConfig, ViTForImageClassification
    net = Wrapped(ViTForImageClassification(ViTConfig()), ["pixel_values"], ["logits"])
    return net, (image(),), [("pixel_values", BATCH)], ["logits"]


def bert(attention, opset_name):
    def make():
        from transformers import BertConfig, BertForSequenceClassification
        config = BertConfig(attn_implementation=attention)
        names = ["input_ids", "attention_mask", "token_type_ids"]
        net = Wrapped(BertForSequenceClassification(config), names, ["logits"])
        x = ids(config.vocab_size)
        return (net, (x, torch.ones_like(x), torch.zeros_like(x)), [(n, TEXT) for n in names],
                ["logits"])
    MODELS[opset_name] = (make, 14 if attention == "eager" else 17)


bert("eager", "bert-base-eager")
bert("sdpa", "bert-base")


def decoder(name, make_config, make_model, layers=None):
    def make():
        config = make_config()
        net = Wrapped(make_model(config), ["input_ids", "attention_mask"], ["logits"],
                      use_cache=False)
        x = ids(config.vocab_size)
        return (net, (x, torch.ones_like(x)), [("input_ids", TEXT), ("attention_mask", TEXT)],
                ["logits"])
    MODELS[name] = (make, 17)


def gpt2_config():
    from transformers import GPT2Config
    return GPT2Config(attn_implementation="eager")


def gpt2(config):
    from transformers import GPT2LMHeadModel
    return GPT2LMHeadModel(config)


def llama_config():
    from transformers import LlamaConfig
    return LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=4,
                       num_attention_heads=32, num_key_value_heads=4,
                       attn_implementation="eager")


def llama(config):
    from transformers import LlamaForCausalLM
    return LlamaForCausalLM(config)


decoder("gpt2", gpt2_config, gpt2)
decoder("llama-4layers", llama_config, llama)


@model("t5-small")
def _():
    from transformers import T5Config, T5EncoderModel
    net = Wrapped(T5EncoderModel(T5Config()), ["input_ids", "attention_mask"],
                  ["last_hidden_state"])
    x = ids(32128)
    return (net, (x, torch.ones_like(x)), [("input_ids", TEXT), ("attention_mask", TEXT)],
            ["last_hidden_state"])


@model("whisper-base-encoder")
def _():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    net = Wrapped(WhisperEncoder(WhisperConfig(d_model=512, encoder_layers=6,
                                               encoder_attention_heads=8, encoder_ffn_dim=2048)),
                  ["input_features"], ["last_hidden_state"])
    return net, (torch.randn(2, 80, 3000),), [("input_features", BATCH)], ["last_hidden_state"]


@model("wav2vec2-base")
def _():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC
    net = Wrapped(Wav2Vec2ForCTC(Wav2Vec2Config(attn_implementation="eager")), ["input_values"],
                  ["logits"])
    return (net, (torch.randn(2, 16000),), [("input_values", {0: "batch", 1: "samples"})],
            ["logits"])


@model("clip-vit-b32")
def _():
    from transformers import CLIPConfig, CLIPModel
    names = ["input_ids", "pixel_values", "attention_mask"]
    net = Wrapped(CLIPModel(CLIPConfig()), names, ["logits_per_image", "logits_per_text"])
    x = ids(49408)
    return (net, (x, image(), torch.ones_like(x)),
            [("input_ids", TEXT), ("pixel_values", {0: "images"}), ("attention_mask", TEXT)],
            ["logits_per_image", "logits_per_text"])


@model("segformer-b0")
def _():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation
    net = Wrapped(SegformerForSemanticSegmentation(SegformerConfig()), ["pixel_values"], ["logits"])
    return net, (image(512),), [("pixel_values", BATCH)], ["logits"]


@model("lstm")
def _():
    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(10000, 256)
            self.rnn = torch.nn.LSTM(256, 512, 2, bidirectional=True, batch_first=True)
            self.head = torch.nn.Linear(1024, 20)

        def forward(self, x):
            return self.head(self.rnn(self.embed(x))[0])
    return Tagger(), (ids(10000),), [("ids", TEXT)], ["tags"]


def unet(name, **keys):
    def make():
        from diffusers import UNet2DConditionModel
        net = Wrapped(UNet2DConditionModel(sample_size=64, **keys),
                      ["sample", "timestep", "encoder_hidden_states"], ["sample"])
        width = keys["cross_attention_dim"]
        args = torch.randn(2, 4, 64, 64), torch.tensor([1.0, 1.0]), torch.randn(2, 77, width)
        return (net, args, [("sample", SIDES), ("timestep", BATCH),
                            ("encoder_hidden_states", BATCH)], ["out_sample"])
    MODELS[name] = (make, 17)


unet("sd15-unet", cross_attention_dim=768, attention_head_dim=8)


@model("sd-vae-decoder")
def _():
    from diffusers import AutoencoderKL
    net = AutoencoderKL(block_out_channels=[128, 256, 512, 512], layers_per_block=2,
                        down_block_types=["DownEncoderBlock2D"] * 4,
                        up_block_types=["UpDecoderBlock2D"] * 4, latent_channels=4).decoder
    return net, (torch.randn(1, 4, 64, 64),), [("latent", SIDES)], ["image"]


def yolo(version):
    def make():
        from ultralytics.nn.tasks import DetectionModel # AGPL: only run here, never part of trivet
        net = DetectionModel(version + ".yaml", verbose=False)
        for m in net.modules():
            if hasattr(m, "inplace") and not isinstance(m.inplace, property):
                m.inplace = True
        return net, (image(640),), [("images", BATCH)], ["out"]
    return make


for each in ("yolov8n", "yolov8s"):
    MODELS[each] = (yolo(each), 17)


@model("nnunet-3d")
def _():
    from dynamic_network_architectures.architectures.unet import PlainConvUNet
    net = PlainConvUNet(
        1, 6, (32, 64, 128, 256, 320, 320), torch.nn.Conv3d, 3, (1, 2, 2, 2, 2, 2), 2, 3, 2,
        conv_bias=True, norm_op=torch.nn.InstanceNorm3d, norm_op_kwargs={"affine": True},
        nonlin=torch.nn.LeakyReLU, nonlin_kwargs={"inplace": True}, deep_supervision=True)
    return net, (torch.randn(2, 1, 128, 128, 128),), [("image", BATCH)], list("abcde")


def export(path, made, opset, dynamo):
    net, args, inputs, outputs = made
    names = [name for name, _ in inputs]
    keys = {"input_names": names, "output_names": outputs, "opset_version": opset}
    if dynamo:
        dim = torch.export.Dim.AUTO
        shapes = tuple({k: dim for k in axes} for _, axes in inputs)
        if isinstance(net, Wrapped): # its arguments are one star argument
            shapes = (shapes,)
        keys |= {"dynamo": True, "dynamic_shapes": shapes, "external_data": True, "optimize": True}
    else:
        keys |= {"dynamo": False, "dynamic_axes": {name: axes for name, axes in inputs if axes}}
    with torch.no_grad():
        torch.onnx.export(net, args, str(path), **keys)


def hollow(path, keep):
    """Moves the weights into one file beside the model, in place of whatever the exporter did."""
    import onnx
    from onnx.external_data_helper import uses_external_data
    from onnx.helper import tensor_dtype_to_np_dtype
    proto = onnx.load(str(path), load_external_data=keep)
    total = sum(1 for _ in proto.graph.initializer)
    for old in path.parent.glob("*"):
        if old.name not in before(path) and old != path and not old.name.endswith(".onnx"):
            old.unlink()
    if keep:
        if proto.ByteSize() < 1 << 30:
            onnx.save(proto, str(path))
        else:
            onnx.save(proto, str(path), save_as_external_data=True, location=path.name + ".data")
        return total
    sizes = [t for t in proto.graph.initializer
             if uses_external_data(t) or len(t.raw_data) > KEEP_INLINE_BYTES]
    at = 0
    lengths = [len(t.raw_data) or prod(t.dims) * tensor_dtype_to_np_dtype(t.data_type).itemsize
               for t in sizes]
    if sum(lengths) < HOLE_FROM_BYTES and not any(uses_external_data(t) for t in sizes):
        onnx.save(proto, str(path))
        return total
    for t, length in zip(sizes, lengths):
        del t.external_data[:]
        t.ClearField("raw_data")
        t.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", path.name + ".data"), ("offset", at), ("length", length)):
            entry = t.external_data.add()
            entry.key, entry.value = key, str(value)
        at += -(-length // 64) * 64
    with (path.parent / (path.name + ".data")).open("wb") as f:
        f.truncate(at)
    path.write_bytes(proto.SerializeToString())
    return total


def scatter(net):
    """Random numbers in every parameter: the exporters merge weights that are equal, and what a
    fresh model has of zeros and ones would be lost."""
    with torch.no_grad():
        for p in net.parameters():
            if p.is_floating_point():
                p.uniform_(-0.05, 0.05)
        for name, b in net.named_buffers():
            if name.endswith("running_mean"):
                b.uniform_(-0.1, 0.1)
            elif name.endswith("running_var"):
                b.uniform_(0.5, 1.5)


SEEN = {}


def before(path):
    return SEEN[path]


def write(out, name, keep, log):
    make, opset = MODELS[name]
    torch.manual_seed(0)
    made = make()
    made[0].eval()
    scatter(made[0])
    params = sum(p.numel() for p in made[0].parameters())
    for dynamo in (False, True):
        path = out / f"{name}-{'dynamo18' if dynamo else f'legacy{opset}'}.onnx"
        SEEN[path] = {p.name for p in out.iterdir()}
        start, row = time.monotonic(), {"file": path.name, "params": params}
        try:
            export(path, made, 18 if dynamo else opset, dynamo)
            row["initializers"] = hollow(path, keep)
        except Exception as e: # the exporters raise anything; the row says what
            row["error"] = f"{type(e).__name__}: {(str(e).strip() or '-').splitlines()[0]}"[:300]
            row["where"] = traceback.format_exc().strip().splitlines()[-3].strip()[:200]
            path.unlink(missing_ok=True)
        row["seconds"] = round(time.monotonic() - start, 1)
        log.write(json.dumps(row) + "\n")
        log.flush()
        print(json.dumps(row), flush=True)


def capture(out, name):
    """The same model by python/trivet_capture.py, in training mode without dropout."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
    import trivet_capture
    net, args, _, _ = MODELS[name][0]()
    for m in net.modules():
        if isinstance(m, torch.nn.modules.dropout._DropoutNd):
            m.p = 0.0
    trivet_capture.capture(net, args, str(out / f"{name}.capture.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep-weights", action="store_true")
    parser.add_argument("--captures", action="store_true", help="write NAME.capture.json, too")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODELS))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    with (args.out / "exports.jsonl").open("a") as log:
        for name in args.names or MODELS:
            try:
                write(args.out, name, args.keep_weights, log)
                if args.captures:
                    capture(args.out, name)
            except Exception as e: # the model itself could not be made
                print(f"{name}: {type(e).__name__}: {e}", flush=True)


if __name__ == "__main__":
    main()

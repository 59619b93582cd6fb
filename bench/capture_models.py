"""Models that the ledger is held to (bench/capture_accuracy.py): constructors of published
architectures with random weights, from torchvision, timm and transformers, and a few written
here. Nothing is downloaded."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model:
    def __init__(self, name, make, inputs, kwargs=None, loss=None, note=""):
        self.name = name
        self.make = make
        self.inputs = inputs
        self.kwargs = kwargs or {}
        self.loss = loss
        self.note = note


def image(batch=4, size=224, channels=3):
    return torch.empty(batch, channels, size, size, device="meta")


def ids(batch=4, seq=128):
    return torch.empty(batch, seq, dtype=torch.long, device="meta")


def classify(out):
    if isinstance(out, (tuple, list)):
        out = out[0]
    out = getattr(out, "logits", out)
    target = torch.zeros(out.shape[0], dtype=torch.long, device=out.device)
    return F.cross_entropy(out, target)


def segment(out):
    logits = out["out"] if isinstance(out, dict) else getattr(out, "logits", out)
    target = torch.zeros(logits.shape[0], *logits.shape[2:], dtype=torch.long, device=logits.device)
    loss = F.cross_entropy(logits, target)
    if isinstance(out, dict) and "aux" in out:
        loss = loss + 0.5 * F.cross_entropy(out["aux"], target)
    return loss


# ---- written here ----


class UNet(nn.Module):
    """The 2015 shape with batch norm and padding."""

    def __init__(self, width=32, depth=4, classes=2):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o),
                                 nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1, bias=False),
                                 nn.BatchNorm2d(o), nn.ReLU(inplace=True))
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(block(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(block(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for i, b in enumerate(self.down):
            x = b(x)
            if i + 1 < len(self.down):
                skips.append(x)
                x = F.max_pool2d(x, 2)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)


class Detector(nn.Module):
    """A one-stage detector's convolutions: backbone with SiLU, top-down path, three heads."""

    def __init__(self, w=32, classes=80):
        super().__init__()
        def cbs(i, o, k=3, s=1):
            return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o),
                                 nn.SiLU(inplace=True))
        class C3(nn.Module):
            def __init__(self, c, n):
                super().__init__()
                self.a, self.b, self.c = cbs(c, c // 2, 1), cbs(c, c // 2, 1), cbs(c, c, 1)
                self.m = nn.ModuleList(nn.Sequential(cbs(c // 2, c // 2, 1), cbs(c // 2, c // 2))
                                       for _ in range(n))

            def forward(self, x):
                y = self.a(x)
                for m in self.m:
                    y = y + m(y)
                return self.c(torch.cat([y, self.b(x)], 1))
        self.stem = cbs(3, w, 3, 2)
        self.d = nn.ModuleList(nn.Sequential(cbs(w << i, w << i + 1, 3, 2), C3(w << i + 1, n))
                               for i, n in enumerate((1, 2, 3, 1)))
        self.u = nn.ModuleList([cbs(w << 4, w << 3, 1), cbs(w << 3, w << 2, 1)])
        self.f = nn.ModuleList([C3(w << 4, 1), C3(w << 3, 1)])
        self.r = nn.ModuleList([cbs(w << 4, w << 3, 1), cbs(w << 3, w << 2, 1)])
        self.h = nn.ModuleList(nn.Conv2d(c, 3 * (classes + 5), 1) for c in (w << 2, w << 3, w << 4))

    def forward(self, x):
        x = self.stem(x)
        feats = []
        for d in self.d:
            x = d(x)
            feats.append(x)
        c3, c4, c5 = feats[1:]
        p5 = self.u[0](c5)
        p4 = self.r[0](self.f[0](torch.cat([F.interpolate(p5, scale_factor=2.0), c4], 1)))
        p3 = torch.cat([F.interpolate(self.u[1](p4), scale_factor=2.0), c3], 1)
        p3 = self.r[1](self.f[1](p3))
        return [self.h[0](p3), self.h[1](p4), self.h[2](c5)]


class WordLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10000, 650)
        self.lstm = nn.LSTM(650, 650, 2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(650, 10000)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.lstm(self.embed(x))[0])


def tokens_loss(out):
    return F.cross_entropy(out.flatten(0, 1), torch.zeros(out.shape[0] * out.shape[1],
                                                          dtype=torch.long, device=out.device))


OWN = [
    Model("own/unet", UNet, [image(2, 256)], loss=segment),
    Model("own/detector", Detector, [image(2, 320)]),
]


# ---- torchvision ----


def vision():
    import torchvision.models as m
    from torchvision.models import detection, segmentation, video
    for name in ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s",
                 "maxvit_t", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "regnet_x_800mf",
                 "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x1_0",
                 "squeezenet1_1", "swin_t", "swin_v2_t", "vgg16_bn", "vit_b_16", "wide_resnet50_2"):
        make = getattr(m, name)
        yield Model("torchvision/" + name, lambda make=make: make(weights=None), [image()],
                    loss=classify)
    yield Model("torchvision/googlenet", lambda: m.googlenet(weights=None, aux_logits=True,
                                                             init_weights=False), [image()])
    yield Model("torchvision/inception_v3",
                lambda: m.inception_v3(weights=None, init_weights=False), [image(4, 299)])
    for name in ("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
        make = getattr(segmentation, name)
        yield Model("torchvision/" + name,
                    lambda make=make: make(weights=None, weights_backbone=None), [image(2, 256)],
                    loss=segment)
    yield Model("torchvision/resnet_fpn", lambda: detection.backbone_utils.resnet_fpn_backbone(
        backbone_name="resnet50", weights=None, trainable_layers=3), [image(2, 512)],
        note="Faster R-CNN's backbone, two stages frozen")
    for name in ("r3d_18", "mvit_v2_s"):
        make = getattr(video, name)
        frames = torch.empty(2, 3, 16, 112 if name == "r3d_18" else 224,
                             112 if name == "r3d_18" else 224, device="meta")
        yield Model("torchvision/" + name, lambda make=make: make(weights=None), [frames],
                    loss=classify)


# ---- timm ----

TIMM = ("beit_base_patch16_224", "cait_xxs24_224", "coatnet_0_rw_224", "convmixer_768_32",
        "crossvit_9_240", "deit3_small_patch16_224", "dpn68", "edgenext_small",
        "efficientformer_l1",
        "ghostnet_100", "hrnet_w18", "levit_256", "mixer_b16_224", "mobilevit_s", "nfnet_f0",
        "poolformer_s12", "pvt_v2_b1", "repvgg_a2", "res2net50_26w_4s", "seresnext50_32x4d",
        "tf_efficientnetv2_b0", "twins_svt_small", "vit_small_patch16_224", "volo_d1_224",
        "xcit_tiny_12_p16_224", "xception41")


def image_models():
    import timm
    for name in TIMM:
        size = 240 if "240" in name else 224
        if name == "nfnet_f0":
            size = 192
        yield Model("timm/" + name, lambda name=name: timm.create_model(name, pretrained=False),
                    [image(4, size)], loss=classify)


# ---- transformers ----


def language():
    import transformers as t

    def lm(name, config, model, batch=4, seq=128, labels=True, **settings):
        def make():
            return getattr(t, model)(getattr(t, config)(**settings))
        kwargs = {"labels": ids(batch, seq)} if labels else {}
        return Model("transformers/" + name, make, [ids(batch, seq)], kwargs)

    small = {"num_hidden_layers": 4}
    yield lm("bert", "BertConfig", "BertForMaskedLM")
    yield lm("roberta", "RobertaConfig", "RobertaForMaskedLM")
    yield lm("distilbert", "DistilBertConfig", "DistilBertForMaskedLM")
    yield lm("electra", "ElectraConfig", "ElectraForMaskedLM")
    yield lm("albert", "AlbertConfig", "AlbertForMaskedLM", **small)
    yield lm("deberta-v2", "DebertaV2Config", "DebertaV2ForMaskedLM", num_hidden_layers=4,
             relative_attention=True, pos_att_type=["p2c", "c2p"], hidden_size=768,
             num_attention_heads=12, intermediate_size=3072)
    yield lm("gpt2", "GPT2Config", "GPT2LMHeadModel")
    yield lm("gpt-neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", num_hidden_layers=4,
             hidden_size=1024, intermediate_size=4096, num_attention_heads=16)
    yield lm("opt", "OPTConfig", "OPTForCausalLM", num_hidden_layers=4)
    yield lm("bloom", "BloomConfig", "BloomForCausalLM", n_layer=4, hidden_size=1024, n_head=16)
    yield lm("falcon", "FalconConfig", "FalconForCausalLM", num_hidden_layers=2, hidden_size=1024,
             num_attention_heads=16)
    gqa = {"num_hidden_layers": 4, "hidden_size": 1024, "intermediate_size": 2816,
           "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000}
    yield lm("llama", "LlamaConfig", "LlamaForCausalLM", **gqa)
    yield lm("llama-mha", "LlamaConfig", "LlamaForCausalLM", **dict(gqa, num_key_value_heads=16))
    yield lm("mistral", "MistralConfig", "MistralForCausalLM", **gqa)
    yield lm("qwen2", "Qwen2Config", "Qwen2ForCausalLM", **gqa)
    yield lm("qwen3", "Qwen3Config", "Qwen3ForCausalLM", head_dim=64, **gqa)
    yield lm("gemma2", "Gemma2Config", "Gemma2ForCausalLM", head_dim=64, **gqa)
    yield lm("phi3", "Phi3Config", "Phi3ForCausalLM", pad_token_id=0, **gqa)
    yield lm("mixtral", "MixtralConfig", "MixtralForCausalLM", num_local_experts=4,
             **dict(gqa, num_hidden_layers=2))
    yield lm("qwen3-moe", "Qwen3MoeConfig", "Qwen3MoeForCausalLM", num_experts=8,
             num_experts_per_tok=2, moe_intermediate_size=512, head_dim=64,
             **dict(gqa, num_hidden_layers=2))
    yield lm("mamba", "MambaConfig", "MambaForCausalLM", batch=2, seq=32, num_hidden_layers=2)
    yield Model("transformers/t5", lambda: t.T5ForConditionalGeneration(t.T5Config(
        num_layers=6, decoder_start_token_id=0)),
                [ids()], {"labels": ids(4, 64)})
    yield Model("transformers/bart", lambda: t.BartForConditionalGeneration(t.BartConfig(
        encoder_layers=3, decoder_layers=3)), [ids()], {"labels": ids(4, 64)})
    yield Model("transformers/whisper",
                lambda: t.WhisperForConditionalGeneration(t.WhisperConfig()),
                [torch.empty(2, 80, 3000, device="meta")], {"labels": ids(2, 64)})
    yield Model("transformers/wav2vec2", lambda: t.Wav2Vec2Model(t.Wav2Vec2Config(
        mask_time_prob=0.0, layerdrop=0.0)), [torch.empty(2, 16000, device="meta")])
    yield Model("transformers/clip", lambda: t.CLIPModel(t.CLIPConfig()), [],
                {"input_ids": ids(4, 77), "pixel_values": image(), "return_loss": True})
    yield Model("transformers/vit-mae", lambda: t.ViTMAEForPreTraining(t.ViTMAEConfig()), [image()])
    yield Model("transformers/dinov2", lambda: t.Dinov2Model(t.Dinov2Config()), [image()])
    yield Model("transformers/segformer", lambda: t.SegformerForSemanticSegmentation(
        t.SegformerConfig()), [image(2, 256)], {"labels": torch.empty(2, 256, 256, dtype=torch.long,
                                                                     device="meta")})
    yield Model("transformers/detr", lambda: t.DetrModel(t.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=t.ResNetConfig(out_features=["stage4"]))), [image(2, 320)])


def everything():
    models = list(OWN)
    models.append(Model("own/word-lstm", WordLstm, [ids(8, 35)], loss=tokens_loss))
    for source in (vision, image_models, language):
        models += list(source())
    return sorted(models, key=lambda m: m.name)


def held_out(index):
    """Every third of the sorted list is looked at only when the rules are done."""
    return index % 3 == 2

"""Residual nets (He et al. 2016) for photographs, with the names of the published weights, and for small images."""
from ..net_spec import layers as L
from . import Net
from .common import MSRA, ONE_CYCLE, Head

# Number of blocks in the four stages, and True for bottleneck blocks.
DEPTHS = {18: ((2, 2, 2, 2), False), 50: ((3, 4, 6, 3), True), 101: ((3, 4, 23, 3), True), 152: ((3, 8, 36, 3), True)}


def conv_norm(model, tag, bottom, outputs, kernel, stride=1, pad=0, relu=True):
    name = "conv1" if tag == "_conv1" else f"res{tag}"
    x = model.conv(name, bottom, outputs, kernel, stride, pad, bias=None, weight=MSRA)
    x = model.norm_and_scale(f"bn{tag}", f"scale{tag}", x)
    return model.relu(f"{name}_relu", x) if relu else x


def block_name(depth, stage, block):
    """3a, 3b, ...; in the two middle stages of the deep nets 3a, 3b1, 3b2, ..., as in the published weights."""
    if depth < 101 or stage not in (3, 4):
        return f"{stage}{'abcdef'[block]}"
    return f"{stage}b{block}" if block else f"{stage}a"


def resnet(depth):
    stages, bottleneck = DEPTHS[depth]

    def body(model, data):
        x = model.pool("pool1", conv_norm(model, "_conv1", data, 64, 7, stride=2, pad=3), "MAX", 3, 2)
        for stage, blocks in enumerate(stages, start=2):
            width = 32 * 2 ** (stage - 1)
            outputs = 4 * width if bottleneck else width
            for block in range(blocks):
                tag = block_name(depth, stage, block)
                stride = 2 if stage > 2 and block == 0 else 1
                shortcut = x
                if block == 0 and (bottleneck or stride == 2):
                    shortcut = conv_norm(model, f"{tag}_branch1", x, outputs, 1, stride, relu=False)
                if bottleneck:
                    y = conv_norm(model, f"{tag}_branch2a", x, width, 1, stride)
                    y = conv_norm(model, f"{tag}_branch2b", y, width, 3, pad=1)
                    y = conv_norm(model, f"{tag}_branch2c", y, outputs, 1, relu=False)
                else:
                    y = conv_norm(model, f"{tag}_branch2a", x, width, 3, stride, 1)
                    y = conv_norm(model, f"{tag}_branch2b", y, width, 3, pad=1, relu=False)
                x = model.relu(f"res{tag}_relu", model.add_up(f"res{tag}", shortcut, y))
        return [Head(model.inner_product(model.scores_name("fc1000"), model.global_pool("pool5", x), model.classes, weight=MSRA))]

    return body


def cifar_resnet(depth):
    """6 n + 2 layers; where the resolution halves, the shortcut averages pixels and pads new channels with 0."""
    def body(model, data):
        x = conv_norm(model, "_conv1", data, 16, 3, pad=1)
        for stage, width in ((1, 16), (2, 32), (3, 64)):
            for block in range(1, (depth - 2) // 6 + 1):
                tag = f"{stage}_{block}"
                stride = 2 if stage > 1 and block == 1 else 1
                shortcut = x
                if stride == 2:
                    kept = model.pool(f"res{tag}_half", x, "AVE", 2, 2)
                    empty = model.add(f"res{tag}_empty", L.Power(kept, scale=0))
                    shortcut = model.concat(f"res{tag}_shortcut", [kept, empty])
                y = conv_norm(model, f"{tag}a", x, width, 3, stride, 1)
                y = conv_norm(model, f"{tag}b", y, width, 3, pad=1, relu=False)
                x = model.relu(f"res{tag}_relu", model.add_up(f"res{tag}", shortcut, y))
        return [Head(model.inner_product(model.scores_name("fc10", 10), model.global_pool("pool", x), model.classes, weight=MSRA),
                     accuracy_top5=None)]

    return body


def small_resnet(model, data):
    """ResNet-20 with a first stage of 16 channels, for images with sides of 28 to 96 pixels."""
    return cifar_resnet(20)(model, data)


NETS = [
    Net("resnet20", "classification", small_resnet, "small images: 0.27 million weights", (16, 32, 96), 4, 128,
        dict(ONE_CYCLE, base_lr=0.2), 2_000_000),
    Net("resnet18", "classification", resnet(18), "photographs: 11 million weights", (64, 128, 512), 32, 32,
        dict(ONE_CYCLE, base_lr=0.05, weight_decay=0.0001), 300_000, is_default=True),
    Net("resnet50", "classification", resnet(50), "photographs: 24 million weights", (64, 224, 512), 32, 32,
        dict(ONE_CYCLE, base_lr=0.05, weight_decay=0.0001), 300_000),
]

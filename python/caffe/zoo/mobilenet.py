"""MobileNet 1 (Howard et al. 2017) and 2 (Sandler et al. 2018), with the names of the weights published for Caffe."""
from ..net_spec import layers as L
from . import Net
from .common import MSRA, ONE_CYCLE, Head


def unit(model, name, bottom, outputs, kernel=1, stride=1, group=1, relu=None):
    """Convolution and normalization; relu: name of a ReLU after them, if any."""
    x = model.conv(name, bottom, outputs, kernel, stride, kernel // 2, group, bias=None, weight=MSRA)
    normal = model.add(f"{name}/bn", L.BatchNorm(x))
    model.add(f"{name}/scale", L.Scale(normal, in_place=True, bias_term=True))
    return model.relu(relu, normal) if relu else normal


def classifier(model, x):
    # A convolution instead of a product, so that larger images give a map of scores.
    scores = model.conv(model.scores_name("fc7"), model.global_pool("pool6", x), model.classes, 1, weight=MSRA)
    return [Head(model.add("fc7/flat", L.Flatten(scores)))]


def mobilenet_v1(model, data):
    x = unit(model, "conv1", data, 32, 3, 2, relu="relu1")
    inputs = 32
    for name, outputs, stride in (("2_1", 64, 1), ("2_2", 128, 2), ("3_1", 128, 1), ("3_2", 256, 2), ("4_1", 256, 1),
                                  ("4_2", 512, 2), ("5_1", 512, 1), ("5_2", 512, 1), ("5_3", 512, 1), ("5_4", 512, 1),
                                  ("5_5", 512, 1), ("5_6", 1024, 2), ("6", 1024, 1)):
        x = unit(model, f"conv{name}/dw", x, inputs, 3, stride, inputs, relu=f"relu{name}/dw")
        x = unit(model, f"conv{name}/sep", x, outputs, relu=f"relu{name}/sep")
        inputs = outputs
    return classifier(model, x)


def mobilenet_v2(model, data):
    x = unit(model, "conv1", data, 32, 3, 2, relu="relu1")
    inputs = 32
    # Unlike the paper, the published weights have an expansion in the first block, too, with factor 1.
    for name, factor, outputs, stride in (
            ("2_1", 1, 16, 1), ("2_2", 6, 24, 2), ("3_1", 6, 24, 1), ("3_2", 6, 32, 2), ("4_1", 6, 32, 1),
            ("4_2", 6, 32, 1), ("4_3", 6, 64, 2), ("4_4", 6, 64, 1), ("4_5", 6, 64, 1), ("4_6", 6, 64, 1),
            ("4_7", 6, 96, 1), ("5_1", 6, 96, 1), ("5_2", 6, 96, 1), ("5_3", 6, 160, 2), ("6_1", 6, 160, 1),
            ("6_2", 6, 160, 1), ("6_3", 6, 320, 1)):
        wide = factor * inputs
        y = unit(model, f"conv{name}/expand", x, wide, relu=f"relu{name}/expand")
        y = unit(model, f"conv{name}/dwise", y, wide, 3, stride, wide, relu=f"relu{name}/dwise")
        y = unit(model, f"conv{name}/linear", y, outputs)
        x = model.add_up(f"block_{name}", x, y) if stride == 1 and inputs == outputs else y
        inputs = outputs
    return classifier(model, unit(model, "conv6_4", x, 1280, relu="relu6_4"))


NETS = [
    Net("mobilenet_v2", "classification", mobilenet_v2, "photographs, for small machines: 2.3 million weights", (64, 128, 512), 32, 32,
        dict(ONE_CYCLE, base_lr=0.05, weight_decay=0.00004), 300_000, pixels=((103.94, 116.78, 123.68), 0.017)),
]

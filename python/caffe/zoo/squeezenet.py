"""SqueezeNet 1.1 (Iandola et al. 2016), with the names of its published weights."""
from . import Net
from .common import MSRA, ONE_CYCLE, Head, gaussian


def fire(model, number, x, squeeze, expand):
    tag = f"fire{number}"

    def conv(name, bottom, outputs, kernel, pad=0):
        top = model.conv(f"{tag}/{name}", bottom, outputs, kernel, pad=pad)
        return model.relu(f"{tag}/relu_{name}", top)

    x = conv("squeeze1x1", x, squeeze, 1)
    return model.concat(f"{tag}/concat", [conv("expand1x1", x, expand, 1), conv("expand3x3", x, expand, 3, 1)])


def squeezenet(model, data):
    x = model.relu("relu_conv1", model.conv("conv1", data, 64, 3, stride=2, weight=MSRA))
    x = model.pool("pool1", x, "MAX", 3, 2)
    for number, squeeze, expand in ((2, 16, 64), (3, 16, 64)):
        x = fire(model, number, x, squeeze, expand)
    x = model.pool("pool3", x, "MAX", 3, 2)
    for number, squeeze, expand in ((4, 32, 128), (5, 32, 128)):
        x = fire(model, number, x, squeeze, expand)
    x = model.pool("pool5", x, "MAX", 3, 2)
    for number, squeeze, expand in ((6, 48, 192), (7, 48, 192), (8, 64, 256), (9, 64, 256)):
        x = fire(model, number, x, squeeze, expand)
    x = model.conv(model.scores_name("conv10"), model.dropout("drop9", x, 0.5), model.classes, 1, weight=gaussian(0.01))
    return [Head(model.global_pool("pool10", model.relu("relu_conv10", x)))]


NETS = [
    Net("squeezenet", "classification", squeezenet, "photographs, for small machines: 0.7 million weights", (64, 128, 512), 1, 32,
        dict(ONE_CYCLE, base_lr=0.02, weight_decay=0.0002), 300_000),
]

"""SqueezeNet 1.1 (Iandola et al. 2016), with the names of its published weights."""
from .common import MSRA, Head, Images, deploy, gaussian, solver, train_val


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
    x = model.conv("conv10", model.dropout("drop9", x, 0.5), 1000, 1, weight=gaussian(0.01))
    return [Head(model.global_pool("pool10", model.relu("relu_conv10", x)))]


def files():
    folder, images = "models/squeezenet", Images((3, 227, 227))
    yield f"{folder}/train_val.prototxt", train_val("SqueezeNet", squeezenet, images, 32, 50), ""
    yield f"{folder}/deploy.prototxt", deploy("SqueezeNet", squeezenet, images.shape), ""
    yield f"{folder}/solver.prototxt", solver(
        folder, base_lr=0.04, power=1, max_iter=170000, iter_size=16, weight_decay=0.0002, test_interval=2000,
        snapshot=2000), "68 epochs; 16 passes of 32 images make one update."

"""Convolutions alone for CIFAR-10: ConvPool-CNN-C (Springenberg et al. 2015), normalised where that drops out."""
from caffe.zoo.common import Head, Images, deploy, solver, train_val

FOLDER = "models/cifar10_nv"
IMAGES = Images((3, 28, 28), "examples/cifar10/cifar10_train_lmdb", "examples/cifar10/cifar10_test_lmdb",
                (113, 123, 125))


def convolutions(widths):
    """Three stages, two poolings between them; the last 1x1 convolution has a map for each class, whose mean is the score."""
    def body(model, x):
        def conv(name, outputs, kernel):
            top = model.conv(f"conv{name}", x, outputs, kernel, pad=kernel // 2)
            return model.relu(f"relu{name}", top)

        for stage, width in enumerate(widths[:2], start=1):
            for i in (1, 2, 3):
                x = conv(f"{stage}_{i}", width, 3)
            x = model.norm(f"bn{stage}", model.pool(f"pool{stage}", x, "MAX", 3, 2))
        for i, (width, kernel) in enumerate(((widths[2], 3), (widths[2], 1), (10, 1)), start=1):
            x = conv(f"3_{i}", width, kernel)
        return [Head(model.global_pool("pool3", x), accuracy_top5=None)]

    return body


def files():
    for suffix, name, widths in (("", "CIFAR10-nv", (96, 192, 192)),
                                 ("_large", "CIFAR10-nv-128-512-1024", (128, 512, 1024))):
        body, net = convolutions(widths), f"train_val{suffix}.prototxt"
        yield f"{FOLDER}/{net}", train_val(name, body, IMAGES, 128, 512), ""
        yield f"{FOLDER}/deploy{suffix}.prototxt", deploy(name, body, IMAGES.shape), ""
        yield f"{FOLDER}/solver{suffix}.prototxt", solver(
            FOLDER, net, f"cifar10_nv{suffix}", base_lr=0.01, power=2, max_iter=100000, weight_decay=0.004,
            test_iter=[20], test_interval=400), "256 epochs of batches of 128."

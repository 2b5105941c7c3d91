"""Residual nets (He et al. 2016) for ImageNet, with the names of their published weights, and for CIFAR-10."""
from caffe.net_spec import layers as L

from .common import FLOAT16, FLOAT_MATH, MSRA, Head, Images, benchmark, deploy, solver, train_val

# Blocks in the four stages, and whether they are bottlenecks.
DEPTHS = {18: ((2, 2, 2, 2), False), 50: ((3, 4, 6, 3), True), 101: ((3, 4, 23, 3), True), 152: ((3, 8, 36, 3), True)}


def conv_norm(model, tag, bottom, outputs, kernel, stride=1, pad=0, relu=True):
    name = "conv1" if tag == "_conv1" else f"res{tag}"
    x = model.conv(name, bottom, outputs, kernel, stride, pad, bias=None, weight=MSRA)
    x = model.norm_and_scale(f"bn{tag}", f"scale{tag}", x)
    return model.relu(f"{name}_relu", x) if relu else x


def block_name(stage, block, blocks):
    """3a, 3b, ... in short stages; 4a, 4b1, 4b2, ... in long ones, as in the published weights."""
    return f"{stage}{'abcdef'[block]}" if blocks <= 6 else f"{stage}a" if block == 0 else f"{stage}b{block}"


def resnet(depth):
    stages, bottleneck = DEPTHS[depth]

    def body(model, data):
        x = model.pool("pool1", conv_norm(model, "_conv1", data, 64, 7, stride=2, pad=3), "MAX", 3, 2)
        for stage, blocks in enumerate(stages, start=2):
            width = 32 * 2 ** (stage - 1)
            outputs = 4 * width if bottleneck else width
            for block in range(blocks):
                tag = block_name(stage, block, blocks)
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
        return [Head(model.inner_product("fc1000", model.global_pool("pool5", x), 1000, weight=MSRA))]

    return body


def cifar_resnet(depth):
    """6 n + 2 layers; where the image is halved, the shortcut averages pixels and new channels begin at 0."""
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
        return [Head(model.inner_product("fc10", model.global_pool("pool", x), 10, weight=MSRA), accuracy_top5=None)]

    return body


PAPER = "8 passes of 32 images make one update; a tenth of the rate after 150,000 and 300,000 of them."


def files():
    images = Images()
    for depth in DEPTHS:
        name, folder, body = f"ResNet-{depth}", f"models/resnet{depth}", resnet(depth)
        batch = 128 if depth == 18 else 32
        yield f"{folder}/train_val.prototxt", train_val(name, body, images, batch, 50), ""
        yield f"{folder}/deploy.prototxt", deploy(name, body, images.shape), ""
        if depth > 18:
            yield f"{folder}/solver.prototxt", solver(
                folder, base_lr=0.1, lr_policy="multistep", gamma=0.1, stepvalue=[150000, 300000], max_iter=600000,
                iter_size=8, weight_decay=0.0001), PAPER
    recipe = dict(base_lr=0.1, power=2, max_iter=600000, weight_decay=0.0001, test_interval=10000)
    yield "models/resnet18/solver.prototxt", solver("models/resnet18", **recipe), "60 epochs of batches of 128."
    yield "models/resnet18/train_val_fp16.prototxt", train_val(
        "ResNet-18-fp16", resnet(18), images, 128, 50, **FLOAT16, **FLOAT_MATH), ""
    yield "models/resnet18/solver_fp16.prototxt", solver(
        "models/resnet18", "train_val_fp16.prototxt", "resnet18_fp16", **recipe), "60 epochs of batches of 128."
    yield "models/resnet50/train_val_fp16.prototxt", train_val(
        "ResNet-50-fp16", resnet(50), images, 256, 50, **FLOAT16, global_grad_scale=1000), ""
    yield "models/resnet50/solver_fp16.prototxt", solver(
        "models/resnet50", "train_val_fp16.prototxt", "resnet50_fp16", base_lr=0.2, power=2, max_iter=500000,
        weight_decay=0.0001), "100 epochs of batches of 256."
    yield "models/resnet50/solver_1K.prototxt", solver(
        "models/resnet50", "train_val_fp16.prototxt", "resnet50_1K", base_lr=1, power=2, max_iter=125000, iter_size=4,
        weight_decay=0.0005, larc=True, larc_policy="clip", larc_eta=0.002, test_interval=1250), (
            "100 epochs of batches of 1,024, as 4 passes of 256, with a rate for each layer.")
    yield "benchmarks/nets/resnet50.prototxt", benchmark("ResNet-50", resnet(50), images.shape, 16), ""

    # Training images come with a border of 4 pixels, so that the cut-out moves.
    small = Images((3, 32, 32), "examples/cifar10/cifar10_train_padded_lmdb", "examples/cifar10/cifar10_test_lmdb",
                   (113, 123, 125))
    for depth in (20, 56):
        folder, body = f"models/cifar10_resnet{depth}", cifar_resnet(depth)
        yield f"{folder}/train_val.prototxt", train_val(f"ResNet-{depth}", body, small, 128, 100), ""
        yield f"{folder}/deploy.prototxt", deploy(f"ResNet-{depth}", body, small.shape), ""
        yield f"{folder}/solver.prototxt", solver(
            folder, base_lr=0.1, lr_policy="multistep", gamma=0.1, stepvalue=[32000, 48000], max_iter=64000,
            weight_decay=0.0001, test_iter=[100], test_interval=1000), (
                "Batches of 128; a tenth of the rate after 32,000 and 48,000 iterations.")

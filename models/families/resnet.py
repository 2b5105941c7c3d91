"""Residual nets (He et al. 2016) for ImageNet and CIFAR-10."""
from caffe.zoo.common import FLOAT16, FLOAT_MATH, Images, benchmark, deploy, solver, train_val
from caffe.zoo.resnet import DEPTHS, cifar_resnet, resnet

PAPER = "8 passes of 32 images make one update; a tenth of the rate after 150,000 and 300,000 of them."


def files():
    images = Images()
    for depth in DEPTHS:
        name, folder, body = f"ResNet-{depth}", f"models/resnet{depth}", resnet(depth)
        batch = 128 if depth == 18 else 32
        yield f"{folder}/train_val.prototxt", train_val(name, body, images, batch, 50), ""
        yield f"{folder}/deploy.prototxt", deploy(name, body, images.shape), ""
        yield f"{folder}/model_info.prototxt", images.info(), ""
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

    small = Images((3, 32, 32), "examples/cifar10/cifar10_train_lmdb", "examples/cifar10/cifar10_test_lmdb", (113, 123, 125),
                   pad=4)
    for depth in (20, 56):
        folder, body = f"models/cifar10_resnet{depth}", cifar_resnet(depth)
        yield f"{folder}/train_val.prototxt", train_val(f"ResNet-{depth}", body, small, 128, 100, classes=10), ""
        yield f"{folder}/deploy.prototxt", deploy(f"ResNet-{depth}", body, small.shape, classes=10), ""
        yield f"{folder}/solver.prototxt", solver(
            folder, base_lr=0.1, lr_policy="multistep", gamma=0.1, stepvalue=[32000, 48000], max_iter=64000,
            weight_decay=0.0001, test_iter=[100], test_interval=1000), (
                "Batches of 128; a tenth of the rate after 32,000 and 48,000 iterations.")

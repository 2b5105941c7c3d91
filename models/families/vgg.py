"""VGG, configurations D and E."""
from caffe.zoo.common import FLOAT16, FLOAT_MATH, Images, deploy, solver, train_val
from caffe.zoo.vgg import CONVOLUTIONS, vgg


def files():
    images = Images(mean=(103.939, 116.779, 123.68))
    recipe = dict(base_lr=0.005, power=2, max_iter=2400000, weight_decay=0.0005, test_interval=20000, snapshot=20000)
    for depth in CONVOLUTIONS:
        folder, name = f"models/vgg{depth}", f"VGG-{depth}"
        yield f"{folder}/train_val.prototxt", train_val(name, vgg(depth), images, 32, 50), ""
        yield f"{folder}/deploy.prototxt", deploy(name, vgg(depth), images.shape), ""
        yield f"{folder}/model_info.prototxt", images.info(), ""
        yield f"{folder}/solver.prototxt", solver(folder, **recipe), "60 epochs of batches of 32."
    yield "models/vgg16/train_val_fp16.prototxt", train_val("VGG-16-fp16", vgg(16), images, 32, 50, **FLOAT16, **FLOAT_MATH), ""
    yield "models/vgg16/solver_fp16.prototxt", solver(
        "models/vgg16", "train_val_fp16.prototxt", "vgg16_fp16", **recipe), "60 epochs of batches of 32."

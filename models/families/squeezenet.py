"""SqueezeNet 1.1."""
from caffe.zoo.common import Images, deploy, solver, train_val
from caffe.zoo.squeezenet import squeezenet


def files():
    folder, images = "models/squeezenet", Images((3, 227, 227))
    yield f"{folder}/train_val.prototxt", train_val("SqueezeNet", squeezenet, images, 32, 50), ""
    yield f"{folder}/deploy.prototxt", deploy("SqueezeNet", squeezenet, images.shape), ""
    yield f"{folder}/model_info.prototxt", images.info(), ""
    yield f"{folder}/solver.prototxt", solver(
        folder, base_lr=0.04, power=1, max_iter=170000, iter_size=16, weight_decay=0.0002, test_interval=2000,
        snapshot=2000), "68 epochs; 16 passes of 32 images make one update."

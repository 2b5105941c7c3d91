"""MobileNet 1 and 2."""
from caffe.zoo.common import Images, deploy, solver, train_val
from caffe.zoo.mobilenet import mobilenet_v1, mobilenet_v2


def files():
    images = Images(mean=(103.94, 116.78, 123.68), scale=0.017)
    for folder, name, body in (("mobilenet_v1", "MobileNet-v1", mobilenet_v1),
                               ("mobilenet_v2", "MobileNet-v2", mobilenet_v2)):
        path = f"models/{folder}"
        yield f"{path}/train_val.prototxt", train_val(name, body, images, 64, 50), ""
        yield f"{path}/deploy.prototxt", deploy(name, body, images.shape), ""
        yield f"{path}/model_info.prototxt", images.info(), ""
        yield f"{path}/solver.prototxt", solver(
            path, base_lr=0.1, power=1, max_iter=600000, iter_size=4, weight_decay=0.00004), (
                "120 epochs; 4 passes of 64 images make one update.")

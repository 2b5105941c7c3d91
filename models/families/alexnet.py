"""AlexNet (Krizhevsky et al. 2012) and the nets that were made of it."""
from typing import NamedTuple

from caffe.net_spec import layers as L

from caffe.zoo.common import (FLOAT16, FLOAT16_MATH, TEST, TRAIN, Head, Images, Model, benchmark, deploy, gaussian, solver,
                     train_val, write)

SHAPE = (3, 227, 227)
IMAGES = Images(SHAPE)


def classifier(model, x, name="fc8", outputs=1000, rate=1, hidden_bias=0.1, bias=0.0):
    for i in (6, 7):
        x = model.relu(f"relu{i}", model.inner_product(f"fc{i}", x, 4096, hidden_bias, gaussian(0.005)))
        x = model.dropout(f"drop{i}", x, 0.5)
    return [Head(model.inner_product(name, x, outputs, bias, gaussian(0.01), rate))]


def trunk(model, data, after1, after2, biases=(0, 0.1, 0, 0.1, 0.1), after=lambda name, x: x):
    """Five convolutions; after1 and after2 stand between the first two and the next."""
    thin = gaussian(0.01)
    x = after1(model.relu("relu1", model.conv("conv1", data, 96, 11, stride=4, weight=thin, bias=biases[0])))
    x = after2(model.relu("relu2", model.conv("conv2", x, 256, 5, pad=2, group=2, weight=thin, bias=biases[1])))
    x = after("3", model.relu("relu3", model.conv("conv3", x, 384, 3, pad=1, weight=thin, bias=biases[2])))
    x = after("4", model.relu("relu4", model.conv("conv4", x, 384, 3, pad=1, group=2, weight=thin, bias=biases[3])))
    x = model.relu("relu5", model.conv("conv5", x, 256, 3, pad=1, group=2, weight=thin, bias=biases[4]))
    return model.pool("pool5", x, "MAX", 3, 2)


def alexnet(model, data):
    def norm_then_pool(i):
        return lambda x: model.pool(f"pool{i}", model.lrn(f"norm{i}", x), "MAX", 3, 2)
    return classifier(model, trunk(model, data, norm_then_pool(1), norm_then_pool(2)))


def caffenet_trunk(model, data):
    def pool_then_norm(i):
        return lambda x: model.lrn(f"norm{i}", model.pool(f"pool{i}", x, "MAX", 3, 2))
    return trunk(model, data, pool_then_norm(1), pool_then_norm(2), biases=(0, 1, 0, 1, 1))


def caffenet(model, data):
    return classifier(model, caffenet_trunk(model, data), hidden_bias=1)


def rcnn(model, data):
    return classifier(model, caffenet_trunk(model, data), "fc-rcnn", 200, hidden_bias=1)


def flickr_style(model, data):
    return [Head(h.scores, accuracy_top5=None) for h in
            classifier(model, caffenet_trunk(model, data), "fc8_flickr", 20, rate=10, hidden_bias=1)]


class Windows(NamedTuple):
    """Regions of photographs, with 16 pixels of context, a quarter of them objects."""

    folder: str

    def layers(self, phase, batch):
        part = "trainval" if phase is TRAIN else "test"
        return L.WindowData(
            ntop=2, name="data", include=phase,
            transform_param=dict(mirror=True, crop_size=SHAPE[-1], mean_value=list(IMAGES.mean)),
            window_data_param=dict(source=f"{self.folder}/window_file_2007_{part}.txt", batch_size=batch, fg_threshold=0.5,
                                   bg_threshold=0.5, fg_fraction=0.25, context_pad=16, crop_mode="warp"))


def pascal(model, data):
    return [Head(h.scores, accuracy_top5=None) for h in
            classifier(model, caffenet_trunk(model, data), "fc8_pascal", 21, rate=10, hidden_bias=1)]


def feature_extraction():
    """CaffeNet on the photographs of a list."""
    model = Model()
    photographs = IMAGES._replace(test="examples/feature_extraction/file_list.txt", layer="ImageData")
    model.spec.data, model.spec.label = photographs.layers(TEST, 50)
    caffenet(model, model.spec.data)
    return write(model.spec, "CaffeNet")


def alexnet_bn(model, data):
    """Batch normalisation, without a learned factor, in place of local response normalisation."""
    def norm(i, x):
        return model.add(f"bn{i}", L.BatchNorm(x, moving_average_fraction=0.9, eps=1e-4))

    def pool_then_norm(i):
        return lambda x: norm(i + 1, model.pool(f"pool{i}", x, "MAX", 3, 2))
    x = trunk(model, data, pool_then_norm(1), pool_then_norm(2), biases=(0.01,) * 5,
              after=lambda i, x: norm(int(i) + 1, x))
    return classifier(model, x, bias=0.01)


def alexnet_owt(model, data):
    """The single-tower form of Krizhevsky 2014: no groups, fewer filters, no normalisation."""
    x = model.relu("relu1", model.conv("conv1", data, 64, 11, stride=4))
    x = model.pool("pool1", x, "MAX", 3, 2)
    x = model.relu("relu2", model.conv("conv2", x, 192, 5, pad=2))
    x = model.pool("pool2", x, "MAX", 3, 2)
    x = model.relu("relu3", model.conv("conv3", x, 384, 3, pad=1))
    x = model.relu("relu4", model.conv("conv4", x, 256, 3, pad=1))
    x = model.relu("relu5", model.conv("conv5", x, 256, 3, pad=1))
    return classifier(model, model.pool("pool5", x, "MAX", 3, 2))


STEPS = dict(base_lr=0.01, lr_policy="step", gamma=0.1, stepsize=100000, max_iter=450000, weight_decay=0.0005,
             test_interval=1000)
POLY = dict(base_lr=0.02, power=2, min_lr=5e-6, max_iter=125000, weight_decay=0.0005, test_interval=5000)
LARC_8K = dict(base_lr=10, power=2, max_iter=15600, iter_size=8, weight_decay=0.0005, larc=True, larc_policy="clip",
               larc_eta=0.001, test_interval=150, snapshot=1000)
PER_STEP = "The rate falls by 10 each 100,000 iterations of 256 images."


def files():
    yield "models/bvlc_alexnet/train_val.prototxt", train_val("AlexNet", alexnet, IMAGES, 256, 50), ""
    yield "models/bvlc_alexnet/deploy.prototxt", deploy("AlexNet", alexnet, SHAPE), ""
    yield "models/bvlc_alexnet/model_info.prototxt", IMAGES.info(), ""
    yield "models/bvlc_alexnet/solver.prototxt", solver("models/bvlc_alexnet", prefix="alexnet", **STEPS), PER_STEP
    yield "models/bvlc_alexnet/train_val_fp16.prototxt", train_val(
        "AlexNet-fp16", alexnet, IMAGES, 1024, 50, **FLOAT16, global_grad_scale_adaptive=True), ""
    yield "models/bvlc_alexnet/deploy_fp16.prototxt", deploy("AlexNet-fp16", alexnet, SHAPE, **FLOAT16, **FLOAT16_MATH), ""
    yield "models/bvlc_alexnet/solver_fp16.prototxt", solver(
        "models/bvlc_alexnet", "train_val_fp16.prototxt", "alexnet_fp16", **POLY), "100 epochs of batches of 1,024."
    yield "models/bvlc_alexnet/solver_8K.prototxt", solver(
        "models/bvlc_alexnet", "train_val_fp16.prototxt", "alexnet_8K", **LARC_8K), (
            "100 epochs of batches of 8,192, as 8 passes of 1,024, with a rate for each layer.")
    yield "benchmarks/nets/alexnet.prototxt", benchmark("AlexNet", alexnet, SHAPE, 32), ""

    folder = "models/bvlc_reference_caffenet"
    yield f"{folder}/train_val.prototxt", train_val("CaffeNet", caffenet, IMAGES, 256, 50), ""
    yield f"{folder}/deploy.prototxt", deploy("CaffeNet", caffenet, SHAPE), ""
    yield f"{folder}/model_info.prototxt", IMAGES.info(), ""
    yield f"{folder}/solver.prototxt", solver(folder, prefix="caffenet", **STEPS), PER_STEP

    yield "examples/feature_extraction/imagenet_val.prototxt", feature_extraction(), ""
    folder = "examples/finetune_pascal_detection"
    yield f"{folder}/pascal_finetune_trainval_test.prototxt", train_val("CaffeNet", pascal, Windows(folder), 128, 128), ""
    yield f"{folder}/pascal_finetune_solver.prototxt", solver(
        folder, "pascal_finetune_trainval_test.prototxt", "pascal_det_finetune", base_lr=0.001, lr_policy="step", gamma=0.1,
        stepsize=20000, max_iter=100000, weight_decay=0.0005, test_iter=[100], test_interval=1000), (
            "A tenth of the rate the net was trained with.")
    yield "models/bvlc_reference_rcnn_ilsvrc13/deploy.prototxt", deploy(
        "R-CNN-ilsvrc13", rcnn, SHAPE, softmax=False), "Scores of 200 detection classes for image regions; no softmax."

    folder = "models/finetune_flickr_style"
    styles = IMAGES._replace(train="data/flickr_style/train.txt", test="data/flickr_style/test.txt", layer="ImageData")
    yield f"{folder}/train_val.prototxt", train_val("FlickrStyleCaffeNet", flickr_style, styles, 50, 50), (
        "CaffeNet with a new last layer, which learns ten times as fast as the others.")
    yield f"{folder}/deploy.prototxt", deploy("FlickrStyleCaffeNet", flickr_style, SHAPE), ""
    yield f"{folder}/solver.prototxt", solver(
        folder, base_lr=0.001, lr_policy="step", gamma=0.1, stepsize=20000, max_iter=100000, weight_decay=0.0005,
        test_iter=[100], test_interval=1000), "A tenth of the rate the net was trained with."

    folder = "models/alexnet_bn"
    scaled = IMAGES._replace(scale=1 / 256)
    yield f"{folder}/train_val.prototxt", train_val("AlexNet-BN", alexnet_bn, scaled, 512, 50), ""
    yield f"{folder}/deploy.prototxt", deploy("AlexNet-BN", alexnet_bn, SHAPE), ""
    yield f"{folder}/solver.prototxt", solver(
        folder, base_lr=0.08, power=2, max_iter=250000, weight_decay=0.0005), "100 epochs of batches of 512."
    yield f"{folder}/train_val_fp16.prototxt", train_val(
        "AlexNet-BN-fp16", alexnet_bn, scaled, 1024, 50, **FLOAT16, global_grad_scale=1000), ""
    yield f"{folder}/solver_fp16.prototxt", solver(
        folder, "train_val_fp16.prototxt", "alexnet_bn_fp16", rampup_interval=600, rampup_lr=1, **LARC_8K), (
            "100 epochs of batches of 8,192, as 8 passes of 1,024, with a rate for each layer.")

    folder = "models/alexnet_owt"
    yield f"{folder}/train_val.prototxt", train_val("AlexNet-OWT", alexnet_owt, IMAGES, 1024, 50), ""
    yield f"{folder}/deploy.prototxt", deploy("AlexNet-OWT", alexnet_owt, SHAPE), ""
    yield f"{folder}/solver.prototxt", solver(folder, **POLY), "100 epochs of batches of 1,024."
    yield f"{folder}/train_val_fp16.prototxt", train_val(
        "AlexNet-OWT-fp16", alexnet_owt, IMAGES, 1024, 50, **FLOAT16, **FLOAT16_MATH), ""
    yield f"{folder}/solver_fp16.prototxt", solver(
        folder, "train_val_fp16.prototxt", "alexnet_owt_fp16", **POLY), "100 epochs of batches of 1,024."

"""GoogLeNet (Szegedy et al. 2015)."""
from caffe.zoo.common import FLOAT16, Head, Images, benchmark, deploy, solver, train_val

BIAS = 0.2


def inception(model, name, x, one, reduce3, three, reduce5, five, pooled):
    tag = f"inception_{name}"

    def conv(suffix, bottom, outputs, kernel, pad=0):
        top = model.conv(f"{tag}/{suffix}", bottom, outputs, kernel, pad=pad, bias=BIAS)
        return model.relu(f"{tag}/relu_{suffix}", top)

    parts = [conv("1x1", x, one, 1),
             conv("3x3", conv("3x3_reduce", x, reduce3, 1), three, 3, pad=1),
             conv("5x5", conv("5x5_reduce", x, reduce5, 1), five, 5, pad=2),
             conv("pool_proj", model.pool(f"{tag}/pool", x, "MAX", 3, 1, pad=1), pooled, 1)]
    return model.concat(f"{tag}/output", parts)


def head(scores, number, weight):
    tag = f"loss{number}"
    loss = f"{tag}/loss" if number < 3 else f"{tag}/loss3"
    return Head(scores, loss, f"{tag}/loss{1 if number < 3 else 3}", weight, f"{tag}/top-1", f"{tag}/top-5")


def auxiliary_head(model, number, x):
    """A classifier half way up that helps gradients to reach the lower layers; training only."""
    tag = f"loss{number}"
    x = model.pool(f"{tag}/ave_pool", x, "AVE", 5, 3)
    x = model.relu(f"{tag}/relu_conv", model.conv(f"{tag}/conv", x, 128, 1, bias=BIAS))
    x = model.relu(f"{tag}/relu_fc", model.inner_product(f"{tag}/fc", x, 1024, BIAS))
    return head(model.inner_product(f"{tag}/classifier", model.dropout(f"{tag}/drop_fc", x, 0.7), 1000), number, 0.3)


def trunk(model, data, branch=lambda x: None, stride=32):
    """The nine modules, up to a cell for `stride` pixels a side: 32, or 16 without the pooling before the last two.
    What the auxiliary classifiers look at is handed to `branch`."""
    x = model.relu("conv1/relu_7x7", model.conv("conv1/7x7_s2", data, 64, 7, stride=2, pad=3, bias=BIAS))
    x = model.lrn("pool1/norm1", model.pool("pool1/3x3_s2", x, "MAX", 3, 2))
    x = model.relu("conv2/relu_3x3_reduce", model.conv("conv2/3x3_reduce", x, 64, 1, bias=BIAS))
    x = model.relu("conv2/relu_3x3", model.conv("conv2/3x3", x, 192, 3, pad=1, bias=BIAS))
    x = model.pool("pool2/3x3_s2", model.lrn("conv2/norm2", x), "MAX", 3, 2)
    x = inception(model, "3a", x, 64, 96, 128, 16, 32, 32)
    x = inception(model, "3b", x, 128, 128, 192, 32, 96, 64)
    x = model.pool("pool3/3x3_s2", x, "MAX", 3, 2)
    x = inception(model, "4a", x, 192, 96, 208, 16, 48, 64)
    branch(x)
    x = inception(model, "4b", x, 160, 112, 224, 24, 64, 64)
    x = inception(model, "4c", x, 128, 128, 256, 24, 64, 64)
    x = inception(model, "4d", x, 112, 144, 288, 32, 64, 64)
    branch(x)
    x = inception(model, "4e", x, 256, 160, 320, 32, 128, 128)
    if stride == 32:
        x = model.pool("pool4/3x3_s2", x, "MAX", 3, 2)
    x = inception(model, "5a", x, 256, 160, 320, 32, 128, 128)
    return inception(model, "5b", x, 384, 192, 384, 48, 128, 128)


def googlenet(model, data, with_auxiliary=True):
    heads = []

    def branch(x):
        if with_auxiliary:
            heads.append(auxiliary_head(model, len(heads) + 1, x))

    x = trunk(model, data, branch)
    x = model.dropout("pool5/drop_7x7_s1", model.pool("pool5/7x7_s1", x, "AVE", 7, 1), 0.4)
    return [*heads, head(model.inner_product("loss3/classifier", x, 1000), 3, 1)]


def for_use(model, data):
    return googlenet(model, data, with_auxiliary=False)


def files():
    folder, images = "models/bvlc_googlenet", Images()
    common = dict(test_interval=4000, display=40, average_loss=40, snapshot=40000)
    yield f"{folder}/train_val.prototxt", train_val("GoogleNet", googlenet, images, 32, 50), ""
    yield f"{folder}/deploy.prototxt", deploy("GoogleNet", for_use, images.shape), ""
    yield f"{folder}/model_info.prototxt", images.info(), ""
    yield f"{folder}/solver.prototxt", solver(
        folder, prefix="googlenet_slow", base_lr=0.01, lr_policy="step", gamma=0.96, stepsize=320000,
        max_iter=10000000, weight_decay=0.0002, **common), "The paper's schedule: 4 % less each 8 epochs of batches of 32."
    yield f"{folder}/quick_solver.prototxt", solver(
        folder, prefix="googlenet", base_lr=0.01, power=0.5, max_iter=2400000, weight_decay=0.0002, **common), (
            "60 epochs of batches of 32; the rate falls as the square root of what is left.")
    yield f"{folder}/train_val_fp16.prototxt", train_val(
        "GoogleNet_fp16", googlenet, images, 256, 50, **FLOAT16, global_grad_scale=100), ""
    yield f"{folder}/solver_fp16.prototxt", solver(
        folder, "train_val_fp16.prototxt", "googlenet_fp16", base_lr=0.02, power=2, max_iter=500000,
        weight_decay=0.0001), "100 epochs of batches of 256."
    yield "benchmarks/nets/googlenet.prototxt", benchmark("GoogLeNet", googlenet, images.shape, 16), ""

"""VGG, configurations D and E (Simonyan and Zisserman 2015)."""
from .common import FLOAT16, FLOAT_MATH, MSRA, Head, Images, deploy, gaussian, solver, train_val

CONVOLUTIONS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
WIDTHS = (64, 128, 256, 512, 512)


def stages(model, x, depth):
    """The convolutions up to and without the pooling of the last stage."""
    for stage, (width, count) in enumerate(zip(WIDTHS, CONVOLUTIONS[depth]), start=1):
        if stage > 1:
            x = model.pool(f"pool{stage - 1}", x, "MAX", 2, 2)
        for i in range(1, count + 1):
            # The msra filler stands for the paper's pre-training of a smaller net.
            x = model.conv(f"conv{stage}_{i}", x, width, 3, pad=1, weight=MSRA)
            x = model.relu(f"relu{stage}_{i}", x)
    return x


def vgg(depth):
    def body(model, data):
        x = model.pool("pool5", stages(model, data, depth), "MAX", 2, 2)
        for i in (6, 7):
            x = model.relu(f"relu{i}", model.inner_product(f"fc{i}", x, 4096, weight=gaussian(0.005)))
            x = model.dropout(f"drop{i}", x, 0.5)
        return [Head(model.inner_product("fc8", x, 1000, weight=gaussian(0.01)))]

    return body


def files():
    images = Images(mean=(103.939, 116.779, 123.68))
    recipe = dict(base_lr=0.005, power=2, max_iter=2400000, weight_decay=0.0005, test_interval=20000, snapshot=20000)
    for depth in CONVOLUTIONS:
        folder, name = f"models/vgg{depth}", f"VGG-{depth}"
        yield f"{folder}/train_val.prototxt", train_val(name, vgg(depth), images, 32, 50), ""
        yield f"{folder}/deploy.prototxt", deploy(name, vgg(depth), images.shape), ""
        yield f"{folder}/solver.prototxt", solver(folder, **recipe), "60 epochs of batches of 32."
    yield "models/vgg16/train_val_fp16.prototxt", train_val("VGG-16-fp16", vgg(16), images, 32, 50, **FLOAT16, **FLOAT_MATH), ""
    yield "models/vgg16/solver_fp16.prototxt", solver(
        "models/vgg16", "train_val_fp16.prototxt", "vgg16_fp16", **recipe), "60 epochs of batches of 32."

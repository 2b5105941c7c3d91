"""Inception with batch normalisation: version 2 (Ioffe and Szegedy 2015) and 3 (Szegedy et al. 2016)."""
from caffe.zoo.common import FLOAT16, FLOAT_MATH, Head, Images, deploy, solver, train_val


def unit(model, name, bottom, outputs, kernel, stride=1, pad=0):
    x = model.conv(name, bottom, outputs, kernel, stride=stride, pad=pad, bias=None)
    return model.relu(f"{name}/relu", model.norm(f"{name}/bn", x))


def head(scores, number, weight):
    tag = f"loss{number}"
    return Head(scores, f"{tag}/loss", f"{tag}/loss", weight, f"{tag}/top-1", f"{tag}/top-5")


# -------------------------------------------------------------------------------------------------
# Version 2: GoogLeNet whose 5x5 convolutions became two of 3x3 and whose modules halve the images.

def module(model, name, x, one, reduce3, three, reduce_double, double, kind, pooled):
    tag = f"inception_{name}"
    # A module without pooled channels halves the image.
    stride = 1 if pooled else 2
    parts = [unit(model, f"{tag}/1x1", x, one, 1)] if one else []
    y = unit(model, f"{tag}/3x3_reduce", x, reduce3, 1)
    parts.append(unit(model, f"{tag}/3x3", y, three, 3, stride, 1))
    y = unit(model, f"{tag}/double3x3_reduce", x, reduce_double, 1)
    y = unit(model, f"{tag}/double3x3a", y, double, 3, 1, 1)
    parts.append(unit(model, f"{tag}/double3x3b", y, double, 3, stride, 1))
    y = model.pool(f"{tag}/pool", x, kind, 3, stride, 1 if pooled else 0)
    parts.append(unit(model, f"{tag}/pool_proj", y, pooled, 1) if pooled else y)
    return model.concat(f"{tag}/output", parts)


def auxiliary(model, number, x):
    tag = f"loss{number}"
    x = unit(model, f"{tag}/conv", model.pool(f"{tag}/ave_pool", x, "AVE", 5, 3), 128, 1)
    x = model.relu(f"{tag}/relu_fc", model.inner_product(f"{tag}/fc", x, 1024))
    return head(model.inner_product(f"{tag}/classifier", x, 1000), number, 0.3)


def inception_v2(model, data, with_auxiliary=True):
    x = model.pool("pool1/3x3_s2", unit(model, "conv1/7x7_s2", data, 64, 7, 2, 3), "MAX", 3, 2)
    x = unit(model, "conv2/3x3", unit(model, "conv2/3x3_reduce", x, 64, 1), 192, 3, 1, 1)
    x = model.pool("pool2/3x3_s2", x, "MAX", 3, 2)
    heads = []
    for name, *sizes in (("3a", 64, 64, 64, 64, 96, "AVE", 32), ("3b", 64, 64, 96, 64, 96, "AVE", 64),
                         ("3c", 0, 128, 160, 64, 96, "MAX", 0), ("4a", 224, 64, 96, 96, 128, "AVE", 128),
                         ("4b", 192, 96, 128, 96, 128, "AVE", 128), ("4c", 160, 128, 160, 128, 160, "AVE", 128),
                         ("4d", 96, 128, 192, 160, 192, "AVE", 128), ("4e", 0, 128, 192, 192, 256, "MAX", 0),
                         ("5a", 352, 192, 320, 160, 224, "AVE", 128), ("5b", 352, 192, 320, 192, 224, "MAX", 128)):
        x = module(model, name, x, *sizes)
        if with_auxiliary and name in ("3c", "4e"):
            heads.append(auxiliary(model, len(heads) + 1, x))
    x = model.pool("pool5/7x7_s1", x, "AVE", 7, 1)
    return [*heads, head(model.inner_product("loss3/classifier", x, 1000), 3, 1)]


# -------------------------------------------------------------------------------------------------
# Version 3: larger windows in factors, 7x7 as 1x7 and 7x1.

def chain(model, tag, x, *steps):
    """Units one after the other; each step is (name, outputs, kernel, stride, pad), the last two optional."""
    for name, outputs, kernel, *rest in steps:
        x = unit(model, f"{tag}/{name}", x, outputs, kernel, *rest)
    return x


def pooled(model, tag, x, outputs):
    return unit(model, f"{tag}/pool_proj", model.pool(f"{tag}/pool", x, "AVE", 3, 1, 1), outputs, 1)


def module_35(model, tag, x, outputs):
    """For images of 35x35."""
    return model.concat(tag, [
        unit(model, f"{tag}/1x1", x, 64, 1),
        chain(model, tag, x, ("5x5_reduce", 48, 1), ("5x5", 64, 5, 1, 2)),
        chain(model, tag, x, ("double_reduce", 64, 1), ("double_a", 96, 3, 1, 1), ("double_b", 96, 3, 1, 1)),
        pooled(model, tag, x, outputs)])


def to_17(model, tag, x):
    return model.concat(tag, [
        unit(model, f"{tag}/3x3", x, 384, 3, 2),
        chain(model, tag, x, ("double_reduce", 64, 1), ("double_a", 96, 3, 1, 1), ("double_b", 96, 3, 2)),
        model.pool(f"{tag}/pool", x, "MAX", 3, 2)])


WIDE, TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def module_17(model, tag, x, inner):
    """For images of 17x17."""
    return model.concat(tag, [
        unit(model, f"{tag}/1x1", x, 192, 1),
        chain(model, tag, x, ("7x7_reduce", inner, 1), ("1x7", inner, *WIDE), ("7x1", 192, *TALL)),
        chain(model, tag, x, ("double_reduce", inner, 1), ("double_7x1a", inner, *TALL), ("double_1x7a", inner, *WIDE),
              ("double_7x1b", inner, *TALL), ("double_1x7b", 192, *WIDE)),
        pooled(model, tag, x, 192)])


def to_8(model, tag, x):
    return model.concat(tag, [
        chain(model, tag, x, ("3x3_reduce", 192, 1), ("3x3", 320, 3, 2)),
        chain(model, tag, x, ("7x7_reduce", 192, 1), ("1x7", 192, *WIDE), ("7x1", 192, *TALL), ("7x7_3x3", 192, 3, 2)),
        model.pool(f"{tag}/pool", x, "MAX", 3, 2)])


def module_8(model, tag, x):
    """For images of 8x8: both halves of a 3x3 window side by side."""
    def both(name, y):
        return [unit(model, f"{tag}/{name}_1x3", y, 384, (1, 3), 1, (0, 1)),
                unit(model, f"{tag}/{name}_3x1", y, 384, (3, 1), 1, (1, 0))]
    return model.concat(tag, [
        unit(model, f"{tag}/1x1", x, 320, 1),
        *both("3x3", unit(model, f"{tag}/3x3_reduce", x, 384, 1)),
        *both("double", chain(model, tag, x, ("double_reduce", 448, 1), ("double_a", 384, 3, 1, 1))),
        pooled(model, tag, x, 192)])


def inception_v3(model, data, with_auxiliary=True):
    x = chain(model, "stem", data, ("conv1", 32, 3, 2), ("conv2", 32, 3), ("conv3", 64, 3, 1, 1))
    x = model.pool("stem/pool1", x, "MAX", 3, 2)
    x = chain(model, "stem", x, ("conv4", 80, 1), ("conv5", 192, 3))
    x = model.pool("stem/pool2", x, "MAX", 3, 2)
    for name, outputs in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = module_35(model, f"mixed_{name}", x, outputs)
    x = to_17(model, "mixed_6a", x)
    for name, inner in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = module_17(model, f"mixed_{name}", x, inner)
    heads = []
    if with_auxiliary:
        y = unit(model, "loss1/conv", model.pool("loss1/ave_pool", x, "AVE", 5, 3), 128, 1)
        y = unit(model, "loss1/fc", y, 768, 5)
        heads.append(head(model.inner_product("loss1/classifier", y, 1000), 1, 0.4))
    x = to_8(model, "mixed_7a", x)
    x = module_8(model, "mixed_7c", module_8(model, "mixed_7b", x))
    x = model.dropout("drop", model.global_pool("pool", x), 0.5)
    return [*heads, head(model.inner_product("loss2/classifier", x, 1000), 2, 1)]


def files():
    # Cut-outs of 299 need larger images than those of other nets.
    large = Images((3, 299, 299), "examples/imagenet/ilsvrc12_train_320_lmdb", "examples/imagenet/ilsvrc12_val_320_lmdb")
    for folder, name, body, images in (("inception_v2", "Inception-v2", inception_v2, Images()),
                                       ("inception_v3", "Inception-v3", inception_v3, large)):
        path = f"models/{folder}"
        recipe = dict(base_lr=0.05, power=2, max_iter=2400000, weight_decay=0.0002, test_interval=20000, snapshot=20000)
        yield f"{path}/train_val.prototxt", train_val(name, body, images, 32, 50), ""
        yield f"{path}/deploy.prototxt", deploy(
            name, lambda model, data, body=body: body(model, data, with_auxiliary=False), images.shape), ""
        yield f"{path}/solver.prototxt", solver(path, **recipe), "60 epochs of batches of 32."
        yield f"{path}/train_val_fp16.prototxt", train_val(f"{name}-fp16", body, images, 32, 50, **FLOAT16, **FLOAT_MATH), ""
        yield f"{path}/solver_fp16.prototxt", solver(path, "train_val_fp16.prototxt", f"{folder}_fp16", **recipe), (
            "60 epochs of batches of 32.")

"""A small detector (Liu et al. 2016, "SSD: Single shot multibox detector") on convolutions with
normalisation, which is trained from scratch."""
from . import Net
from .boxes import join, predict
from .common import MSRA

# Channels at each halving of the image; boxes are predicted from the third on.
WIDTHS = (32, 64, 128, 128, 128, 128)
FIRST = 3
RATIOS = [2]
# Sides of the default boxes, as shares of the image's: so many for the first map, which is the finest,
# and for each other one, from the smallest to the largest by equal factors. Neighbours differ by less
# than a half, so that an object of any size overlaps one well.
SMALLEST, LARGEST = 0.08, 0.92
OF_FIRST, OF_OTHERS = 4, 2


def unit(model, name, x, outputs, stride=1):
    x = model.conv(name, x, outputs, 3, stride, 1, bias=None, weight=MSRA)
    return model.relu(f"{name}_relu", model.norm_and_scale(f"{name}_bn", f"{name}_scale", x))


def _default_sides(side, count):
    factor = (LARGEST / SMALLEST) ** (1 / (count - 1))
    return [side * SMALLEST * factor ** i for i in range(count)]


def small_ssd(model, data, side):
    """Returns, for all default boxes: offsets, scores of model.classes classes (0: background), and the boxes."""
    x, predicted = data, []
    maps = [depth for depth in range(FIRST, len(WIDTHS) + 1) if side >> depth >= 1]
    sides = _default_sides(side, OF_FIRST + OF_OTHERS * (len(maps) - 1))
    for depth, width in enumerate(WIDTHS, start=1):
        if depth > maps[-1]:
            break
        x = unit(model, f"conv{depth}_2", unit(model, f"conv{depth}_1", x, width, 2), width)
        if depth in maps:
            count = OF_FIRST if depth == FIRST else OF_OTHERS
            own, sides = sides[:count], sides[count:]
            predicted.append(predict(model, f"map{depth}", x, data, count * (1 + 2 * len(RATIOS)), model.classes, dict(
                min_size=own, aspect_ratio=RATIOS, flip=True, step=2 ** depth)))
    return join(model, predicted)


NETS = [
    Net("ssd_small", "detection", small_ssd, "boxes around things: 1.5 million weights", (64, 128, 512), 64, 16,
        dict(type="Adam", momentum=0.9, lr_policy="onecycle", rise=0.1, base_lr=0.001, weight_decay=0.0005), 99_000,
        is_default=True),
]

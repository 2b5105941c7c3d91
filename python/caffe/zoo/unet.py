"""U-Net (Ronneberger et al. 2015, "U-Net: Convolutional networks for biomedical image segmentation"),
with normalization, and with padding so that each pixel of the image gets scores."""
from ..net_spec import layers as L
from . import Net
from .common import MSRA, constant

WIDTHS = (16, 32, 64, 128, 128)


def pair(model, name, x, outputs):
    for part in "ab":
        x = model.conv(f"{name}{part}", x, outputs, 3, pad=1, bias=None, weight=MSRA)
        x = model.relu(f"{name}{part}_relu", model.norm_and_scale(f"{name}{part}_bn", f"{name}{part}_scale", x))
    return x


def larger(model, name, x, outputs):
    """Doubles height and width."""
    return model.add(name, L.Deconvolution(x, param=[dict(lr_mult=1, decay_mult=1)], convolution_param=dict(
        num_output=outputs, kernel_size=2, stride=2, bias_term=False, weight_filler=MSRA)))


def unet(model, data):
    """Scores of model.classes classes for each pixel."""
    kept, x = [], data
    for depth, width in enumerate(WIDTHS, start=1):
        x = pair(model, f"down{depth}", x if depth == 1 else model.pool(f"pool{depth - 1}", x, "MAX", 2, 2), width)
        kept.append(x)
    for depth in range(len(WIDTHS) - 1, 0, -1):
        x = larger(model, f"larger{depth}", x, WIDTHS[depth - 1])
        x = pair(model, f"up{depth}", model.concat(f"join{depth}", [kept[depth - 1], x]), WIDTHS[depth - 1])
    return model.add("scores", L.Convolution(x, param=[dict(lr_mult=1, decay_mult=1), dict(lr_mult=2, decay_mult=0)],
                                             num_output=model.classes, kernel_size=1, weight_filler=MSRA, bias_filler=constant(0)))


NETS = [
    Net("unet", "segmentation", unet, "a class for each pixel: 1.1 million weights", (32, 128, 1024), 16, 8,
        dict(type="Adam", momentum=0.9, lr_policy="onecycle", rise=0.1, base_lr=0.002, weight_decay=0.00001), 40_000,
        is_default=True),
]

"""A net for small images that is trained in few passes (Jordan 2024, arXiv 2404.00498), without its whitening."""
from ..net_spec import layers as L
from ..net_spec import params as P
from . import Net
from .common import MSRA, ONE_CYCLE, Head


def cifarnet(model, data):
    """A convolution to 24 channels, then three pairs of convolutions, to 64, 256 and 256. The first one of each pair is
    followed by pooling to half the size, so that most work is done on few pixels. The scores are divided by 8: the last
    layer then learns more slowly than those below it."""
    def normalized(name, x):
        return model.relu(f"{name}/relu", model.norm_and_scale(f"{name}/bn", f"{name}/scale", x))

    def conv(name, x, width):
        return model.conv(name, x, width, 3, pad=1, bias=None, weight=MSRA)

    x = normalized("conv1", conv("conv1", data, 24))
    for stage, width in ((2, 64), (3, 256), (4, 256)):
        x = model.pool(f"pool{stage}", conv(f"conv{stage}a", x, width), "MAX", 2, 2)
        x = normalized(f"conv{stage}b", conv(f"conv{stage}b", normalized(f"conv{stage}a", x), width))
    x = model.add("pool", L.Pooling(x, pool=P.Pooling.MAX, global_pooling=True))
    x = model.inner_product(model.scores_name("fc10", 10), x, model.classes, weight=MSRA)
    return [Head(model.add("scores", L.Power(x, scale=0.125)), accuracy_top5=None)]


NETS = [
    Net("cifarnet", "classification", cifarnet, "small images: 2.0 million weights", (16, 32, 96), 8, 128,
        dict(ONE_CYCLE, base_lr=0.2), 1_600_000, is_default=True),
]

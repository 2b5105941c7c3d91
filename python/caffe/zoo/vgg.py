"""VGG, configurations D and E (Simonyan and Zisserman 2015)."""
from .common import MSRA, Head, gaussian

CONVOLUTIONS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
WIDTHS = (64, 128, 256, 512, 512)


def stages(model, x, depth):
    """The convolutions up to, but not including, the pooling of the last stage."""
    for stage, (width, count) in enumerate(zip(WIDTHS, CONVOLUTIONS[depth]), start=1):
        if stage > 1:
            x = model.pool(f"pool{stage - 1}", x, "MAX", 2, 2)
        for i in range(1, count + 1):
            # The msra filler replaces the paper's pre-training with a smaller net.
            x = model.conv(f"conv{stage}_{i}", x, width, 3, pad=1, weight=MSRA)
            x = model.relu(f"relu{stage}_{i}", x)
    return x


def vgg(depth):
    def body(model, data):
        x = model.pool("pool5", stages(model, data, depth), "MAX", 2, 2)
        for i in (6, 7):
            x = model.relu(f"relu{i}", model.inner_product(f"fc{i}", x, 4096, weight=gaussian(0.005)))
            x = model.dropout(f"drop{i}", x, 0.5)
        return [Head(model.inner_product(model.scores_name("fc8"), x, model.classes, weight=gaussian(0.01)))]

    return body

"""Correlation of patches of two images at displacements (Dosovitskiy et al. 2015, "FlowNet")."""
from ..registry import writes


class _Axis:
    """Positions of patches of both images along one axis, in pixels of the first image."""

    def __init__(self, options, extent, outputs, is_displaced):
        step, reach = options.stride_2, options.max_displacement
        radius, direction = reach // step, options.single_direction
        first = -radius - 1 if direction < 0 else 0 if direction > 0 else -radius
        count = radius + 1 if direction else 2 * radius + 1
        self.displacements = [(first + k) * step for k in range(count)] if is_displaced else [0]
        self.begin = reach - options.pad if is_displaced else 0
        self.length = (outputs - 1) * options.stride_1 + options.kernel_size
        # Padding that patches need outside the image.
        self.before = max(0, -self.begin - min(self.displacements), -self.begin)
        self.behind = max(0, self.begin + self.length + max(0, *self.displacements, 0) - extent)

    def range_of(self, displacement=0):
        start = self.begin + displacement + self.before
        return start, start + self.length


@writes("Correlation", "Correlation1D")
def correlation(layer, onnx):
    options = layer.param.correlation_param
    down = _Axis(options, layer.shape[2], layer.top_shape[2], layer.type == "Correlation")
    across = _Axis(options, layer.shape[3], layer.top_shape[3], True)
    padded = [onnx.pad(image, [0, 0, down.before, across.before], [0, 0, down.behind, across.behind]) for image in layer.bottoms]

    def part(image, y=0, x=0):
        (top, bottom), (left, right) = down.range_of(y), across.range_of(x)
        return onnx.slice(image, [top, left], [bottom, right], [2, 3])

    first = part(padded[0])
    channels = [_alike(options, onnx, first, part(padded[1], y, x)) for y in down.displacements for x in across.displacements]
    result = onnx.op("Concat", *channels, axis=1) if len(channels) > 1 else channels[0]
    return onnx.op("Abs", result) if options.do_abs else result


def _alike(options, onnx, first, second):
    """Mean over channels, then over patches, of the products or absolute differences."""
    if options.correlation_type == options.SUBTRACT:
        product = onnx.op("Abs", onnx.op("Sub", first, second))
    else:
        product = onnx.op("Mul", first, second)
    means = onnx.over_axes("ReduceMean", product, [1], keepdims=1)
    if options.kernel_size == 1 and options.stride_1 == 1:
        return means
    return onnx.op("AveragePool", means, kernel_shape=[options.kernel_size] * 2, strides=[options.stride_1] * 2)

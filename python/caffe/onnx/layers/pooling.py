"""Pooling. Avoids ONNX's ceil_mode and count_include_pad, because runtimes disagree about both."""
from math import prod

import numpy as np

from ..registry import writes


class Windows:
    """Windows along each spatial axis: extents of the image, kernel, stride, padding before it, and outputs."""

    def __init__(self, image, kernel, stride, pad, outputs):
        self.image, self.kernel, self.stride, self.pad, self.outputs = image, kernel, stride, pad, outputs
        # Extent of the last window beyond the image.
        self.pad_end = [max(0, (n - 1) * s + k - size - p)
                        for n, s, k, size, p in zip(outputs, stride, kernel, image, pad)]

    @property
    def attributes(self):
        return {"kernel_shape": self.kernel, "strides": self.stride}

    @property
    def covers_image(self):
        return self.kernel == self.image and self.outputs == [1] * len(self.image) and not any([*self.pad, *self.pad_end])

    @property
    def leave_image(self):
        """True if some windows lie completely outside the image: ONNX's padding cannot express it. Their maximum is the lowest float."""
        return any(end >= k for end, k in zip(self.pad_end, self.kernel))

    def divisors(self):
        """Divisors of the average: padding counts, up to `pad` beyond the image."""
        lengths = [[max(min(i * s - p + k, size + p) - (i * s - p), 1) for i in range(n)]
                   for n, s, k, size, p in zip(self.outputs, self.stride, self.kernel, self.image, self.pad)]
        result = np.ones([1] * len(lengths))
        for axis, numbers in enumerate(lengths):
            shape = [1] * len(lengths)
            shape[axis] = len(numbers)
            result = result * np.reshape(numbers, shape)
        return result


def _pair(options, name, default):
    height, width = getattr(options, f"{name}_h"), getattr(options, f"{name}_w")
    if options.HasField(f"{name}_h") or options.HasField(f"{name}_w"):
        return [height, width]
    both = getattr(options, name if name != "kernel" else "kernel_size")
    return [both or default] * 2


def windows_of(options, image, outputs):
    """The Windows of a PoolingParameter. image, outputs: extents along the spatial axes."""
    kernel = list(image) if options.global_pooling else _pair(options, "kernel", 0)
    return Windows(list(image), kernel, _pair(options, "stride", 1), _pair(options, "pad", 0), list(outputs))


def max_pool(onnx, tensor, windows, outputs=1):
    if windows.covers_image and outputs == 1:
        return onnx.op("GlobalMaxPool", tensor)
    if windows.leave_image:
        lowest = float(np.finfo(np.float32).min)
        padded = onnx.pad(tensor, [0, 0, *windows.pad], [0, 0, *windows.pad_end], lowest)
        return onnx.op("MaxPool", padded, outputs=outputs, **windows.attributes)
    return onnx.op("MaxPool", tensor, outputs=outputs, pads=[*windows.pad, *windows.pad_end], **windows.attributes)


def average_pool(onnx, tensor, windows):
    if windows.covers_image:
        return onnx.op("GlobalAveragePool", tensor)
    padded = onnx.pad(tensor, [0, 0, *windows.pad], [0, 0, *windows.pad_end])
    means = onnx.op("AveragePool", padded, **windows.attributes)
    factors = prod(windows.kernel) / windows.divisors()
    if np.all(factors == 1):
        return means
    return onnx.op("Mul", means, onnx.constant(factors[None, None]))


@writes("Pooling")
def pooling(layer, onnx):
    options = layer.param.pooling_param
    windows = windows_of(options, layer.shape[2:], layer.top_shape[2:])
    if options.pool == options.AVE:
        return average_pool(onnx, layer.bottom, windows)
    if options.pool == options.STOCHASTIC:
        return _weighted_mean(layer, onnx, windows)
    if len(layer.tops) == 1:
        return max_pool(onnx, layer.bottom, windows)
    if windows.leave_image:
        layer.refuse("a mask of windows that lie beyond the image")
    largest, places = max_pool(onnx, layer.bottom, windows, outputs=2)
    in_plane = onnx.op("Mod", places, onnx.integers(prod(windows.image)))
    return [largest, onnx.cast(in_plane, np.float32)]


def _weighted_mean(layer, onnx, windows):
    """Stochastic pooling at test time: the sum of squares over the sum, 0 where that is 0."""
    def mean(tensor):
        return onnx.op("AveragePool", onnx.pad(tensor, [0, 0, *windows.pad], [0, 0, *windows.pad_end]), **windows.attributes)

    smallest = float(np.finfo(np.float32).tiny)
    sums = onnx.op("Add", mean(layer.bottom), onnx.constant(smallest))
    return onnx.op("Div", mean(onnx.op("Mul", layer.bottom, layer.bottom)), sums)


@writes("SPP")
def spatial_pyramid(layer, onnx):
    options = layer.param.spp_param
    levels = []
    for level in range(options.pyramid_height):
        bins = 2 ** level
        kernel = [-(-size // bins) for size in layer.shape[2:]]
        pad = [(k * bins - size + 1) // 2 for k, size in zip(kernel, layer.shape[2:])]
        outputs = [_outputs(size, k, p) for size, k, p in zip(layer.shape[2:], kernel, pad)]
        windows = Windows(list(layer.shape[2:]), kernel, kernel, pad, outputs)
        pool = max_pool if options.pool == options.MAX else average_pool
        levels.append(pool(onnx, layer.bottom, windows))
    if len(levels) == 1:
        return levels[0]
    return onnx.op("Concat", *[onnx.op("Flatten", level) for level in levels], axis=1)


def _outputs(size, kernel, pad):
    """Number of windows whose stride is their kernel, rounded up; none starts in the padding after the image."""
    outputs = -(-(size + 2 * pad - kernel) // kernel) + 1
    return outputs - 1 if pad and (outputs - 1) * kernel >= size + pad else outputs

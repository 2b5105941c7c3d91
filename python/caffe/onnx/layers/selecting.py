"""Layers that select items by their data."""
import numpy as np

from ..registry import writes


@writes("Filter")
def filter_(layer, onnx):
    """The items whose selector, the last bottom, is not 0. Their number varies."""
    selector = onnx.reshape(layer.bottoms[-1], [layer.shapes[-1][0]])
    places = onnx.op("NonZero", onnx.op("Not", onnx.op("Equal", selector, onnx.constant(0))))
    places = onnx.over_axes("Squeeze", places, [0])
    onnx.varying.add(places)
    return [onnx.op("Gather", bottom, places, axis=0) for bottom in layer.bottoms[:-1]]


@writes("Where")
def where(layer, onnx):
    condition, *both = layer.bottoms
    return onnx.op("Where", onnx.cast(condition, np.bool_), *both)


@writes("Gather")
def gather(layer, onnx):
    data, indices = layer.bottoms
    return onnx.op("Gather", data, onnx.cast(indices, np.int64), axis=layer.axis(layer.param.gather_param.axis))


@writes("Scatter")
def scatter(layer, onnx):
    """The order in which updates of one place replace each other is undefined in ONNX; in onnxruntime the last one counts, too."""
    options, (data, indices, updates) = layer.param.scatter_param, layer.bottoms
    if options.add:
        layer.require_opset(onnx, 16, "adding")
    return onnx.op("ScatterElements", data, onnx.cast(indices, np.int64), updates, axis=layer.axis(options.axis),
                   reduction="add" if options.add else None)


@writes("TopK")
def top_k(layer, onnx):
    options = layer.param.top_k_param
    values, places = onnx.op("TopK", layer.bottom, onnx.integers([options.k]), outputs=2, axis=layer.axis(options.axis),
                             largest=int(options.largest))
    return [values, onnx.cast(places, np.float32)][:len(layer.tops)]


@writes("Nms")
def peaks(layer, onnx):
    """For each of the first maps, the first max_peaks elements above the threshold and all their neighbours, as rows x, y and
    height; row 0 starts with their number. Positions are means over 7x7 pixels, weighted by the positive values."""
    options, (items, _, height, width) = layer.param.nms_param, layer.shape
    if min(height, width) < 3:
        layer.refuse(f"maps of {height}x{width} pixels, all of which are at the edge")
    parts, count = options.num_parts, min(options.max_peaks, height * width)
    maps = onnx.slice(layer.bottom, [0], [parts], [1])
    mask = _is_peak(onnx, maps, options.threshold, height, width)
    flat = [items, parts, height * width]
    order = onnx.op("Mul", onnx.reshape(mask, flat), onnx.constant(np.arange(height * width, 0, -1)))
    found, places = onnx.op("TopK", order, onnx.integers([count]), outputs=2, axis=2)
    is_found = onnx.op("Greater", found, onnx.constant(0))
    columns = [onnx.op("GatherElements", onnx.reshape(tensor, flat), places, axis=2)
               for tensor in (*_centres(onnx, maps, height, width), maps)]
    rows = onnx.op("Concat", *[onnx.over_axes("Unsqueeze", onnx.where(is_found, column, 0), [3]) for column in columns], axis=3)
    numbers = onnx.over_axes("ReduceSum", onnx.cast(is_found, np.float32), [2], keepdims=1)
    head = onnx.op("Mul", onnx.over_axes("Unsqueeze", numbers, [3]), onnx.constant([1, 0, 0]))
    return onnx.pad(onnx.op("Concat", head, rows, axis=2), [0] * 4, [0, 0, options.max_peaks - count, 0])


def _is_peak(onnx, maps, threshold, height, width):
    """1 at peaks, else 0; elements at the edge are not peaks."""
    inner = onnx.slice(maps, [1, 1], [height - 1, width - 1], [2, 3])
    mask = onnx.op("Greater", inner, onnx.constant(threshold))
    for y, x in ((y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)):
        neighbour = onnx.slice(maps, [y, x], [height - 2 + y, width - 2 + x], [2, 3])
        mask = onnx.op("And", mask, onnx.op("Greater", inner, neighbour))
    return onnx.pad(onnx.cast(mask, np.float32), [0, 0, 1, 1], [0, 0, 1, 1])


def _centres(onnx, maps, height, width):
    """x and y of the centre of mass of the positive values around each pixel."""
    weights = onnx.op("Relu", maps)

    def sum_around(tensor):
        return onnx.op("AveragePool", onnx.pad(tensor, [0, 0, 3, 3], [0, 0, 3, 3]), kernel_shape=[7, 7], strides=[1, 1])

    total = sum_around(weights)
    is_empty = onnx.op("Equal", total, onnx.constant(0))
    for own in (np.arange(width)[None, :] * np.ones((height, 1)), np.arange(height)[:, None] * np.ones((1, width))):
        divisor = onnx.op("Where", is_empty, onnx.constant(1), total)
        mean = onnx.op("Div", sum_around(onnx.op("Mul", weights, onnx.constant(own))), divisor)
        yield onnx.op("Where", is_empty, onnx.constant(own), mean)

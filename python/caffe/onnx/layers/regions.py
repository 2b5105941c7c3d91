"""Pooling of box features. Bottom 1 has rows (item, xmin, ymin, xmax, ymax)."""
import numpy as np

from ..registry import writes


@writes("ROIPooling")
def roi_pooling(layer, onnx):
    options = layer.param.roi_pooling_param
    boxes = onnx.reshape(layer.bottoms[1], [layer.shapes[1][0], 5])
    return onnx.op("MaxRoiPool", layer.bottom, boxes, pooled_shape=[options.pooled_h, options.pooled_w],
                   spatial_scale=options.spatial_scale)


@writes("ROIAlign")
def roi_align(layer, onnx):
    options = layer.param.roi_align_param
    boxes = onnx.reshape(layer.bottoms[1], [layer.shapes[1][0], 5])
    items, corners = onnx.split(boxes, 1, [1, 4])
    items = onnx.cast(onnx.reshape(items, [layer.shapes[1][0]]), np.int64)
    # From opset 16 on, edges are shifted by half a pixel unless this mode is given.
    mode = "output_half_pixel" if onnx.opset >= 16 else None
    return onnx.op("RoiAlign", layer.bottom, corners, items, output_height=options.pooled_h, output_width=options.pooled_w,
                   sampling_ratio=options.sampling_ratio, spatial_scale=options.spatial_scale,
                   coordinate_transformation_mode=mode)


@writes("PSROIPooling")
def sensitive_pooling(layer, onnx):
    """Position-sensitive pooling: means over cells, each with its own channels (Dai et al. 2016, "R-FCN"). Computed as sums with
    weights 1 / size inside a cell and 0 outside."""
    options, (items, _, height, width), count = layer.param.psroi_pooling_param, layer.shape, layer.shapes[1][0]
    group, channels = options.group_size, options.output_dim
    boxes = onnx.reshape(layer.bottoms[1], [count, 5])
    item, x1, y1, x2, y2 = onnx.split(boxes, 1, [1] * 5)
    rows, columns = (_cell_weights(onnx, low, high, options.spatial_scale, group, extent)
                     for low, high, extent in ((y1, y2, height), (x1, x2, width)))
    rows = onnx.over_axes("Unsqueeze", onnx.op("Transpose", rows, perm=[1, 2, 0]), [1])  # (group, 1, height, boxes)
    columns = onnx.op("Transpose", columns, perm=[1, 2, 0])  # (group, width, boxes)
    maps = onnx.op("Reshape", layer.bottom, onnx.integers([items, channels, group, group, height, width]))
    whole, is_known, total = onnx.op("Floor", item), None, None
    for k in range(items):
        is_own = onnx.cast(onnx.op("Equal", whole, onnx.constant(k)), np.float32)  # (boxes, 1)
        is_known = is_own if is_known is None else onnx.op("Add", is_known, is_own)
        own = onnx.op("Mul", columns, onnx.op("Transpose", is_own, perm=[1, 0]))
        image = onnx.over_axes("Squeeze", onnx.slice(maps, [k], [k + 1], [0]), [0]) if items > 1 else \
            onnx.over_axes("Squeeze", maps, [0])
        sums = onnx.over_axes("ReduceSum", onnx.op("Mul", onnx.op("MatMul", image, own), rows), [3], keepdims=0)
        total = sums if total is None else onnx.op("Add", total, sums)
    means = onnx.op("Transpose", total, perm=[3, 0, 1, 2])
    is_known = onnx.op("Greater", onnx.over_axes("Unsqueeze", is_known, [2, 3]), onnx.constant(0))
    return onnx.where(is_known, means, np.nan)


def _rounded(onnx, tensor):
    """Rounds to the nearest integer, halves away from 0."""
    below = onnx.op("Ceil", onnx.scaled(tensor, 1, -0.5))
    return onnx.op("Where", onnx.op("Less", tensor, onnx.constant(0)), below, onnx.op("Floor", onnx.scaled(tensor, 1, 0.5)))


def _cell_weights(onnx, low, high, scale, cells, extent):
    """(boxes, cells, extent): the weight of each pixel along an axis in a cell's mean."""
    first = onnx.scaled(_rounded(onnx, low), scale)
    last = onnx.scaled(onnx.scaled(_rounded(onnx, high), 1, 1), scale)
    size = onnx.op("Div", onnx.op("Max", onnx.op("Sub", last, first), onnx.constant(0.1)), onnx.constant(cells))

    def edge(kind, steps):
        place = onnx.op("Add", onnx.op("Mul", size, onnx.constant([steps])), first)
        return onnx.over_axes("Unsqueeze", onnx.clip(onnx.op(kind, place), 0.0, float(extent)), [2])

    begin, end = edge("Floor", np.arange(cells)), edge("Ceil", np.arange(1, cells + 1))
    pixels = onnx.constant(np.arange(extent)[None, None])
    is_in = onnx.op("And", onnx.op("Not", onnx.op("Less", pixels, begin)), onnx.op("Less", pixels, end))
    return onnx.op("Div", onnx.cast(is_in, np.float32), onnx.op("Max", onnx.op("Sub", end, begin), onnx.constant(1)))

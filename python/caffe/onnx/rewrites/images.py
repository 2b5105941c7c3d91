"""Operators that move or interpolate pixels."""
import numpy as np

from .registry import rewrite


def _sizes(node):
    """Shapes of a Resize's input and output; None if they are unknown."""
    before, after = node.shape(0), node.output_shape(0)
    known = before and after and None not in before and None not in after
    return (before, after) if known else None


def _floor_places(inputs, outputs):
    return [i * inputs // outputs for i in range(outputs)]


@rewrite("Resize")
def nearest_resize_as_gather(node, onnx):
    """Resize to the nearest pixel as Gather of rows and columns."""
    options, sizes = node.attributes, _sizes(node)
    is_floor = (options.get("mode", "nearest") == "nearest" and options.get("nearest_mode") == "floor"
                and options.get("coordinate_transformation_mode") == "asymmetric")
    if sizes is None or not is_floor:
        return None
    result = node.inputs[0]
    for axis, (inputs, outputs) in enumerate(zip(*sizes)):
        if inputs != outputs:
            result = onnx.op("Gather", result, onnx.integers(_floor_places(inputs, outputs)), axis=axis)
    return result if result != node.inputs[0] else onnx.op("Identity", result)


def _linear_weights(inputs, outputs):
    """A matrix (outputs x inputs) of linear interpolation with aligned corners."""
    places = np.linspace(0, inputs - 1, outputs) if outputs > 1 else np.zeros(1)
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(inputs)))


@rewrite("Resize")
def linear_resize_as_products(node, onnx):
    """Resize between corners as MatMul with two matrices."""
    options, sizes = node.attributes, _sizes(node)
    if sizes is None or len(sizes[0]) != 4 or options.get("mode") != "linear" \
            or options.get("coordinate_transformation_mode") != "align_corners":
        return None
    (height, width), (rows, columns) = sizes[0][2:], sizes[1][2:]
    wide = onnx.op("MatMul", node.inputs[0], onnx.constant(_linear_weights(width, columns).T))
    return onnx.op("MatMul", onnx.constant(_linear_weights(height, rows)), wide)


@rewrite("Slice")
def turned_slice_as_gather(node, onnx):
    """Slice backwards as Gather."""
    shape = node.shape(0)
    starts, ends, axes, steps = (node.constant(k) for k in range(1, 5))
    is_known = shape and None not in shape and all(array is not None for array in (starts, ends, axes, steps))
    if not is_known or all(step > 0 for step in steps):
        return None
    result = node.inputs[0]
    for start, end, axis, step in zip(starts, ends, axes, steps):
        places = range(shape[axis])[slice(int(start), _end(int(end), shape[axis]), int(step))]
        result = onnx.op("Gather", result, onnx.integers(list(places)), axis=int(axis))
    return result


def _end(end, extent):
    return None if end < -extent else end


@rewrite("Slice")
def slice_as_split(node, onnx):
    """Slice of a part as Split."""
    shape, ranges = node.shape(0), [node.constant(k) for k in range(1, 4)]
    has_steps = len(node.inputs) > 4 and node.inputs[4]
    if not shape or None in shape or any(array is None for array in ranges) or (has_steps and not _is_all_ones(node.constant(4))):
        return None
    parts = [(int(axis), *slice(int(start), int(end)).indices(shape[axis])[:2]) for start, end, axis in zip(*ranges)]
    if any(end <= begin for _, begin, end in parts):
        return None
    result = node.inputs[0]
    for axis, begin, end in parts:
        sizes = [begin, end - begin, shape[axis] - end]
        kept = [size for size in sizes if size > 0]
        result = onnx.split(result, axis, kept)[1 if begin > 0 else 0]
    return result if result != node.inputs[0] else onnx.op("Identity", result)


def _is_all_ones(array):
    return array is not None and all(number == 1 for number in array)

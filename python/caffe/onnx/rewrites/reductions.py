"""Sums, maxima and norms along axes."""
from .registry import rewrite


def _summed(node, onnx, terms):
    return onnx.over_axes("ReduceSum", terms, node.axes(), keepdims=node.attributes.get("keepdims", 1))


@rewrite("ReduceL1")
def reduce_l1_as_sum(node, onnx):
    """ReduceL1 as Abs and ReduceSum."""
    return None if node.axes() is None else _summed(node, onnx, onnx.op("Abs", node.inputs[0]))


@rewrite("ReduceSumSquare")
def reduce_sum_square_as_sum(node, onnx):
    """ReduceSumSquare as Mul and ReduceSum."""
    return None if node.axes() is None else _summed(node, onnx, onnx.op("Mul", node.inputs[0], node.inputs[0]))


@rewrite("ReduceMean")
def reduce_mean_by_axis(node, onnx):
    """ReduceMean of several axes as one after another."""
    axes, kept = node.axes(), node.attributes.get("keepdims", 1)
    if axes is None or len(axes) == 1 or (not kept and min(axes) < 0):
        return None
    result = node.inputs[0]
    for axis in sorted(axes, reverse=True):
        result = onnx.over_axes("ReduceMean", result, [axis], keepdims=kept)
    return result


@rewrite("TopK")
def top_1_as_arg_max(node, onnx):
    """TopK of one place as ReduceMax and ArgMax."""
    count = node.constant(1)
    if count is None or list(count) != [1] or node.attributes.get("largest", 1) != 1:
        return None
    axis = node.attributes.get("axis", -1)
    return [onnx.over_axes("ReduceMax", node.inputs[0], [axis], keepdims=1),
            onnx.op("ArgMax", node.inputs[0], axis=axis, keepdims=1)]


@rewrite("LayerNormalization")
def layer_normalization_as_means(node, onnx):
    """LayerNormalization as ReduceMean, Sqrt and Div."""
    shape = node.shape(0)
    if shape is None or len(node.outputs) > 1:
        return None
    x, rank = node.inputs[0], len(shape)
    axes = range(node.attributes.get("axis", -1) % rank, rank)
    centred = onnx.op("Sub", x, onnx.over_axes("ReduceMean", x, axes, keepdims=1))
    variance = onnx.over_axes("ReduceMean", onnx.op("Mul", centred, centred), axes, keepdims=1)
    result = onnx.op("Div", centred, onnx.op("Sqrt", onnx.scaled(variance, 1, node.attributes.get("epsilon", 1e-5))))
    for kind, operand in zip(("Mul", "Add"), node.inputs[1:]):
        result = onnx.op(kind, result, operand) if operand else result
    return result

"""Sums and products of tensors, with learned factors and offsets, and reductions along axes."""
import numpy as np
from onnx import TensorProto

from ...proto.caffe_pb2 import BF16, FP16
from ..builder import INT_MAX
from ..registry import writes


def _spread(layer, onnx, tensor, shape, axis):
    """A tensor reshaped to broadcast along the bottom's axes from `axis` on."""
    after = len(layer.shape) - axis - len(shape)
    return onnx.reshape(tensor, [*shape, *[1] * after]) if after else tensor


def _operand(layer, onnx, axis):
    """The second operand of Scale and Bias: bottom 1, or a parameter."""
    axis = layer.axis(axis) if len(layer.shape) else 0
    if len(layer.bottoms) > 1:
        return _spread(layer, onnx, layer.bottoms[1], layer.shapes[1], axis)
    return layer.weight(onnx, 0, _fitting(layer, layer.blobs[0], axis))


def _fitting(layer, array, axis):
    return array.reshape((*array.shape, *[1] * (len(layer.shape) - axis - array.ndim)))


@writes("Scale")
def scale(layer, onnx):
    options = layer.param.scale_param
    result = onnx.op("Mul", layer.bottom, _operand(layer, onnx, options.axis))
    if not options.bias_term:
        return result
    bias = len(layer.blobs) - 1
    return onnx.op("Add", result, layer.weight(onnx, bias, _fitting(layer, layer.blobs[bias], layer.axis(options.axis))))


@writes("Bias")
def bias(layer, onnx):
    options = layer.param.bias_param
    return onnx.op("Add", layer.bottom, _operand(layer, onnx, options.axis))


@writes("Axpy")
def axpy(layer, onnx):
    factors = onnx.reshape(layer.bottom, [*layer.shapes[1][:2], *[1] * (len(layer.shapes[1]) - 2)])
    return onnx.op("Add", onnx.op("Mul", factors, layer.bottoms[1]), layer.bottoms[2])


def _chain(onnx, kind, tensors):
    result = tensors[0]
    for tensor in tensors[1:]:
        result = onnx.op(kind, result, tensor)
    return result


@writes("Eltwise")
def eltwise(layer, onnx):
    options = layer.param.eltwise_param
    kind = {options.PROD: "Mul", options.SUM: "Add", options.MAX: "Max"}[options.operation]
    tensors = layer.bottoms
    if options.operation == options.SUM and options.coeff:
        tensors = [onnx.scaled(tensor, factor) for tensor, factor in zip(tensors, options.coeff)]
    return _chain(onnx, kind, tensors)


@writes("Binary")
def binary(layer, onnx):
    kinds = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")  # in the order of BinaryParameter's operations
    return onnx.op(kinds[layer.param.binary_param.operation], *layer.bottoms)


@writes("Cast")
def cast(layer, onnx):
    """Rounds to 16 bits; the numbers of a model are float."""
    options = layer.param.cast_param
    if options.type == FP16:
        return onnx.cast(onnx.cast(layer.bottom, np.float16), np.float32)
    if options.type == BF16:
        layer.require_opset(onnx, 13, "rounding to bfloat16")
        return onnx.cast(onnx.op("Cast", layer.bottom, to=TensorProto.BFLOAT16), np.float32)
    return layer.bottom


@writes("MatMul")
def matmul(layer, onnx):
    options = layer.param.matmul_param
    operands = list(layer.bottoms)
    for i, turns in enumerate((options.transpose_a, options.transpose_b)):
        if turns:
            axes = len(layer.shapes[i])
            operands[i] = onnx.op("Transpose", operands[i], perm=[*range(axes - 2), axes - 1, axes - 2])
    return onnx.op("MatMul", *operands)


@writes("InnerProduct")
def inner_product(layer, onnx):
    options = layer.param.inner_product_param
    axis = layer.axis(options.axis)
    rows, columns = layer.count(0, axis), layer.count(axis)
    tensor = layer.bottom if len(layer.shape) == 2 and axis == 1 else onnx.reshape(layer.bottom, [rows, columns])
    biases = [layer.weight(onnx, 1)] if options.bias_term else []
    product = onnx.op("Gemm", tensor, layer.weight(onnx, 0), *biases, transB=0 if options.transpose else 1)
    return product if len(layer.top_shape) == 2 else onnx.reshape(product, layer.top_shape)


@writes("LayerScale")
def layer_scale(layer, onnx):
    return onnx.op("Mul", layer.bottom, layer.weight(onnx, 0))


@writes("Embed")
def embed(layer, onnx):
    rows = onnx.op("Gather", layer.weight(onnx, 0), onnx.cast(layer.bottom, np.int64), axis=0)
    return onnx.op("Add", rows, layer.weight(onnx, 1)) if layer.param.embed_param.bias_term else rows


@writes("Reduction")
def reduction(layer, onnx):
    options = layer.param.reduction_param
    kind = {options.SUM: "ReduceSum", options.ASUM: "ReduceL1", options.SUMSQ: "ReduceSumSquare",
            options.MEAN: "ReduceMean"}[options.operation]
    axes = range(layer.axis(options.axis), len(layer.shape))
    return onnx.scaled(onnx.over_axes(kind, layer.bottom, axes, keepdims=0), options.coeff)


@writes("Softmax", "LogSoftmax")
def softmax(layer, onnx):
    return onnx.softmax(layer.bottom, layer.axis(layer.param.softmax_param.axis), layer.shape, layer.type)


@writes("ArgMax")
def argmax(layer, onnx):
    options = layer.param.argmax_param
    has_axis = options.HasField("axis")
    tensor = layer.bottom if has_axis else onnx.reshape(layer.bottom, [layer.shape[0], layer.count(1)])
    axis = layer.axis(options.axis) if has_axis else 1
    # For equal values Caffe takes the last one, but TopK the first.
    turned = onnx.slice(tensor, [-1], [-INT_MAX], [axis], steps=[-1])
    values, places = onnx.op("TopK", turned, onnx.integers([options.top_k]), outputs=2, axis=axis)
    extent = layer.shape[axis] if has_axis else layer.count(1)
    places = onnx.cast(onnx.op("Sub", onnx.integers(extent - 1), places), np.float32)
    if has_axis:
        return values if options.out_max_val else places
    both = onnx.op("Concat", places, values, axis=1) if options.out_max_val else places
    return onnx.reshape(both, layer.top_shape)

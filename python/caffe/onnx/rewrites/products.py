"""Operators with weights."""
import numpy as np

from .registry import rewrite


@rewrite("Gemm")
def gemm_as_convolution(node, onnx):
    """Gemm as a 1x1 convolution."""
    weights, shape, options = node.constant(1), node.shape(0), node.attributes
    has_plain_form = options.get("transA", 0) == 0 and options.get("alpha", 1) == 1 and options.get("beta", 1) == 1
    if weights is None or not shape or shape[0] is None or not has_plain_form:
        return None
    if len(node.inputs) > 2 and (node.constant(2) is None or node.constant(2).ndim != 1):
        return None
    weights = weights if options.get("transB", 0) else weights.T
    image = onnx.reshape(node.inputs[0], [shape[0], weights.shape[1], 1, 1])
    kernels = onnx.weight(weights[:, :, None, None], node.inputs[1])
    product = onnx.op("Conv", image, kernels, *node.inputs[2:], kernel_shape=[1, 1])
    return onnx.reshape(product, [shape[0], weights.shape[0]])


@rewrite("BatchNormalization")
def batch_normalization_as_scale(node, onnx):
    """BatchNormalization as Mul and Add."""
    scale, shift, mean, variance = (node.constant(k) for k in range(1, 5))
    shape = node.shape(0)
    if shape is None or any(array is None for array in (scale, shift, mean, variance)):
        return None
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    channels = (-1, *[1] * (len(shape) - 2))
    product = onnx.op("Mul", node.inputs[0], onnx.weight(factor.astype(np.float32).reshape(channels), f"{node.layer}.factor"))
    return onnx.op("Add", product, onnx.weight((shift - mean * factor).astype(np.float32).reshape(channels), f"{node.layer}.term"))


@rewrite("Conv")
def padding_as_pad(node, onnx):
    """Padding of Conv as Pad."""
    pads = node.attributes.get("pads", [])
    if not any(pads) or node.attributes.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    half = len(pads) // 2
    padded = onnx.pad(node.inputs[0], [0, 0, *pads[:half]], [0, 0, *pads[half:]])
    return onnx.op("Conv", padded, *node.inputs[1:], **{**node.attributes, "pads": [0] * len(pads)})

"""Layers as other layers, for toolchains that read Caffe's files.

    @rewrite("SiLU", of="caffe")
    def silu_as_sigmoid(node, caffe):
        "SiLU as Sigmoid and Eltwise."
        return caffe.product(node.bottom, caffe.layer("Sigmoid", node.bottom))

`node` is a caffe_files.LayerNode, `caffe` a caffe_files.Draft. A function returns the blob that replaces the layer's top. If it
does not fit the layer, it returns None before writing anything.
"""
import numpy as np

from .registry import rewrite

_FLOATS = np.finfo(np.float32)


@rewrite("Bias", of="caffe")
def bias_into_product(node, caffe):
    """Bias as part of the convolution or product before it."""
    product = caffe.product_before(node.bottom) if len(node.bottoms) == 1 else None
    if product is None:
        return None
    options, rank = product.options, len(node.shape(0))
    term = node.blobs[0]
    channels = product.channel_axis
    is_along = term.shape == (options.num_output,) and node.options.axis % rank == channels
    if not is_along and term.size != 1:
        return None
    weights, *own = product.blobs
    options.bias_term = True
    total = np.ravel(term).astype(np.float64) + (np.asarray(own[0], np.float64) if own else np.zeros(options.num_output))
    product.blobs = [weights, total.astype(np.float32)]
    return node.bottom


@rewrite("Bias", of="caffe")
def bias_as_scale(node, caffe):
    """Bias as Scale by 1 with a bias."""
    if len(node.bottoms) > 1:
        return None
    term = node.blobs[0]
    options = {"axis": node.options.axis, "num_axes": node.options.num_axes, "bias_term": True}
    return caffe.layer("Scale", node.bottom, blobs=[np.ones_like(term), term], scale_param=options)


@rewrite("Power", of="caffe")
def power_as_scale(node, caffe):
    """Power of exponent 1 as Scale."""
    shape, options = node.shape(0), node.options
    if options.power != 1 or len(shape) < 2:
        return None
    blobs = [np.full(shape[1], number, np.float32) for number in (options.scale, options.shift)]
    return caffe.layer("Scale", node.bottom, blobs=blobs, scale_param={"bias_term": True})


@rewrite("ReLU6", of="caffe")
def relu6_as_relu6_of_6(node, caffe):
    """ReLU6 with another limit than 6 as ReLU6 of numbers that are scaled."""
    limit = node.options.threshold
    if limit == 6 or not limit > 0:
        return None
    return caffe.power(caffe.layer("ReLU6", caffe.power(node.bottom, 6 / limit)), limit / 6)


@rewrite("ReLU6", of="caffe")
def relu6_as_relu(node, caffe):
    """ReLU6 as ReLU from both sides."""
    return _at_most(caffe, caffe.layer("ReLU", node.bottom), node.options.threshold)


def _at_most(caffe, blob, limit):
    """limit - max(limit - blob, 0)."""
    return caffe.power(caffe.layer("ReLU", caffe.power(blob, -1, limit)), -1, limit)


@rewrite("Clip", of="caffe")
def clip_as_relu(node, caffe):
    """Clip as ReLU from each side."""
    least, most = node.options.min, node.options.max
    result = node.bottom
    if least > _FLOATS.min:
        result = caffe.power(caffe.layer("ReLU", caffe.power(result, 1, -least)), 1, least)
    if most < _FLOATS.max:
        result = _at_most(caffe, result, most)
    return result if result != node.bottom else caffe.layer("Power", node.bottom)


@rewrite("HardSigmoid", of="caffe")
def hard_sigmoid_as_relu6(node, caffe):
    """HardSigmoid as ReLU6 of numbers that are scaled."""
    line = caffe.power(node.bottom, 6 * node.options.alpha, 6 * node.options.beta)
    return caffe.power(caffe.layer("ReLU6", line), 1 / 6)


@rewrite("HardSwish", of="caffe")
def hard_swish_as_hard_sigmoid(node, caffe):
    """HardSwish as HardSigmoid and Eltwise."""
    gate = caffe.layer("HardSigmoid", node.bottom, hard_sigmoid_param={"alpha": 1 / 6, "beta": 0.5})
    return caffe.product(node.bottom, gate)


@rewrite("SiLU", "Swish", of="caffe")
def swish_as_sigmoid(node, caffe):
    """SiLU, or Swish, as Sigmoid and Eltwise."""
    beta = node.options.beta if node.kind == "Swish" else 1
    return caffe.product(node.bottom, caffe.layer("Sigmoid", caffe.power(node.bottom, beta)))


@rewrite("Mish", of="caffe")
def mish_as_softplus(node, caffe):
    """Mish as BNLL, TanH and Eltwise."""
    return caffe.product(node.bottom, caffe.layer("TanH", caffe.layer("BNLL", node.bottom)))


@rewrite("AbsVal", of="caffe")
def abs_as_max(node, caffe):
    """AbsVal as the larger one of both signs."""
    return caffe.layer("Eltwise", node.bottom, caffe.power(node.bottom, -1), eltwise_param={"operation": 2})

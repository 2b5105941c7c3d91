"""Convolutions and matrix products with weights."""
import numpy as np

from .registry import reads


def spatial(values):
    """An option for each spatial axis; a single value if all are equal."""
    return [values[0]] if len(set(values)) == 1 else list(values)


def pads_of(node, axes, image, span, strides):
    """Padding before and after each axis."""
    mode = node.get("auto_pad", "NOTSET")
    if mode == "VALID":
        return [0] * axes, [0] * axes
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        totals = [max((-(-size // s) - 1) * s + k - size, 0) for size, s, k in zip(image, strides, span)]
        small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
        return (small, large) if mode == "SAME_UPPER" else (large, small)
    pads = list(node.get("pads", [0] * 2 * axes))
    return pads[:axes], pads[axes:]


@reads("Conv")
def conv(node):
    weights = node.weights(1, "weights")
    kernel = list(weights.shape[2:])
    axes = len(kernel)
    strides, dilations = list(node.get("strides", [1] * axes)), list(node.get("dilations", [1] * axes))
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    image = node.shape()[2:]
    begins, ends = pads_of(node, axes, image, span, strides)
    for size, k, s, begin, end, outputs in zip(image, span, strides, begins, ends, node.top_shape[2:]):
        rounded = int((size + 2 * begin - k) / s) + 1  # rounds towards 0, as Caffe does
        reaches = (outputs - 1) * s + k - size - begin
        # Caffe reads 0 beyond the end of the image, however far the last window reaches.
        node.require(rounded == outputs and reaches <= max(end, 0), f"padding of {begin} before and {end} behind, "
                     "which no convolution of Caffe's has")
    blobs = [weights] + ([node.weights(2, "biases")] if node.has(2) else [])
    node.layer("Convolution", blobs=blobs, convolution_param={
        "num_output": weights.shape[0], "bias_term": node.has(2), "group": node.get("group", 1), "pad": spatial(begins),
        "kernel_size": spatial(kernel), "stride": spatial(strides), "dilation": spatial(dilations)})


@reads("ConvTranspose")
def conv_transpose(node):
    weights = node.weights(1, "weights")
    kernel, group = list(weights.shape[2:]), node.get("group", 1)
    axes = len(kernel)
    begins, ends = pads_of(node, axes, [], [], [])
    node.require(begins == ends and node.get("auto_pad", "NOTSET") == "NOTSET", "padding that differs between both sides")
    node.require(not any(node.get("output_padding", [0])) and "output_shape" not in node.attributes,
                 "output_padding or output_shape")
    blobs = [weights] + ([node.weights(2, "biases")] if node.has(2) else [])
    node.layer("Deconvolution", blobs=blobs, convolution_param={
        "num_output": weights.shape[1] * group, "bias_term": node.has(2), "group": group, "pad": spatial(begins),
        "kernel_size": spatial(kernel), "stride": spatial(list(node.get("strides", [1] * axes))),
        "dilation": spatial(list(node.get("dilations", [1] * axes)))})


@reads("Gemm")
def gemm(node):
    node.require(not node.get("transA", 0), "transA")
    weights = node.weights(1, "weights") * node.get("alpha", 1.0)
    turned = bool(node.get("transB", 0))
    columns = weights.shape[0 if turned else 1]
    blobs = [weights]
    if node.has(2):
        bias = node.weights(2, "biases") * node.get("beta", 1.0)
        node.require(bias.size in (1, columns), f"biases of shape {bias.shape}")
        blobs.append(np.broadcast_to(bias.ravel(), (columns,)))
    node.layer("InnerProduct", blobs=blobs, inner_product_param={
        "num_output": columns, "bias_term": node.has(2), "transpose": None if turned else True})


@reads("MatMul")
def matmul(node):
    if node.constant(1) is None:
        (_product_of_two if node.constant(0) is None else _product_from_the_left)(node)
        return
    weights = node.weights(1, "weights")
    node.require(weights.ndim == 2, f"weights of shape {weights.shape}")
    blobs, bias = [weights], None
    follower = node.follower("Add")
    if follower is not None:
        bias = next((node.source.constants[name] for name in follower.inputs if name in node.source.constants), None)
    has_bias = bias is not None and bias.shape == (weights.shape[1],)
    if has_bias:
        node.take_in(follower)
        blobs.append(bias)
    node.layer("InnerProduct", blobs=blobs, inner_product_param={
        "num_output": weights.shape[1], "bias_term": has_bias, "transpose": True, "axis": len(node.shape()) - 1})


def _product_from_the_left(node):
    """Computes A x as the transpose of x' A'."""
    weights, rank = node.weights(0, "weights"), len(node.shape(1))
    node.require(weights.ndim == 2 and rank > 2, f"factors of shapes {node.shape(0)} and {node.shape(1)}")
    order = [*range(rank - 2), rank - 1, rank - 2]
    turned, product = node.scratch("turned"), node.scratch("product")
    node.layer("Permute", bottoms=[node.inputs[1]], tops=[turned], permute_param={"order": order})
    node.layer("InnerProduct", bottoms=[turned], tops=[product], blobs=[weights], inner_product_param={
        "num_output": weights.shape[0], "bias_term": False, "axis": rank - 1})
    node.layer("Permute", bottoms=[product], permute_param={"order": order})


def _product_of_two(node):
    shapes = node.shape(0), node.shape(1)
    node.require(min(map(len, shapes)) >= 2, f"factors of shapes {shapes[0]} and {shapes[1]}")
    node.layer("MatMul", bottoms=node.inputs)

"""Convolutions and transposed convolutions."""
from math import prod

import numpy as np

from ..registry import writes


def spatial(values, height, width, axes, default):
    """An option of a convolution for each spatial axis, given once, once per axis, or as height and width."""
    if height or width:
        return [height, width]
    given = list(values) or [default]
    return given * axes if len(given) == 1 else given


def _attributes(layer, options):
    first = layer.axis(options.axis) + 1
    axes = len(layer.shape) - first
    kernel = spatial(options.kernel_size, options.kernel_h, options.kernel_w, axes, 0)
    pads = spatial(options.pad, options.pad_h, options.pad_w, axes, 0)
    strides = spatial(options.stride, options.stride_h, options.stride_w, axes, 1)
    dilations = spatial(options.dilation, 0, 0, axes, 1)
    return {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads + pads}


def _wide_enough(layer, attributes):
    """Adds padding if needed: Caffe rounds the number of windows towards 0, so one window may be larger than the padded image."""
    spatial_shape = list(zip(layer.shape[-len(attributes["strides"]):], layer.top_shape[-len(attributes["strides"]):]))
    axes = zip(spatial_shape, *(attributes[name] for name in ("kernel_shape", "strides", "dilations", "pads")))
    ends = [max(pad, (outputs - 1) * stride + (kernel - 1) * dilation + 1 - size - pad)
            for (size, outputs), kernel, stride, dilation, pad in axes]
    return {**attributes, "pads": attributes["pads"][:len(ends)] + ends}


def _each_bottom(layer, onnx, convolve):
    """Calls convolve(tensor) for each bottom. ONNX requires channels on axis 1, so the axes before them are merged."""
    axis = layer.axis(layer.param.convolution_param.axis)
    if axis == 1:
        return [convolve(tensor) for tensor in layer.bottoms]
    return [onnx.reshape(convolve(onnx.reshape(tensor, [prod(shape[:axis]), *shape[axis:]])), top)
            for tensor, shape, top in zip(layer.bottoms, layer.shapes, layer.top_shapes)]


def _convolve(layer, onnx, kind, groups):
    options = layer.param.convolution_param
    weights = [layer.weight(onnx, k) for k in range(2 if options.bias_term else 1)]
    attributes = _attributes(layer, options)
    if kind == "Conv":
        attributes = _wide_enough(layer, attributes)
    return _each_bottom(layer, onnx, lambda tensor: onnx.op(kind, tensor, *weights, group=groups, **attributes))


@writes("Convolution")
def convolution(layer, onnx):
    return _convolve(layer, onnx, "Conv", layer.param.convolution_param.group)


@writes("ConvolutionDepthwise", "DepthwiseConvolution")
def depthwise(layer, onnx):
    return _convolve(layer, onnx, "Conv", layer.shape[1])


@writes("Deconvolution")
def deconvolution(layer, onnx):
    return _convolve(layer, onnx, "ConvTranspose", layer.param.convolution_param.group)


@writes("PatchEmbed")
def patch_embed(layer, onnx):
    size = layer.param.patch_embed_param.patch_size
    made = onnx.op("Conv", layer.bottom, layer.weight(onnx, 0), layer.weight(onnx, 1), kernel_shape=[size] * 2, strides=[size] * 2)
    items, patches, columns = layer.top_shape
    return onnx.op("Transpose", onnx.reshape(made, [items, columns, patches]), perm=[0, 2, 1])


@writes("Im2col")
def im2col(layer, onnx):
    """Im2col as a grouped convolution whose kernels each select one position."""
    options = layer.param.convolution_param
    axis = layer.axis(options.axis)
    channels, attributes = layer.shape[axis], _wide_enough(layer, _attributes(layer, options))
    kernel = attributes["kernel_shape"]
    picks = np.tile(np.eye(prod(kernel)), (channels, 1)).reshape(-1, 1, *kernel)
    weights = onnx.constant(picks)
    return _each_bottom(layer, onnx, lambda tensor: onnx.op("Conv", tensor, weights, group=channels, **attributes))

"""Normalization of channels, items and neighbourhoods."""
import numpy as np

from ..registry import writes
from .pooling import Windows, average_pool


def _given_statistics(layer, onnx, mean, variance, scale, shift, eps):
    numbers = [onnx.weight(np.asarray(array, np.float32).ravel(), f"{layer.name}.{name}") for name, array in
               (("scale", scale), ("shift", shift), ("mean", mean), ("variance", variance))]
    if len(layer.shape) > 1:
        return onnx.op("BatchNormalization", layer.bottom, *numbers, epsilon=eps)
    column = onnx.op("BatchNormalization", onnx.reshape(layer.bottom, [layer.shape[0], 1]), *numbers, epsilon=eps)
    return onnx.reshape(column, layer.shape)


def _standardise(onnx, tensor, axes, divide):
    """Subtracts the mean along `axes`; `divide` maps the variance to the divisor."""
    centred = onnx.op("Sub", tensor, onnx.over_axes("ReduceMean", tensor, axes, keepdims=1))
    squares = onnx.op("Mul", centred, centred)
    return onnx.op("Div", centred, divide(onnx.over_axes("ReduceMean", squares, axes, keepdims=1)))


def _by_channel(layer, array):
    return np.asarray(array, np.float32).reshape(-1, *[1] * (len(layer.shape) - 2))


def _own_statistics(layer, onnx, scale, shift, eps):
    """Normalizes by the batch's own statistics, for layers that do so at test time, too."""
    axes = [axis for axis in range(len(layer.shape)) if axis != 1]
    result = _standardise(onnx, layer.bottom, axes, lambda variance: onnx.op("Sqrt", onnx.scaled(variance, 1, eps)))
    if scale is None:
        return result
    scaled = onnx.op("Mul", result, onnx.weight(_by_channel(layer, scale), f"{layer.name}.scale"))
    return onnx.op("Add", scaled, onnx.weight(_by_channel(layer, shift), f"{layer.name}.shift"))


@writes("BatchNorm")
def batch_norm(layer, onnx):
    options, blobs = layer.param.batch_norm_param, layer.blobs
    if len(blobs) == 5:  # NVCaffe's layer, with cuDNN's lower bound for eps
        eps = max(options.eps, 1e-5)
        scale, shift = blobs[3], blobs[4]
    else:
        eps, scale, shift = options.eps, np.ones_like(blobs[0]), np.zeros_like(blobs[0])
        if options.HasField("use_global_stats") and not options.use_global_stats:
            return _own_statistics(layer, onnx, None, None, eps)
    factor = 0 if blobs[2].item() == 0 else 1 / blobs[2].item()
    return _given_statistics(layer, onnx, blobs[0] * factor, blobs[1] * factor, scale, shift, eps)


@writes("BN", "SyncBN")
def bn(layer, onnx):
    options, blobs = layer.param.bn_param, layer.blobs
    of_segnet = any(options.HasField(name) for name in ("bn_mode", "scale_filler", "shift_filler"))
    if not of_segnet:
        return _given_statistics(layer, onnx, blobs[2], blobs[3], blobs[0], blobs[1], options.eps)
    if options.bn_mode == options.INFERENCE:
        scaled = onnx.op("Mul", layer.bottom, layer.weight(onnx, 0, _by_channel(layer, blobs[0])))
        return onnx.op("Add", scaled, layer.weight(onnx, 1, _by_channel(layer, blobs[1])))
    if len(layer.tops) > 1:
        layer.refuse("the batch's mean and variance as tops; remove these tops, and a net for inference has bn_mode: INFERENCE")
    return _own_statistics(layer, onnx, blobs[0], blobs[1], options.eps if options.HasField("eps") else 1e-9)


@writes("LayerNorm")
def layer_norm(layer, onnx):
    options = layer.param.layer_norm_param
    axis = layer.axis(options.axis)
    if onnx.opset >= 17:
        shape = layer.shape[axis:]
        scale, shift = layer.blobs if options.affine else (np.ones(shape, np.float32), np.zeros(shape, np.float32))
        return onnx.op("LayerNormalization", layer.bottom, onnx.weight(scale, f"{layer.name}.0"),
                       onnx.weight(shift, f"{layer.name}.1"), axis=axis, epsilon=options.eps)
    axes = range(axis, len(layer.shape))
    result = _standardise(onnx, layer.bottom, axes, lambda variance: onnx.op("Sqrt", onnx.scaled(variance, 1, options.eps)))
    if not options.affine:
        return result
    return onnx.op("Add", onnx.op("Mul", result, layer.weight(onnx, 0)), layer.weight(onnx, 1))


@writes("RMSNorm")
def rms_norm(layer, onnx):
    options = layer.param.rms_norm_param
    axes = range(layer.axis(options.axis), len(layer.shape))
    squares = onnx.over_axes("ReduceMean", onnx.op("Mul", layer.bottom, layer.bottom), axes, keepdims=1)
    result = onnx.op("Div", layer.bottom, onnx.op("Sqrt", onnx.scaled(squares, 1, options.eps)))
    return onnx.op("Mul", result, layer.weight(onnx, 0)) if options.affine else result


@writes("GroupNorm", "InstanceNorm")
def group_norm(layer, onnx):
    options, channels = layer.param.group_norm_param, layer.shape[1]
    affine = [layer.weight(onnx, k) for k in (0, 1)] if options.affine else [onnx.constant(np.full(channels, k)) for k in (1, 0)]
    if layer.type == "InstanceNorm" and len(layer.shape) > 2:
        return onnx.op("InstanceNormalization", layer.bottom, *affine, epsilon=options.eps)
    groups = channels if layer.type == "InstanceNorm" else options.num_groups
    if onnx.opset >= 21 and len(layer.shape) > 2:
        return onnx.op("GroupNormalization", layer.bottom, *affine, num_groups=groups, epsilon=options.eps)
    rows = onnx.reshape(layer.bottom, [layer.shape[0], groups, layer.count(1) // groups])
    if len(layer.shape) > 2:
        plain = [onnx.constant(np.full(groups, k)) for k in (1, 0)]
        rows = onnx.op("InstanceNormalization", rows, *plain, epsilon=options.eps)
    else:  # OpenCV fuses the form above and refuses rows
        rows = _standardise(onnx, rows, [2], lambda variance: onnx.op("Sqrt", onnx.scaled(variance, 1, options.eps)))
    result = onnx.reshape(rows, layer.shape)
    if not options.affine:
        return result
    scale, bias = (layer.weight(onnx, k, _by_channel(layer, layer.blobs[k])) for k in (0, 1))
    return onnx.op("Add", onnx.op("Mul", result, scale), bias)


@writes("MVN")
def mvn(layer, onnx):
    options = layer.param.mvn_param
    axes = range(1 if options.across_channels else 2, len(layer.shape))
    if not axes:  # the mean is over a single element
        return onnx.op("Sub", layer.bottom, layer.bottom)
    if not options.normalize_variance:
        return onnx.op("Sub", layer.bottom, onnx.over_axes("ReduceMean", layer.bottom, axes, keepdims=1))
    return _standardise(onnx, layer.bottom, axes, lambda variance: onnx.scaled(onnx.op("Sqrt", variance), 1, options.eps))


@writes("Normalize")
def normalize(layer, onnx):
    options = layer.param.norm_param
    axes = range(1, len(layer.shape)) if options.across_spatial else [1]
    squares = onnx.over_axes("ReduceSum", onnx.op("Mul", layer.bottom, layer.bottom), axes, keepdims=1)
    unit = onnx.op("Div", layer.bottom, onnx.op("Sqrt", onnx.scaled(squares, 1, options.eps)))
    scale = layer.blobs[0] if options.channel_shared else _by_channel(layer, layer.blobs[0])
    return onnx.op("Mul", unit, layer.weight(onnx, 0, scale.reshape(scale.shape or (1,))))


@writes("LRN")
def lrn(layer, onnx):
    options = layer.param.lrn_param
    if options.norm_region == options.ACROSS_CHANNELS:
        return onnx.op("LRN", layer.bottom, size=options.local_size, alpha=options.alpha, beta=options.beta, bias=options.k)
    size, image = options.local_size, list(layer.shape[2:])
    windows = Windows(image, [size] * 2, [1, 1], [size // 2] * 2, image)
    means = average_pool(onnx, onnx.op("Mul", layer.bottom, layer.bottom), windows)
    return onnx.op("Mul", layer.bottom, onnx.op("Pow", onnx.scaled(means, options.alpha, 1), onnx.constant(-options.beta)))

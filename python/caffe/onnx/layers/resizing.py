"""Resizing of images."""
import numpy as np

from ..registry import writes


def _resize(onnx, tensor, shape, **attributes):
    empty = onnx.constant([]) if onnx.opset < 13 else None  # before opset 13 these inputs were required
    return onnx.op("Resize", tensor, empty, empty, onnx.integers(shape), **attributes)


@writes("Interp")
def interp(layer, onnx):
    options, image = layer.param.interp_param, layer.bottom
    if options.pad_beg or options.pad_end:
        begin = -options.pad_beg
        image = onnx.slice(image, [begin] * 2, [size + options.pad_end for size in layer.shape[2:]], [2, 3])
    return _resize(onnx, image, layer.top_shape, mode="linear",
                   coordinate_transformation_mode="align_corners" if options.align_corners else "half_pixel")


@writes("Upsample")
def upsample(layer, onnx):
    if len(layer.bottoms) == 2:
        return _unpool(layer, onnx)
    options = layer.param.upsample_param
    if options.HasField("upsample_h"):
        return _repeat(layer, onnx)
    factors = [options.scale_h, options.scale_w] if options.HasField("scale_h") else [options.scale] * 2
    whole = [*layer.shape[:2], *[size * factor for size, factor in zip(layer.shape[2:], factors)]]
    resized = _resize(onnx, layer.bottom, whole, mode="nearest", coordinate_transformation_mode="asymmetric",
                      nearest_mode="floor")
    if list(layer.top_shape) == whole:
        return resized
    return onnx.slice(resized, [0, 0], layer.top_shape[2:], [2, 3])


def _repeat(layer, onnx):
    """Row i of the top is row i * H / H' of the bottom in integer arithmetic; columns likewise."""
    result = layer.bottom
    for axis in (2, 3):
        outputs, inputs = layer.top_shape[axis], layer.shape[axis]
        result = onnx.op("Gather", result, onnx.integers([i * inputs // outputs for i in range(outputs)]), axis=axis)
    return result


def _unpool(layer, onnx):
    """Copies each value to the position in the mask; all other positions are 0."""
    planes, pixels, places = layer.count(0, 2), layer.count(2), int(np.prod(layer.top_shape[2:]))
    values = onnx.reshape(layer.bottom, [planes, pixels])
    mask = onnx.cast(onnx.reshape(layer.bottoms[1], [planes, pixels]), np.int64)
    zeros = onnx.op("Expand", onnx.constant([[0]]), onnx.integers([planes, places]))
    return onnx.reshape(onnx.op("ScatterElements", zeros, mask, values, axis=1), layer.top_shape)

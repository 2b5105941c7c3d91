"""Layers that only rearrange elements."""
import numpy as np

from ..builder import INT_MAX
from ..registry import writes


@writes("Reshape", "Flatten")
def reshape(layer, onnx):
    return onnx.reshape(layer.bottom, layer.top_shape)


@writes("Permute")
def permute(layer, onnx):
    named = list(layer.param.permute_param.order)
    return onnx.op("Transpose", layer.bottom, perm=named + [k for k in range(len(layer.shape)) if k not in named])


@writes("Concat")
def concat(layer, onnx):
    options = layer.param.concat_param
    axis = options.concat_dim if options.HasField("concat_dim") else layer.axis(options.axis)
    return layer.bottom if len(layer.bottoms) == 1 else onnx.op("Concat", *layer.bottoms, axis=axis)


@writes("Slice")
def slice_(layer, onnx):
    options = layer.param.slice_param
    axis = options.slice_dim if options.HasField("slice_dim") else layer.axis(options.axis)
    return onnx.split(layer.bottom, axis, [shape[axis] for shape in layer.top_shapes])


@writes("Crop")
def crop(layer, onnx):
    options = layer.param.crop_param
    axes = list(range(layer.axis(options.axis), len(layer.shape)))
    offsets = list(options.offset) or [0]
    offsets = offsets * len(axes) if len(offsets) == 1 else offsets
    return onnx.slice(layer.bottom, offsets, [o + layer.top_shape[axis] for o, axis in zip(offsets, axes)], axes)


@writes("Tile")
def tile(layer, onnx):
    options = layer.param.tile_param
    repeats = [1] * len(layer.shape)
    repeats[layer.axis(options.axis)] = options.tiles
    return onnx.op("Tile", layer.bottom, onnx.integers(repeats))


@writes("BatchReindex")
def batch_reindex(layer, onnx):
    return onnx.op("Gather", layer.bottom, onnx.cast(layer.bottoms[1], np.int64), axis=0)


def _turn_around(layer, onnx, axes):
    last, least = [-1] * len(axes), [-INT_MAX] * len(axes)
    return onnx.slice(layer.bottom, last, least, axes, steps=last)


@writes("Flip")
def flip(layer, onnx):
    options = layer.param.flip_param
    return _turn_around(layer, onnx, [axis for axis, turns in ((2, options.flip_height), (3, options.flip_width)) if turns])


@writes("Reverse")
def reverse(layer, onnx):
    return _turn_around(layer, onnx, [layer.axis(layer.param.reverse_param.axis)])


def _rearrange(layer, onnx, shape, order):
    turned = onnx.op("Transpose", onnx.reshape(layer.bottom, shape), perm=order)
    return onnx.reshape(turned, layer.top_shape)


@writes("ShuffleChannel")
def shuffle_channel(layer, onnx):
    groups, (items, channels) = layer.param.shuffle_channel_param.group, layer.shape[:2]
    return _rearrange(layer, onnx, [items, groups, channels // groups, layer.count(2)], [0, 2, 1, 3])


@writes("Reorg")
def reorg(layer, onnx):
    options, (n, channels, h, w) = layer.param.reorg_param, layer.shape
    stride = options.stride
    c = channels // stride ** 2
    if options.reverse:
        return _rearrange(layer, onnx, [n, stride, stride, c, h, w], [0, 3, 4, 1, 5, 2])
    return _rearrange(layer, onnx, [n, c, h, stride, w, stride], [0, 3, 5, 1, 2, 4])


@writes("PixelShuffle")
def pixel_shuffle(layer, onnx):
    return onnx.op("DepthToSpace", layer.bottom, blocksize=layer.param.pixel_shuffle_param.upscale_factor, mode="CRD")


@writes("Parameter")
def parameter(layer, onnx):
    return layer.weight(onnx, 0)


@writes("Silence")
def silence(layer, onnx):
    return []

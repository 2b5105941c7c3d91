"""Adapts nets whose models take normalized images to the images of Caffe's data layers.

A model of PyTorch or Keras takes red, green and blue, scaled and normalized per channel. Caffe's data
layers provide blue, green and red from 0 to 255, minus a mean. The two differ by a factor per channel
and the order of channels, which are folded into the filters of the first convolutions. Their zero
padding stands for the mean in both cases.
"""
from typing import NamedTuple, Tuple

import numpy as np

from .._caffe import InvalidArgument, Unsupported


class Preprocessing(NamedTuple):
    """A model's input is (channel / range - mean) / deviation, for the channels red, green, blue."""
    range: float
    mean: Tuple[float, float, float]
    deviation: Tuple[float, float, float]


PREPROCESSINGS = {
    "torchvision": Preprocessing(255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "0..1": Preprocessing(255, (0, 0, 0), (1, 1, 1)),
    "-1..1": Preprocessing(255, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}


def take_pixels(net, definition, name):
    """Changes the filters of `net` and the model_info of `definition`, its NetParameter.

    name: one of PREPROCESSINGS. The net's input becomes blue, green and red from 0 to 255 minus
    model_info's mean_value. Raises InvalidArgument for another name and for a net that already has a
    mean, Unsupported if the input is not read by convolutions of three channels only.
    """
    if name not in PREPROCESSINGS:
        raise InvalidArgument(f"preprocessing is {name!r}; it must be one of {', '.join(PREPROCESSINGS)}")
    way, info = PREPROCESSINGS[name], definition.model_info
    if info.mean_value or info.HasField("mean") or info.HasField("scale"):
        raise InvalidArgument("the model's metadata tell its mean and scale; leave preprocessing out")
    if len(net.inputs) != 1 or len(net.blobs[net.inputs[0]].shape) != 4 or net.blobs[net.inputs[0]].shape[1] != 3:
        raise Unsupported(f"preprocessing is for one input of Nx3xHxW; the model has {', '.join(net.inputs)}")
    readers = [layer for layer in definition.layer if net.inputs[0] in layer.bottom]
    other = [layer for layer in readers if layer.type != "Convolution" or layer.convolution_param.group != 1]
    if other or not readers:
        raise Unsupported(f"preprocessing cannot go into layer '{other[0].name}' ({other[0].type}): the input must be read by "
                          "convolutions without groups alone" if other else "no layer reads the input")
    factors = 1 / (way.range * np.array(way.deviation))
    for layer in readers:
        filters = net.params[layer.name][0].data
        filters[...] = (filters * factors[:, None, None])[:, ::-1]
    info.mean_value.extend(np.float32(way.range * np.array(way.mean))[::-1])
    side = min(net.blobs[net.inputs[0]].shape[2:])
    info.resize.resize_mode = info.resize.FIT_SMALL_SIZE
    info.resize.height = info.resize.width = round(side / 0.875)  # 256 for 224, the usual ratio for testing these models

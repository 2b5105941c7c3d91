"""Pooling."""
from math import prod

import numpy as np

from ..._caffe import Unsupported
from ..layers.pooling import Windows
from .convolution import pads_of
from .registry import reads


def caffe_outputs(size, kernel, stride, pad, rounds_up):
    """Caffe's number of windows along an axis."""
    room = size + 2 * pad - kernel
    outputs = (-(-room // stride) if rounds_up else room // stride) + 1
    return outputs - 1 if pad and (outputs - 1) * stride >= size + pad else outputs


class _Geometry:
    def __init__(self, image, kernel, strides, begins, outputs):
        self.image, self.kernel, self.strides, self.begins, self.outputs = image, kernel, strides, begins, outputs

    def round_mode(self):
        """CEIL or FLOOR, whichever makes Caffe compute the same number of windows; None if neither does."""
        for mode in ("CEIL", "FLOOR"):
            counts = [caffe_outputs(size, k, s, p, mode == "CEIL")
                      for size, k, s, p in zip(self.image, self.kernel, self.strides, self.begins)]
            if counts == list(self.outputs):
                return mode
        return None

    def options(self, node, kind):
        node.require(len(self.image) == 2, f"pooling along {len(self.image)} axes")
        node.require(all(p < k for p, k in zip(self.begins, self.kernel)), "padding as wide as the window")
        mode = self.round_mode()
        node.require(mode is not None, f"{list(self.outputs)} windows of {self.kernel}, stride {self.strides}, padding "
                                       f"{self.begins} on {list(self.image)} pixels, of which Caffe has another number")
        names = {"pool": {"MAX": 0, "AVE": 1}[kind], "round_mode": None if mode == "CEIL" else 1}
        for name, (high, wide), default in (("kernel", self.kernel, None), ("stride", self.strides, 1), ("pad", self.begins, 0)):
            if high == wide:
                if high != default:
                    names["kernel_size" if name == "kernel" else name] = high
            else:
                names[f"{name}_h"], names[f"{name}_w"] = high, wide
        return names

    def windows(self):
        return Windows(list(self.image), list(self.kernel), list(self.strides), list(self.begins), list(self.outputs))


def _geometry_of(node):
    image, kernel = node.shape()[2:], list(node.get("kernel_shape"))
    strides = list(node.get("strides", [1] * len(kernel)))
    node.require(set(node.get("dilations", [1])) == {1}, "dilated windows")
    begins, ends = pads_of(node, len(kernel), image, kernel, strides)
    return _Geometry(list(image), kernel, strides, begins, node.top_shape[2:]), ends


@reads("MaxPool")
def max_pool(node):
    geometry, _ = _geometry_of(node)
    tops = node.outputs[:1]
    if len(node.outputs) > 1 and node.source.readers[node.outputs[1]]:
        tops = [tops[0], _mask(node)]
    node.layer("Pooling", tops=tops, pooling_param=geometry.options(node, "MAX"))


def _mask(node):
    """The float tensor of positions within planes, which our exporter computes from ONNX's indices."""
    def only(tensor, kind):
        reader = node.source.only_reader(tensor)
        node.require(reader is not None and reader.op_type == kind, "indices that are read")
        return reader

    remainder = only(node.outputs[1], "Mod")
    pixels = node.source.constants.get(remainder.input[1])
    node.require(pixels is not None and pixels.item() == prod(node.shape()[2:]), "indices that are read")
    mask = only(remainder.output[0], "Cast").output[0]
    node.importer.done.update([remainder.output[0], mask])
    return mask


@reads("AveragePool")
def average_pool(node):
    geometry, ends = _geometry_of(node)
    padded = [0] * len(ends) if not node.get("count_include_pad", 0) else [*geometry.begins]
    _average(node, geometry, node.inputs[0], _divisors(geometry, padded, ends if any(padded) else [0] * len(ends)))


def _divisors(geometry, begins, ends):
    """ONNX's divisors of the average, if these numbers of padding elements count."""
    result = np.ones([1] * len(begins))
    for axis, (size, k, s, p, n) in enumerate(zip(geometry.image, geometry.kernel, geometry.strides, geometry.begins,
                                                  geometry.outputs)):
        lengths = [min(i * s - p + k, size + ends[axis]) - max(i * s - p, -begins[axis]) for i in range(n)]
        result = result * np.reshape(lengths, [-1 if k == axis else 1 for k in range(len(begins))])
    return result


def _average(node, geometry, bottom, divisors):
    """Caffe's average pooling, corrected by the ratio of the divisors."""
    factors = geometry.windows().divisors() / divisors
    options = geometry.options(node, "AVE")
    if np.all(factors == 1):
        node.layer("Pooling", bottoms=[bottom], pooling_param=options)
        return
    between = node.scratch("pooled")
    node.layer("Pooling", bottoms=[bottom], tops=[between], pooling_param=options)
    node.layer("Scale", bottoms=[between], blobs=[factors], scale_param={"axis": 2, "num_axes": 2})


def pads_a_pooling(node, begins, ends, value):
    """Reads padding as our exporter writes it: before an average, which a correction may follow, or a maximum. False if this node is
    not of that kind."""
    axes = len(node.shape())
    follower = node.follower("AveragePool", "MaxPool")
    if follower is None or any(begins[:2] + ends[:2]) or min(begins + ends) < 0 or axes != 4:
        return False
    is_plain = not follower.get("ceil_mode", 0) and follower.get("auto_pad", "NOTSET") in ("NOTSET", "VALID")
    if not is_plain or any(follower.get("pads", [0])) or set(follower.get("dilations", [1])) != {1} \
            or any(map(node.is_read, follower.outputs[1:])):
        return False
    is_max = follower.operator == "MaxPool"
    if not (value <= np.finfo(np.float32).min if is_max else value == 0):
        return False
    geometry = _Geometry(list(node.shape()[2:]), list(follower.get("kernel_shape")),
                         list(follower.get("strides", [1] * (axes - 2))), begins[2:], follower.top_shape[2:])
    try:
        options = geometry.options(node, "MAX" if is_max else "AVE")
    except Unsupported:
        return False
    node.take_in(follower)
    if is_max:
        node.layer("Pooling", pooling_param=options)
        return True
    divisors = np.full([1] * (axes - 2), prod(geometry.kernel))
    correction = node.follower("Mul")
    factors = correction and next((correction.constant(k) for k in (0, 1) if correction.constant(k) is not None), None)
    if factors is not None and factors.shape == (1, 1, *geometry.outputs):
        node.take_in(correction)
        divisors = divisors / factors[0, 0]
        if np.allclose(divisors, geometry.windows().divisors()):
            divisors = geometry.windows().divisors()
    _average(node, geometry, node.inputs[0], divisors)
    return True


@reads("GlobalMaxPool")
def global_max_pool(node):
    _global(node, 0)


@reads("GlobalAveragePool")
def global_average_pool(node):
    _global(node, 1)


def _global(node, pool, tops=None):
    node.require(len(node.shape()) == 4, f"global pooling of shape {node.shape()}")
    node.layer("Pooling", tops=tops, pooling_param={"pool": pool, "global_pooling": True})


def axes_of(node):
    """The axes of a reduction, Squeeze or Unsqueeze: an attribute, or input 1."""
    axes = node.get("axes")
    if axes is None and node.has(1):
        axes = node.weights(1, "axes").tolist()
    return axes


@reads("ReduceMean", "ReduceSum", "ReduceL1", "ReduceSumSquare")
def reduce(node):
    axes = axes_of(node)
    count = len(node.shape())
    axes = sorted(axis % count for axis in (range(count) if axes is None else axes))
    if node.operator == "ReduceMean" and count == 4 and axes == [2, 3]:
        if node.get("keepdims", 1):
            _global(node, 1)
        else:
            between = node.scratch("pooled")
            _global(node, 1, [between])
            node.reshape(between, node.outputs[0], node.top_shape, keeps_items=True)
        return
    bottom, first = node.inputs[0], count - len(axes)
    if axes != list(range(first, count)):  # the layer Reduction reduces the last axes
        bottom = node.scratch("turned")
        node.layer("Permute", tops=[bottom], permute_param={"order": [axis for axis in range(count) if axis not in axes] + axes})
    is_last = not node.get("keepdims", 1)
    between = node.outputs[0] if is_last else node.scratch("reduced")
    operation = {"ReduceSum": 1, "ReduceL1": 2, "ReduceSumSquare": 3, "ReduceMean": 4}[node.operator]
    node.layer("Reduction", bottoms=[bottom], tops=[between], reduction_param={"operation": operation, "axis": first})
    if not is_last:
        node.reshape(between, node.outputs[0], node.top_shape, keeps_items=0 not in axes)

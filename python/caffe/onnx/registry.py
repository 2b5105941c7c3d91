"""Registers the functions that write layer types, and defines what such a function sees."""
from math import prod

from .._caffe import Unsupported

# Layers whose tops come from outside: they become inputs of the model.
SOURCES = {"AnnotatedData", "Data", "DenseImageData", "DummyData", "HDF5Data", "ImageData", "ImageLabelmapData", "ImageSegData",
           "Input", "MemoryData", "Tokens", "VideoData", "WindowData"}

_WRITERS = {}
_LEFT_OUT = {}
_REFUSED = {}


def writes(*types):
    """Registers a `function(layer, onnx)` that writes layers of these types and returns the tensors of their tops: a name,
    or a list of names. `onnx` is the Builder."""
    def register(function):
        _WRITERS.update(dict.fromkeys(types, function))
        return function
    return register


def left_out(*types, because):
    """Registers types that a model for inference omits."""
    _LEFT_OUT.update(dict.fromkeys(types, because))


def refused(*types, because):
    """Registers types that no model can have."""
    _REFUSED.update(dict.fromkeys(types, because))


def reason_refused(kind):
    """Why ONNX cannot express this type; None if no reason is known."""
    return _REFUSED.get(kind)


def writer_of(kind):
    return _WRITERS.get(kind)


def reason_left_out(kind):
    """Why layers of this type are omitted; None if they are not."""
    return _LEFT_OUT.get(kind)


def exported_types():
    return sorted(_WRITERS)


def _read_only(array):
    """Returns the net's own memory without a copy: weights may take half of the machine's memory."""
    array.flags.writeable = False
    return array


class LayerView:
    """One layer of a net as its writer sees it.

    name, type; param: its LayerParameter; bottoms: tensors that it reads; constants: for each bottom its array if it does not
    depend on the net's inputs, else None; shapes and top_shapes: tuples; blobs: arrays of its parameters; tops: names of
    its blobs; request: the options of export().
    """

    def __init__(self, net, index, bottoms, constants, request):
        self.bottoms, self.constants, self.request = bottoms, constants, request
        self.reason_left_out = None
        layer = net.layers[index]
        self.type, self.param = layer.type, layer.layer_param
        self.name = self.param.name or f"layer{index}"
        self.shapes = [tuple(net.blobs[name].shape) for name in self.param.bottom]
        self.tops = list(self.param.top)
        self.top_shapes = [tuple(net.blobs[name].shape) for name in self.tops]
        self.blobs = [_read_only(blob.data) for blob in layer.blobs]

    @property
    def bottom(self):
        """The only tensor that it reads, or the first one."""
        return self.bottoms[0]

    @property
    def shape(self):
        return self.shapes[0]

    @property
    def top_shape(self):
        return self.top_shapes[0]

    def axis(self, axis, bottom=0):
        """An axis of a bottom as a non-negative index."""
        axes = len(self.shapes[bottom])
        return axis + axes if axis < 0 else axis

    def count(self, begin=0, end=None):
        """Product of the bottom's extents from axis `begin` to `end`."""
        return prod(self.shape[begin:end])

    def weight(self, onnx, index, array=None):
        """The tensor of parameter `index`, or of `array` instead, named as in Cortado's plans: conv1.0."""
        return onnx.weight(self.blobs[index] if array is None else array, f"{self.name}.{index}")

    def leave_out(self, reason):
        """Makes the layer's bottoms outputs of the model instead of its tops."""
        self.reason_left_out = reason

    def require_opset(self, onnx, least, what):
        if onnx.opset < least:
            self.refuse(f"{what} needs opset {least}; the model has opset {onnx.opset}")

    def refuse(self, reason):
        raise Unsupported(f"layer '{self.name}' ({self.type}): {reason}")

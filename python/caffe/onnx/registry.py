"""Which function writes which layer type, and what such a function sees."""
from math import prod

from .._caffe import Unsupported

# Layers whose tops come from outside: inputs of the model.
SOURCES = {"AnnotatedData", "Data", "DenseImageData", "DummyData", "HDF5Data", "ImageData", "ImageLabelmapData", "ImageSegData",
           "Input", "MemoryData", "VideoData", "WindowData"}

_WRITERS = {}
_LEFT_OUT = {}
_REFUSED = {}


def writes(*types):
    """Decorator of `function(layer, onnx)` that writes layers of these types and returns the tensors of their tops: a name,
    or a list of names. `onnx` is the Builder."""
    def register(function):
        _WRITERS.update(dict.fromkeys(types, function))
        return function
    return register


def left_out(*types, because):
    """Layers of these types are not part of a model for inference."""
    _LEFT_OUT.update(dict.fromkeys(types, because))


def refused(*types, because):
    """No model can have layers of these types."""
    _REFUSED.update(dict.fromkeys(types, because))


def reason_refused(kind):
    """Why ONNX cannot express this type; None where nothing is known of it."""
    return _REFUSED.get(kind)


def writer_of(kind):
    return _WRITERS.get(kind)


def reason_left_out(kind):
    """Why layers of this type are left out; None where they are not."""
    return _LEFT_OUT.get(kind)


def exported_types():
    return sorted(_WRITERS)


def _read_only(array):
    """The net's own memory: weights may be as large as half of the machine's."""
    array.flags.writeable = False
    return array


class LayerView:
    """One layer of a net as its writer sees it.

    name, type; param: its LayerParameter; bottoms: tensors that it reads; constants: for each of them an array where it does
    not depend on the net's inputs, else None; shapes and top_shapes: tuples; blobs: arrays of its parameters; tops: names of
    its blobs; request: what the caller of export() asked for.
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
        """The only tensor that it reads, or the first."""
        return self.bottoms[0]

    @property
    def shape(self):
        return self.shapes[0]

    @property
    def top_shape(self):
        return self.top_shapes[0]

    def axis(self, axis, bottom=0):
        """An axis of a bottom, counted from the front."""
        axes = len(self.shapes[bottom])
        return axis + axes if axis < 0 else axis

    def count(self, begin=0, end=None):
        """Elements in some axes of the bottom."""
        return prod(self.shape[begin:end])

    def weight(self, onnx, index, array=None):
        """The tensor of parameter `index`, or of `array` in its place, named as in Cortado's plans: conv1.0."""
        return onnx.weight(self.blobs[index] if array is None else array, f"{self.name}.{index}")

    def leave_out(self, reason):
        """The layer's bottoms become outputs of the model in the place of its tops."""
        self.reason_left_out = reason

    def refuse(self, reason):
        raise Unsupported(f"layer '{self.name}' ({self.type}): {reason}")

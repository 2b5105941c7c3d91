"""Runs a single layer without a net, with NVCaffe's names: create_layer, LayerParameter, LayerBase."""
from google.protobuf import text_format

from ._caffe import InvalidArgument
from .proto import caffe_pb2
from .pycaffe import Net


class LayerParameter:
    """A layer's definition. message: a caffe_pb2.LayerParameter, its text, or None for an empty
    definition."""

    def __init__(self, message=None):
        self._message = caffe_pb2.LayerParameter()
        if message is not None:
            self.from_python(message)

    def from_python(self, message):
        """Replaces the definition by a caffe_pb2.LayerParameter, or its text. Raises InvalidArgument for a
        malformed text."""
        if isinstance(message, str):
            try:
                message = text_format.Parse(message, caffe_pb2.LayerParameter())
            except text_format.ParseError as error:
                raise InvalidArgument(f"LayerParameter: {error}") from error
        self._message.CopyFrom(message)

    def to_python(self):
        """A copy of the definition as a caffe_pb2.LayerParameter."""
        return caffe_pb2.LayerParameter.FromString(self._message.SerializePartialToString())


class LayerBase:
    """A layer that runs by itself, on lists of caffe.Blob from the caller. It may reshape and write all of
    these blobs.

    Call SetUp first, then Forward and Backward as often as needed. The definition's bottoms and tops
    are ignored.
    """

    def __init__(self, param):
        message = param.to_python() if isinstance(param, LayerParameter) else param
        self._param = caffe_pb2.LayerParameter()
        self._param.CopyFrom(message)
        for field in ("bottom", "top", "include", "exclude", "propagate_down"):
            self._param.ClearField(field)
        self._net = None

    @property
    def type(self):
        """The layer's type."""
        return self._param.type

    @property
    def blobs(self):
        """The parameters: a BlobVec, empty before SetUp and for layers without parameters."""
        return () if self._net is None else self._net.params.get(self._param.name, ())

    def SetUp(self, bottom, top):
        """Makes the parameters and shapes the tops. Raises InvalidArgument if the numbers of blobs or their
        shapes do not fit."""
        definition = caffe_pb2.NetParameter(name=self._param.name, force_backward=True)
        names = [f"bottom{i}" for i in range(len(bottom))]
        for name, blob in zip(names, bottom):
            data = definition.layer.add(name=name, type="Input", top=[name])
            data.input_param.shape.add().dim.extend(blob.shape)
        layer = definition.layer.add()
        layer.CopyFrom(self._param)
        layer.bottom.extend(names)
        layer.top.extend(f"top{i}" for i in range(len(top)))
        self._net = Net(definition, self._param.phase)
        self._shape(top)

    def Reshape(self, bottom, top):
        """Shapes the tops for the bottoms' shapes."""
        net = self._ready()
        for i, blob in enumerate(bottom):
            if net.blobs[f"bottom{i}"].shape != blob.shape:
                net.blobs[f"bottom{i}"].reshape(*blob.shape)
        net.reshape()
        self._shape(top)

    def Forward(self, bottom, top):
        """Computes the tops; returns the loss (0 for layers that are not a loss)."""
        net = self._ready()
        self.Reshape(bottom, top)
        for i, blob in enumerate(bottom):
            net.blobs[f"bottom{i}"].data[...] = blob.data
        loss = net._forward(0, len(bottom))
        self._shape(top)  # for layers whose shapes depend on data
        for i, blob in enumerate(top):
            blob.data[...] = net.blobs[f"top{i}"].data
        return loss

    def Backward(self, top, propagate_down, bottom):
        """Propagates the tops' diffs to the bottoms selected by propagate_down (a list of bool). Gradients of
        the parameters are added to their diffs. Needs Forward first."""
        net = self._ready()
        for i, blob in enumerate(top):
            net.blobs[f"top{i}"].diff[...] = blob.diff
        net._backward(len(bottom), 0)
        for i, blob in enumerate(bottom):
            if propagate_down[i]:
                blob.diff[...] = net.blobs[f"bottom{i}"].diff

    def _ready(self):
        if self._net is None:
            raise InvalidArgument(f"layer '{self._param.name}' ({self.type}) is not set up; call SetUp(bottom, top) first")
        return self._net

    def _shape(self, top):
        for i, blob in enumerate(top):
            if blob.shape != self._net.blobs[f"top{i}"].shape:
                blob.reshape(*self._net.blobs[f"top{i}"].shape)


def create_layer(layer_param):
    """A layer that runs by itself, from a LayerParameter (of this module or of caffe_pb2)."""
    return LayerBase(layer_param)

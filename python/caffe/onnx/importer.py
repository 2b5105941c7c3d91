"""Converts an ONNX model for inference to a prototxt and its weights."""
import os
from dataclasses import dataclass, field

import numpy as np

from .._caffe import InvalidArgument, Net, Unsupported
from .._output import mark_of, require_place
from ..proto import caffe_pb2
from . import metadata
from . import nodes  # noqa: F401  (registers the readers)
from .check import Mismatch
from .decisions import Decisions, tops_that_decide
from .model import Model, load
from .names import Names
from .pixels import take_pixels
from .nodes.registry import NodeView, reader_of


@dataclass
class Import:
    """The result of import_model(): net, a caffe.Net of phase TEST with the weights; definition, its NetParameter without
    them; differences of its outputs from onnxruntime's, relative to the largest number."""
    net: object
    definition: object
    differences: dict = field(default_factory=dict)


def import_model(model, prototxt=None, weights=None, *, shapes=None, tolerance=1e-4, preprocessing=None):
    """Makes a net for inference from an ONNX model, and compares both.

    model: a file, or an onnx.ModelProto. prototxt, weights: where to write the net and its
    .caffemodel; None writes no file. shapes: of inputs without a fixed shape in the model, by name.
    tolerance: largest difference of an output from onnxruntime's, relative to its largest number.
    preprocessing: the image preprocessing that the model expects, a name of pixels.PREPROCESSINGS;
    after the comparison the net is changed to take images as Caffe's data layers give them
    (pixels.take_pixels).

    Returns an Import. Raises Unsupported, with the names of all nodes that no layer can express;
    InvalidArgument if a shape is missing; and Mismatch if the comparison fails. In these cases no file
    is written.
    """
    if not tolerance >= 0:  # also rejects NaN
        raise InvalidArgument(f"tolerance is {tolerance:g}; it must be a number from 0 up")
    for file in (prototxt, weights):
        if file is not None:
            require_place(file)
    proto = load(model) if isinstance(model, (str, bytes, os.PathLike)) else model
    source = Model(proto, shapes)
    definition, arrays = _Importer(source).run()
    net = Net(definition, caffe_pb2.TEST)
    for name, blobs in arrays.items():
        for blob, array in zip(net.params[name], blobs):
            if np.size(array) != blob.count:
                raise Unsupported(f"cannot import layer '{name}': the model's weights have shape {np.shape(array)}, the layer's "
                                  f"{tuple(blob.shape)}")
            blob.data[...] = np.reshape(array, blob.shape)
    found = _differences(net, source, tolerance)
    wrong = [f"{name}: {difference.text}" for name, difference in found.items() if not difference.relative <= tolerance]
    if wrong:
        raise Mismatch(f"the net's outputs differ from onnxruntime's by more than {tolerance:g} of the largest number; "
                       f"{'; '.join(wrong)}. Allow more where a deep model rounds (--tolerance)")
    if preprocessing is not None:
        take_pixels(net, definition, preprocessing)
    result = Import(net, definition, {name: difference.relative for name, difference in found.items()})
    if prototxt is not None:
        _write(os.fspath(prototxt), mark_of("caffe import").decode() + str(definition))
    if weights is not None:
        net.save(weights)
    return result


def _differences(net, source, tolerance):
    """Differences of the outputs, by name."""
    for name, array in source.drawn.items():
        if name in net.blobs:
            net.blobs[name].data[...] = array
    decisions = Decisions(tops_that_decide(net, source.arrays), tolerance)
    decisions.forward(net)
    return decisions.compare_outputs(net, {name: name for name in source.outputs}, source.arrays)


def _write(file, text):
    partial = f"{file}.partial"
    with open(partial, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(partial, file)


class _Importer:
    """Writes one or several layers for each node that depends on the inputs."""

    def __init__(self, source):
        self.source = source
        self.net = caffe_pb2.NetParameter(name=source.proto.graph.name)
        self.arrays = {}  # layer -> parameters
        self.aliases = {}  # tensor -> the equal tensor that replaces it
        self.done = set()  # outputs of nodes that were merged into a layer of an earlier node
        self.layer_name = Names("_").take

    def run(self):
        for name, shape in self.source.inputs.items():
            layer = self.net.layer.add(name=self.layer_name(name), type="Input", top=[name])
            layer.input_param.shape.add().dim.extend(shape)
        refused = []
        for node in self.source.nodes:
            if all(name in self.source.constants or name in self.done for name in node.output if name):
                continue
            reader = reader_of(node.op_type)
            try:
                if reader is None:
                    raise Unsupported(f"there is no layer for {node.op_type}")
                reader(NodeView(node, self))
            except Unsupported as error:
                refused.append(f"{_title(node)}: {error}")
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # for invalid inputs or options
                refused.append(f"{_title(node)}: it is not as ONNX has it: {error}")
        if refused:
            raise Unsupported("cannot import " + "; ".join(refused))
        self.keep_outputs()
        info = metadata.take(self.source.proto)
        if info.ByteSize() > 0:
            self.net.model_info.CopyFrom(info)
        return self.net, self.arrays

    def keep_outputs(self):
        """Makes sure that outputs are blobs with the outputs' names."""
        for name in self.source.outputs:
            if name in self.source.constants:
                array = self.source.constants[name]
                layer = self.net.layer.add(name=self.layer_name(name), type="Parameter", top=[name])
                layer.parameter_param.shape.dim.extend(array.shape)
                self.arrays[layer.name] = [array]
            elif self.blob(name) != name:
                self.net.layer.add(name=self.layer_name(name), type="Split", bottom=[self.blob(name)], top=[name])

    def blob(self, tensor):
        while tensor in self.aliases:
            tensor = self.aliases[tensor]
        return tensor

    def add(self, node, kind, bottoms, tops, blobs=(), **options):
        """Appends a layer. options: messages by field, convolution_param={"num_output": 3}; blobs: arrays."""
        layer = self.net.layer.add(name=self.layer_name(_stem(node)), type=kind, bottom=[self.blob(name) for name in bottoms],
                                   top=tops)
        for message, values in options.items():
            for name, value in values.items():
                if isinstance(value, (list, tuple)):
                    getattr(getattr(layer, message), name).extend(value)
                elif value is not None:
                    setattr(getattr(layer, message), name, value)
            getattr(layer, message).SetInParent()
        if blobs:
            self.arrays[layer.name] = list(blobs)
        return layer


def _title(node):
    return f"node '{node.name or node.output[0]}' ({node.op_type})"


def _stem(node):
    """"conv1" for "conv1:Conv", the exporter's form of node names; else the node's name, or that of its output."""
    name = node.name or node.output[0]
    return name.rsplit(":", 1)[0] if name.endswith(f":{node.op_type}") else name.strip("/").replace("/", "_")

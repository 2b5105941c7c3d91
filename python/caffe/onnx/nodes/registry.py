"""Registers the functions that read ONNX operators, and defines what such a function sees."""
import numpy as np
from onnx import helper

from ..._caffe import Unsupported

_READERS = {}


def reads(*operators):
    """Registers a `function(node)` that writes the layers for nodes of these operators; node is a NodeView."""
    def register(function):
        _READERS.update(dict.fromkeys(operators, function))
        return function
    return register


def reader_of(operator):
    return _READERS.get(operator)


def imported_operators():
    return sorted(_READERS)


class NodeView:
    """One node of a model, and the net under construction."""

    def __init__(self, node, importer):
        self.node, self.importer, self.source = node, importer, importer.source
        self.operator = node.op_type
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}

    def get(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def is_read(self, name):
        """True if a node reads the tensor, or if it is an output of the model."""
        return name != "" and (name in self.source.readers or name in self.source.outputs)

    def has(self, index):
        """True if an optional input is present."""
        return index < len(self.inputs) and self.inputs[index] != ""

    def constant(self, index):
        """The array of an input; None if it is missing or depends on the model's inputs."""
        return self.source.constants.get(self.inputs[index]) if self.has(index) else None

    def weights(self, index, what):
        array = self.constant(index)
        if array is None:
            raise Unsupported(f"its {what} are not constant")
        return array

    def shape(self, index=0):
        return self.source.shape(self.inputs[index])

    @property
    def top_shape(self):
        return self.source.shape(self.outputs[0])

    def axis(self, axis):
        return axis + len(self.shape()) if axis < 0 else axis

    def require(self, holds, reason):
        if not holds:
            raise Unsupported(reason)

    def layer(self, kind, bottoms=None, tops=None, blobs=(), **options):
        """Appends a layer, by default from input 0 to output 0."""
        bottoms = [self.inputs[0]] if bottoms is None else bottoms
        return self.importer.add(self.node, kind, bottoms, self.outputs[:1] if tops is None else tops, blobs, **options)

    def blob_of(self, index):
        """Input `index` as a blob; for a constant, adds a layer that holds it."""
        array = self.constant(index)
        return self.inputs[index] if array is None else self.hold(array, f"constant{index}")

    def hold(self, array, suffix="constant"):
        """The blob of a new layer that holds an array; a single number has an axis."""
        array = np.atleast_1d(array)
        name = self.scratch(suffix)
        layer = self.importer.add(self.node, "Parameter", [], [name], [array])
        layer.parameter_param.shape.dim.extend(array.shape)
        layer.param.add(lr_mult=0, decay_mult=0)  # not trained
        return name

    def pick(self, bottom, top, axis, places):
        """Copies the elements at these positions of an axis; there must be one at least."""
        held = self.hold(np.asarray(places), f"places{axis}")
        self.layer("Gather", bottoms=[bottom, held], tops=[top], gather_param={"axis": axis})

    def scratch(self, suffix):
        """A name for a blob that is not in the model."""
        return f"{next(name for name in self.outputs if name)}_{suffix}"

    def alias(self, tensor=None):
        """Makes output 0 an alias of input 0, or of another tensor."""
        self.importer.aliases[self.outputs[0]] = self.inputs[0] if tensor is None else tensor

    def reshape(self, bottom, top, shape, keeps_items=False):
        """Reshapes a blob. If the first axis is unchanged, as it is with keeps_items, the layer supports other batch sizes."""
        first = self.source.arrays[self.inputs[0]].shape[:1] == tuple(shape[:1]) and len(shape) > 1
        dims = [0, *shape[1:]] if first and (keeps_items or bottom == self.inputs[0]) else list(shape)
        self.set_shape(bottom, top, dims)

    def set_shape(self, bottom, top, dims):
        """Reshapes a blob to these dims. One may be -1, to be inferred."""
        self.layer("Reshape", bottoms=[bottom], tops=[top]).reshape_param.shape.dim.extend(dims)

    def source_node(self, tensor):
        """The node that computes a tensor, or None."""
        return self.source.writers.get(tensor)

    def is_scaled(self, tensor, x):
        """The constant c if `tensor` is c times x; else 0."""
        writer = self.source_node(tensor)
        if writer is None or writer.op_type != "Mul" or x not in writer.input:
            return 0
        other = next((name for name in writer.input if name != x), None)
        array = self.source.constants.get(other)
        return float(array.item()) if array is not None and array.size == 1 else 0

    def replace_last(self, kind, top, new_kind, bottom):
        """Turns the layer of type `kind` that computes `top` into one of another type that computes output 0."""
        layer = next(layer for layer in self.importer.net.layer if list(layer.top) == [top] and layer.type == kind)
        layer.type = new_kind
        layer.bottom[:] = [self.importer.blob(bottom)]
        layer.top[:] = [self.outputs[0]]

    def follower(self, *operators):
        """The only reader of output 0, as a NodeView, if it is one of these operators; else None."""
        reader = self.source.only_reader(self.outputs[0])
        return NodeView(reader, self.importer) if reader is not None and reader.op_type in operators else None

    def take_in(self, follower):
        """Merges a later node into this one: output 0 becomes the follower's output."""
        self.importer.done.update(follower.outputs)
        self.outputs = follower.outputs

"""Builder: an ONNX graph under construction."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .names import Names

INT_MAX = np.iinfo(np.int64).max

_SMALL = 4096  # elements of a weight that may be a shape or a list of axes

# Operators whose list of axes was an attribute before the opset named here, and is an input from it on.
_AXES_AS_INPUT_SINCE = {"ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13, "ReduceMax": 18, "ReduceMean": 18, "ReduceMin": 18,
                        "ReduceL1": 18, "ReduceL2": 18, "ReduceSumSquare": 18}


class Builder:
    """Nodes, weights and the names of tensors. Tensors are their names (str); names are made here and are unique.

    opset: the version of ONNX's operators that the model asks for. A writer of a layer that has a better form in a newer
    one compares it.
    """

    def __init__(self, opset):
        self.opset = opset
        self.nodes = []
        self.weights = {}  # arrays by name
        self._names = Names("/")
        self._constants = {}  # names by type, shape and bytes
        self.layer = ""  # whose nodes are being written
        self.layers = {}  # by the names of the nodes
        self.varying = set()  # tensors whose axis 0 is as long as the data has it

    def name(self, wanted):
        """`wanted`, or the same with a number where that is taken."""
        return self._names.take(wanted)

    def reserve(self, name):
        """Keeps a name for a tensor that gets it at the end."""
        self._names.take(name)

    def weight(self, array, name):
        """A tensor of the model's weights, kept under this name."""
        name = self.name(name)
        self.weights[name] = np.asarray(array, order="C")  # np.ascontiguousarray would give a number an axis
        return name

    def constant(self, values, dtype=np.float32):
        """A small tensor; equal ones are one."""
        array = np.asarray(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(array, f"{self.layer}/constant")
        return self._constants[key]

    def integers(self, values):
        return self.constant(values, np.int64)

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Appends a node of the present layer; the tensor that it makes, or a list of `outputs` tensors.

        An input that is None is left out. Attributes that are None are not written.
        """
        names = [self.name(f"{self.layer}/{kind}") for _ in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(kind, [name or "" for name in inputs], names, self.name(f"{self.layer}:{kind}"), **attributes)
        self.layers[node.name] = self.layer
        if self.varying.intersection(inputs):
            self.varying.update(names)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    # Operators whose form depends on the opset, and what many layers need.

    def over_axes(self, kind, tensor, axes, **attributes):
        """A reduction, Squeeze or Unsqueeze along `axes`."""
        if self.opset >= _AXES_AS_INPUT_SINCE[kind]:
            return self.op(kind, tensor, self.integers(list(axes)), **attributes)
        return self.op(kind, tensor, axes=list(axes), **attributes)

    def reshape(self, tensor, shape):
        """Axis 0 takes what the others leave where its length varies."""
        return self.op("Reshape", tensor, self.integers([-1, *shape[1:]] if tensor in self.varying else shape))

    def where(self, condition, tensor, other):
        """`other` may be a number."""
        return self.op("Where", condition, tensor, other if isinstance(other, str) else self.constant(other))

    def cast(self, tensor, dtype):
        return self.op("Cast", tensor, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def scaled(self, tensor, factor=1.0, shift=0.0):
        """factor * tensor + shift, without operations that change nothing."""
        if factor != 1:
            tensor = self.op("Mul", tensor, self.constant(factor))
        return self.op("Add", tensor, self.constant(shift)) if shift != 0 else tensor

    def clip(self, tensor, least=None, most=None):
        bounds = [None if bound is None else self.constant(bound) for bound in (least, most)]
        return self.op("Clip", tensor, *bounds)

    def split(self, tensor, axis, sizes):
        """Parts of these sizes along an axis."""
        if len(sizes) == 1:
            return [tensor]
        if self.opset >= 13:
            return self.op("Split", tensor, self.integers(sizes), outputs=len(sizes), axis=axis)
        return self.op("Split", tensor, outputs=len(sizes), axis=axis, split=list(sizes))

    def slice(self, tensor, starts, ends, axes, steps=None):
        indices = [self.integers(numbers) for numbers in (starts, ends, axes)]
        return self.op("Slice", tensor, *indices, *([self.integers(steps)] if steps else []))

    def pad(self, tensor, begins, ends, value=0.0):
        """With a number for each axis at its begin and at its end; nothing where all are 0."""
        if not any([*begins, *ends]):
            return tensor
        return self.op("Pad", tensor, self.integers([*begins, *ends]), self.constant(value), mode="constant")

    def softmax(self, tensor, axis, shape):
        """Along one axis of a tensor of that shape. Before opset 13 Softmax ran over all axes from `axis` on."""
        if self.opset >= 13 or all(extent == 1 for extent in shape[axis + 1:]):
            return self.op("Softmax", tensor, axis=axis)
        order = [k for k in range(len(shape)) if k != axis] + [axis]
        turned = self.op("Softmax", self.op("Transpose", tensor, perm=order), axis=len(shape) - 1)
        return self.op("Transpose", turned, perm=[order.index(k) for k in range(len(shape))])

    # The model.

    def rename(self, names, first=0):
        """Gives tensors of the nodes from `first` on other names: a dict, old to new. The new ones must not be in use."""
        for node in self.nodes[first:]:
            for tensors in (node.input, node.output):
                tensors[:] = [names.get(name, name) for name in tensors]

    def drop_unread(self, outputs):
        """Leaves out nodes and weights that no output depends on."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(node.input)
        self.nodes = kept[::-1]
        self.weights = {name: array for name, array in self.weights.items() if name in needed}

    def skeleton(self, inputs):
        """A model without outputs, whose large weights are inputs: for what follows from shapes alone."""
        small = {name: array for name, array in self.weights.items() if array.size <= _SMALL}
        large = {name: array.shape for name, array in self.weights.items() if name not in small}
        graph = helper.make_graph(self.nodes, "net", _describe({**inputs, **large}), [], _tensors(small))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])

    def model(self, name, inputs, outputs, producer_version):
        """Without the weights. inputs, outputs: shapes by name, in order; a shape is a tuple, or None where it depends on the
        data."""
        graph = helper.make_graph(self.nodes, name or "net", _describe(inputs), _describe(outputs))
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets),
                                 producer_name="cortado", producer_version=producer_version)


def _describe(tensors):
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in tensors.items()]


def _tensors(arrays):
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def newest_opset():
    """The newest opset that the installed package onnx knows and has released."""
    return onnx.defs.onnx_opset_version()

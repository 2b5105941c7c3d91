"""Builder: an ONNX graph under construction."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .names import Names

INT_MAX = np.iinfo(np.int64).max

_PRODUCER = "cortado"
PRODUCER_MARK = b"\x12" + bytes([len(_PRODUCER)]) + _PRODUCER.encode()  # field producer_name, near the beginning of the file

_SMALL = 4096  # larger weights cannot be shapes or lists of axes

# Opsets from which an operator takes its axes as an input; before, they are an attribute.
_AXES_AS_INPUT_SINCE = {"ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13, "ReduceMax": 18, "ReduceMean": 18, "ReduceMin": 18,
                        "ReduceL1": 18, "ReduceL2": 18, "ReduceSumSquare": 18}


class Builder:
    """Collects nodes, weights and tensor names. A tensor is represented by its name (str), which is unique.

    opset: the version of ONNX's operators that the model requires. Writers of layers compare it to choose between forms
    of an operator.
    """

    def __init__(self, opset):
        self.opset = opset
        self.nodes = []
        self.weights = {}  # name -> array
        self._names = Names("/")
        self._constants = {}  # (type, shape, bytes) -> name
        self.layer = ""  # name of the layer that is being written
        self.layers = {}  # node name -> layer name
        self.varying = set()  # tensors whose length along axis 0 depends on the data

    def name(self, wanted):
        """`wanted`, with a number appended if the name is taken."""
        return self._names.take(wanted)

    def reserve(self, name):
        """Reserves a name for a tensor that gets it at the end."""
        self._names.take(name)

    def weight(self, array, name):
        """Adds a tensor to the model's weights, under this name or a similar one."""
        name = self.name(name)
        self.weights[name] = np.asarray(array, order="C")  # np.ascontiguousarray would give a scalar an axis
        return name

    def constant(self, values, dtype=np.float32):
        """A small constant tensor; equal ones are shared."""
        array = np.asarray(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(array, f"{self.layer}/constant")
        return self._constants[key]

    def integers(self, values):
        return self.constant(values, np.int64)

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Appends a node of the current layer. Returns its output tensor, or a list if `outputs` is not 1.

        Inputs that are None are omitted optional inputs. Attributes that are None are not written.
        """
        names = [self.name(f"{self.layer}/{kind}") for _ in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(kind, [name or "" for name in inputs], names, self.name(f"{self.layer}:{kind}"), **attributes)
        self.layers[node.name] = self.layer
        if self.varying.intersection(inputs):
            self.varying.update(names)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    # Helpers that many layers need, and operators whose form depends on the opset.

    def over_axes(self, kind, tensor, axes, **attributes):
        """A reduction, Squeeze or Unsqueeze along `axes`."""
        if self.opset >= _AXES_AS_INPUT_SINCE[kind]:
            return self.op(kind, tensor, self.integers(list(axes)), **attributes)
        return self.op(kind, tensor, axes=list(axes), **attributes)

    def reshape(self, tensor, shape):
        """Reshapes; if the tensor's axis 0 varies, its length is inferred from the rest."""
        return self.op("Reshape", tensor, self.integers([-1, *shape[1:]] if tensor in self.varying else shape))

    def where(self, condition, tensor, other):
        """Selects elements by `condition`; `other` may be a number."""
        return self.op("Where", condition, tensor, other if isinstance(other, str) else self.constant(other))

    def cast(self, tensor, dtype):
        return self.op("Cast", tensor, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def scaled(self, tensor, factor=1.0, shift=0.0):
        """factor * tensor + shift, omitting operations without effect."""
        if factor != 1:
            tensor = self.op("Mul", tensor, self.constant(factor))
        return self.op("Add", tensor, self.constant(shift)) if shift != 0 else tensor

    def clip(self, tensor, least=None, most=None):
        bounds = [None if bound is None else self.constant(bound) for bound in (least, most)]
        return self.op("Clip", tensor, *bounds)

    def split(self, tensor, axis, sizes):
        """Splits a tensor into parts of these sizes along an axis."""
        if len(sizes) == 1:
            return [tensor]
        if self.opset >= 13:
            return self.op("Split", tensor, self.integers(sizes), outputs=len(sizes), axis=axis)
        return self.op("Split", tensor, outputs=len(sizes), axis=axis, split=list(sizes))

    def slice(self, tensor, starts, ends, axes, steps=None):
        indices = [self.integers(numbers) for numbers in (starts, ends, axes)]
        return self.op("Slice", tensor, *indices, *([self.integers(steps)] if steps else []))

    def pad(self, tensor, begins, ends, value=0.0):
        """Pads each axis by the given amounts at its beginning and end; no node if all are 0."""
        if not any([*begins, *ends]):
            return tensor
        return self.op("Pad", tensor, self.integers([*begins, *ends]), self.constant(value), mode="constant")

    def softmax(self, tensor, axis, shape, kind="Softmax"):
        """Softmax or LogSoftmax along one axis of a tensor of this shape. Before opset 13 ONNX normalizes over all axes from `axis` on."""
        if self.opset >= 13 or all(extent == 1 for extent in shape[axis + 1:]):
            return self.op(kind, tensor, axis=axis)
        order = [k for k in range(len(shape)) if k != axis] + [axis]
        turned = self.op(kind, self.op("Transpose", tensor, perm=order), axis=len(shape) - 1)
        return self.op("Transpose", turned, perm=[order.index(k) for k in range(len(shape))])

    # The model.

    def rename(self, names, first=0):
        """Renames tensors of the nodes from `first` on; names: a dict, old to new. The new names must be unused."""
        for node in self.nodes[first:]:
            for tensors in (node.input, node.output):
                tensors[:] = [names.get(name, name) for name in tensors]

    def drop_unread(self, outputs):
        """Removes nodes and weights that no output depends on."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(node.input)
        self.nodes = kept[::-1]
        self.weights = {name: array for name, array in self.weights.items() if name in needed}

    def skeleton(self, inputs):
        """A model without outputs whose large weights are inputs, for shape inference."""
        small = {name: array for name, array in self.weights.items() if array.size <= _SMALL}
        large = {name: array.shape for name, array in self.weights.items() if name not in small}
        graph = helper.make_graph(self.nodes, "net", _describe({**inputs, **large}), [], _tensors(small))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])

    def model(self, name, inputs, outputs, producer_version):
        """The model without its weights. inputs, outputs: shapes by name, in order; a shape is a tuple, or None if it depends on
        the data."""
        graph = helper.make_graph(self.nodes, name or "net", _describe(inputs), _describe(outputs))
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets),
                                 producer_name=_PRODUCER, producer_version=producer_version)


def _describe(tensors):
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in tensors.items()]


def _tensors(arrays):
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def newest_opset():
    """The newest released opset that the installed package onnx supports."""
    return onnx.defs.onnx_opset_version()

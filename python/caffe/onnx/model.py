"""An ONNX model prepared for the importer: static shapes, known constants, readers of each tensor."""
import os
from collections import defaultdict
from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

from .._caffe import InvalidArgument, IoError
from .external import external_tensors, load_external, require_texts
from .sandbox import run

LARGEST_INPUT = 1 << 28  # limit for the number of elements of an input

_SAME_ELEMENTS = {"Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


def load(file):
    """The model in a file. External weights must be in the same folder."""
    file = os.fspath(file)
    try:
        proto = onnx.load(file, load_external_data=False)
        require_texts(proto)
        load_external(proto, file)
        return proto
    except InvalidArgument:
        raise
    except OSError as error:
        raise IoError(f"{file}: {error.strerror or error}") from None
    except Exception as error:  # exceptions of protobuf and onnx
        raise InvalidArgument(f"{file} is not an ONNX model: {error}") from None


class Model:
    """inputs: shapes by input; inputs without a fixed shape in the model must be in `shapes`.

    arrays: the value of each tensor for random inputs. constants: arrays of tensors that do not depend on the inputs.
    """

    def __init__(self, proto, shapes):
        self.proto = onnx.ModelProto()
        self.proto.CopyFrom(proto)
        graph = self.proto.graph
        if external_tensors(proto):
            raise InvalidArgument("weights of the model lie in other files; give the file of the model")
        if graph.sparse_initializer:
            raise InvalidArgument("the model has sparse weights")
        self.weights = {tensor.name: _array_of(tensor) for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in self.weights]
        names = [value.name for value in inputs]
        unknown = set(shapes or {}) - set(names)
        if unknown:
            raise InvalidArgument(f"the model has no input {', '.join(sorted(unknown))}; its inputs: {', '.join(names)}")
        self.inputs = {value.name: self._shape_of(value, shapes) for value in inputs}
        self.outputs = [value.name for value in graph.output]
        self.nodes = list(graph.node)
        self.arrays = {**self.weights, **self._run_all()}
        self.constants = dict(self.weights)
        for node in self.nodes:
            if node.op_type == "Shape" or all(name in self.constants for name in node.input if name):
                self.constants.update({name: self.arrays[name] for name in node.output if name})
        self.writers = {name: node for node in self.nodes for name in node.output if name}
        self.readers = defaultdict(list)
        for node in self.nodes:
            for name in node.input:
                self.readers[name].append(node)

    @staticmethod
    def _shape_of(value, shapes):
        tensor = value.type.tensor_type
        if tensor.elem_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            raise InvalidArgument(f"input '{value.name}' is not of float numbers")
        dims = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None for dim in tensor.shape.dim]
        given = (shapes or {}).get(value.name)
        if given is None:
            if None in dims:
                raise InvalidArgument(_without_shape(value, dims))
            given = dims
        if len(given) != len(dims) or any(dim not in (None, extent) for dim, extent in zip(dims, given)):
            raise InvalidArgument(f"input '{value.name}' has shape {_text(tensor.shape)}, which {tuple(given)} does not fit")
        if any(extent < 1 for extent in given) or prod(given) > LARGEST_INPUT:
            raise InvalidArgument(f"input '{value.name}' would have shape {tuple(given)}; extents are at least 1, and it may have "
                                  f"{LARGEST_INPUT} elements")
        return tuple(given)

    def _run_all(self):
        """Runs the model once in onnxruntime, to get the shapes of all tensors and the values of constant ones."""
        generator = np.random.default_rng(1)
        types = {value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                 for value in self.proto.graph.input if value.name in self.inputs}
        limits = self._limits()
        self.drawn = {name: (generator.integers(0, limits[name], shape) if name in limits else
                             generator.uniform(-1, 1, shape)).astype(types[name]) for name, shape in self.inputs.items()}
        return {**self.drawn, **run(_bytes_of(self.proto), self.drawn)}

    def _limits(self):
        """For each input that holds positions along an axis (of Gather), the number of valid positions."""
        source, limits = {}, {}
        for node in self.nodes:
            if node.op_type in _SAME_ELEMENTS:
                source.update(dict.fromkeys(node.output, source.get(node.input[0], node.input[0])))
            elif node.op_type == "Gather" and source.get(node.input[1], node.input[1]) in self.inputs:
                data, axis = node.input[0], next((one.i for one in node.attribute if one.name == "axis"), 0)
                shape = self.weights[data].shape if data in self.weights else self.inputs.get(data, ())
                is_known = -len(shape) <= axis < len(shape)
                limits[source.get(node.input[1], node.input[1])] = shape[axis] if is_known else 1
        return limits

    def shape(self, name):
        return tuple(self.arrays[name].shape)

    def only_reader(self, name):
        """The only node that reads a tensor, unless the tensor is also an output; else None."""
        readers = self.readers[name]
        return readers[0] if len(readers) == 1 and name not in self.outputs else None


def _array_of(tensor):
    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:  # exceptions of NumPy and onnx
        raise InvalidArgument(f"weights '{tensor.name}' of the model: {error}") from None


def _bytes_of(proto):
    try:
        return proto.SerializeToString()
    except Exception as error:  # protobuf's exception above 2 GiB
        raise InvalidArgument(f"the model with its weights cannot be handed to onnxruntime: {error}") from None


def _without_shape(value, dims):
    """The missing extents of a shape, by name, and how to give them."""
    shape = value.type.tensor_type.shape
    missing = [f"{shape.dim[k].dim_param or '?'} (axis {k})" for k, dim in enumerate(dims) if dim is None]
    example = ",".join(str(dim) if dim is not None else f"<{shape.dim[k].dim_param or '?'}>" for k, dim in enumerate(dims))
    verb = "is" if len(missing) == 1 else "are"
    return (f"input '{value.name}' has no fixed shape ({_text(shape)}): {', '.join(missing)} {verb} missing; give all "
            f"extents: --shape {value.name}={example}, or shapes={{{value.name!r}: (...)}}")


def _text(shape):
    return "x".join(str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in shape.dim)

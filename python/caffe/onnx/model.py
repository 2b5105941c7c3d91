"""An ONNX model as the importer sees it: static shapes, known constants, who reads what."""
import os
from collections import defaultdict

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .._caffe import InvalidArgument, IoError
from .check import run


def load(file):
    """The model in a file. Weights in other files must lie in its folder."""
    file = os.fspath(file)
    try:
        return onnx.load(file)
    except OSError as error:
        raise IoError(f"{file}: {error.strerror or error}") from None
    except Exception as error:  # protobuf's and onnx's own
        raise InvalidArgument(f"{file} is no ONNX model: {error}") from None


class Model:
    """inputs: shapes by input; a model's own input without a fixed shape needs one here.

    arrays: the value of each tensor for random inputs. constants: arrays of those that do not depend on the inputs.
    """

    def __init__(self, proto, shapes):
        try:
            onnx.checker.check_model(proto)
        except onnx.checker.ValidationError as error:
            raise InvalidArgument(f"the model is not valid: {error}") from None
        self.proto = onnx.ModelProto()
        self.proto.CopyFrom(proto)
        graph = self.proto.graph
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.inputs = {value.name: self._shape_of(value, shapes) for value in graph.input if value.name not in self.weights}
        unknown = set(shapes or {}) - set(self.inputs)
        if unknown:
            raise InvalidArgument(f"the model has no input {', '.join(sorted(unknown))}; its inputs: {', '.join(self.inputs)}")
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
                raise InvalidArgument(f"input '{value.name}' has no fixed shape ({_text(tensor.shape)}); give one: "
                                      f"shapes={{{value.name!r}: (...)}}, or --shape {value.name}=1,3,224,224")
            return tuple(dims)
        if len(given) != len(dims) or any(dim not in (None, extent) for dim, extent in zip(dims, given)):
            raise InvalidArgument(f"input '{value.name}' has shape {_text(tensor.shape)}, which {tuple(given)} does not fit")
        return tuple(given)

    def _run_all(self):
        """All tensors, once, by onnxruntime: their shapes, and the values of those that are constant."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        for value in proto.graph.input:
            if value.name in self.inputs:
                del value.type.tensor_type.shape.dim[:]
                for extent in self.inputs[value.name]:
                    value.type.tensor_type.shape.dim.add().dim_value = extent
        shown = {value.name for value in proto.graph.output}
        for node in proto.graph.node:
            proto.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in node.output
                                      if name and name not in shown)
        del proto.graph.value_info[:]
        generator = np.random.default_rng(1)
        self.drawn = {name: generator.uniform(-1, 1, shape).astype(np.float32) for name, shape in self.inputs.items()}
        return {**self.drawn, **run(proto, self.drawn)}

    def shape(self, name):
        return tuple(self.arrays[name].shape)

    def only_reader(self, name):
        """The one node that reads a tensor which is no output, or None."""
        readers = self.readers[name]
        return readers[0] if len(readers) == 1 and name not in self.outputs else None


def _text(shape):
    return "x".join(str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in shape.dim)

"""Makes an 8-bit model from a float model: puts QuantizeLinear and DequantizeLinear around operators
that are to be computed in 8 bits."""
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from .._caffe import InvalidArgument
from .check import relative_error, run
from .folding import Fold, attribute, output_axis
from .storing import Storage, stored_model

OLDEST_OPSET = 13  # the first with per-channel scales in DequantizeLinear

# Operators with 8-bit kernels: those with weights, those that combine tensors, and those that copy numbers unchanged.
_PRODUCTS = {"Conv", "Gemm", "MatMul"}
_MIXERS = {"Add", "AveragePool", "Concat", "GlobalAveragePool"}
_PASSING = {"Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
# Endings of new names.
_PARTS = ("quantized", "dequantized", "scale", "zero")
# These run in the same kernel as the convolution or Gemm before them.
_ACTIVATIONS = {"Relu", "Clip"}


@dataclass
class Quantized:
    """stored: the Stored model. layers: names of the layers that compute in 8 bits. kept: why other layers
    with weights do not, by name."""
    stored: object = None
    layers: list = field(default_factory=list)
    kept: OrderedDict = field(default_factory=OrderedDict)


def layer_of(node):
    """The name of the layer that wrote a node."""
    return node.name.rpartition(":")[0]


def quantize(stored, calibration, storage, keep_float=(), only=None):
    """A copy of a stored model, made by export(), that computes in 8 bits where the calibration has
    ranges: unsigned numbers between nodes, signed weights with a scale per channel, and 32-bit biases.
    The copy is in `storage`.

    keep_float: names of layers that stay float. only: names of the layers to quantize; None: all
    except keep_float. Raises InvalidArgument for opsets below 13, for unknown layers, and if no layer
    is left to compute in 8 bits.
    """
    opset = stored.model.opset_import[0].version
    if opset < OLDEST_OPSET:
        raise InvalidArgument(f"opset is {opset}; models of 8-bit numbers need {OLDEST_OPSET} or newer")
    quantizer = _Quantizer(stored, calibration, set(keep_float), only)
    quantizer.run(storage)
    if not quantizer.result.layers:
        raise InvalidArgument("no layer would compute in 8 bits: " + ("; ".join(
            f"layer '{name}': {why}" for name, why in quantizer.result.kept.items()) or "none has weights"))
    return quantizer.result


class _Quantizer:
    def __init__(self, stored, calibration, keep_float, only):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(stored.model)
        graph = self.model.graph
        self.nodes = list(graph.node)
        self.weights = stored.weights()
        self.outputs = {value.name for value in graph.output}
        self.ranges = dict(calibration.ranges)
        self.keep_float, self.only = keep_float, only
        layers = {layer_of(node) for node in self.nodes}
        for name in sorted(set(keep_float) | set(only or ())):
            if name not in layers:
                raise InvalidArgument(f"the model has no layer '{name}'")
        self.result = Quantized()
        self.wrapped = {}  # tensor -> its dequantized version
        taken = {name for node in self.nodes for name in (*node.input, *node.output)} | set(self.weights)
        self.suffix = ""  # appended to new names to avoid names of blobs
        while any(name.endswith(f"{self.suffix}/{part}") for name in taken for part in _PARTS):
            self.suffix += "_"

    def run(self, storage):
        Fold(self.nodes, self.weights, self.outputs).run()
        self.readers = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        for node in self.nodes:
            self.pass_range(node)
        chosen = [node for node in self.nodes if self.is_chosen(node)]
        wanted = OrderedDict()
        for node in chosen:
            wanted.update(dict.fromkeys(self.data_of(node)))
            end = self.end_of(node)
            if node.op_type == "Conv" and end in self.ranges and end not in self.outputs:
                wanted[end] = None
        added = {}  # tensor -> the pair of nodes that follows it
        for tensor in wanted:
            added[tensor] = self.wrap(tensor)
        for node in chosen:
            if node.op_type in _PRODUCTS and node.input[1] in self.weights:
                self.quantize_weights(node, added)
        read = self.put(added)
        self.result.stored = storage.store(self.model, {name: array for name, array in self.weights.items() if name in read})

    def data_of(self, node):
        """The inputs that are not weights."""
        return [name for name in node.input if name and name not in self.weights]

    def pass_range(self, node):
        """Copies the input's range to the output of operators that pass numbers on unchanged."""
        if node.op_type in _PASSING and node.input[0] in self.ranges:
            self.ranges[node.output[0]] = self.ranges[node.input[0]]

    def end_of(self, node):
        """The output tensor of a product's kernel, which includes an activation that follows, if any."""
        tensor = node.output[0]
        readers = self.readers.get(tensor, [])
        if len(readers) == 1 and readers[0].op_type in _ACTIVATIONS and tensor not in self.outputs:
            return readers[0].output[0]
        return tensor

    def is_chosen(self, node):
        kind, layer = node.op_type, layer_of(node)
        if kind not in _PRODUCTS | _MIXERS | {"MaxPool"}:
            return False
        if layer in self.keep_float:
            if kind in _PRODUCTS:
                self.result.kept[layer] = "as asked"
            return False
        if self.only is not None and layer not in self.only:
            return False
        data = self.data_of(node)
        if kind in _PRODUCTS:
            return self.is_chosen_product(node, layer)
        return len(data) == len([name for name in node.input if name]) and all(name in self.ranges for name in data)

    def is_chosen_product(self, node, layer):
        is_matmul = node.op_type == "MatMul"
        if is_matmul and not self.is_product_of_blobs(node):
            return False
        data = self.data_of(node)
        unknown = next((name for name in data if name not in self.ranges), None)
        if (len(data) != 1 and not is_matmul) or attribute(node, "transA", 0) or attribute(node, "alpha", 1.0) != 1:
            self.result.kept[layer] = "its weights are not constants"
        elif unknown is not None:
            self.result.kept[layer] = f"blob '{unknown}' has no range in the calibration"
        else:
            if layer not in self.result.layers:
                self.result.layers.append(layer)
            return True
        return False

    def is_product_of_blobs(self, node):
        """False for a MatMul inside of another layer, such as attention or a resized image: nobody has measured its factors, or
        one of them is not weights but a constant."""
        first, second = node.input
        is_measured = first in self.ranges or second in self.ranges
        return is_measured and first not in self.weights and not (second in self.weights and "/constant" in second)

    def scale_of(self, tensor):
        low, high = self.ranges[tensor]
        return np.float32(max(high - low, 1e-30) / 255)

    def wrap(self, tensor):
        """The two nodes that follow a tensor, and their constants."""
        scale = self.scale_of(tensor)
        zero = np.uint8(np.clip(round(-self.ranges[tensor][0] / float(scale)), 0, 255))
        names = self.named(tensor, "scale", "zero")
        self.weights.update(zip(names, [np.asarray(scale), np.asarray(zero)]))
        quantized, dequantized = self.named(tensor, "quantized", "dequantized")
        self.wrapped[tensor] = dequantized
        return [helper.make_node("QuantizeLinear", [tensor, *names], [quantized], f"{tensor}:QuantizeLinear"),
                helper.make_node("DequantizeLinear", [quantized, *names], [dequantized], f"{tensor}:DequantizeLinear")]

    def quantize_weights(self, node, added):
        """Stores weights as 8-bit numbers with a scale per output channel, and the bias in units of the product of both scales."""
        name = node.input[1]
        weight = self.weights[name]
        axis = output_axis(node) % weight.ndim
        over = tuple(k for k in range(weight.ndim) if k != axis)
        largest = np.maximum(weight.max(axis=over), -weight.min(axis=over)).astype(np.float64)
        scales = np.where(largest > 0, largest, 1) / 127
        if len(node.input) > 2:  # large enough for the bias to fit into 32 bits
            scales = np.maximum(scales, np.abs(self.weights[node.input[2]]) / (2.0 ** 30 * self.scale_of(node.input[0])))
        scales = np.maximum(scales, np.finfo(np.float32).tiny).astype(np.float32)
        shape = [1] * weight.ndim
        shape[axis] = -1
        stored = weight / scales.reshape(shape)  # in place from here on, because it may have a gigabyte
        stored = np.clip(np.rint(stored, out=stored), -127, 127, out=stored).astype(np.int8)
        key = f"{node.output[0]}.weights"
        node.input[1] = self.store(key, stored, scales, axis, added)
        if len(node.input) > 2:
            units = np.maximum(scales * self.scale_of(node.input[0]), np.finfo(np.float32).tiny).astype(np.float32)
            bias = np.rint(self.weights[node.input[2]].astype(np.float64) / units)
            limits = np.iinfo(np.int32)
            node.input[2] = self.store(f"{node.output[0]}.bias", np.clip(bias, limits.min, limits.max).astype(np.int32), units, 0,
                                       added)

    def store(self, key, stored, scales, axis, added):
        zero = np.zeros(scales.shape, stored.dtype)
        names = self.named(key, "quantized", "scale", "zero")
        self.weights.update(zip(names, (stored, scales, zero)))
        dequantized, = self.named(key, "dequantized")
        added.setdefault(None, []).append(
            helper.make_node("DequantizeLinear", names, [dequantized], f"{key}:DequantizeLinear", axis=axis))
        return dequantized

    def named(self, tensor, *parts):
        return [f"{tensor}{self.suffix}/{part}" for part in parts]

    def put(self, added):
        """Orders the nodes so that each reads quantized tensors made before it. Returns the names of the tensors read."""
        nodes = list(added.pop(None, []))
        for tensor in [value.name for value in self.model.graph.input]:
            nodes += added.get(tensor, [])
        for node in self.nodes:
            node.input[:] = [self.wrapped.get(name, name) for name in node.input]
            nodes.append(node)
            for tensor in node.output:
                nodes += added.get(tensor, [])
        graph = self.model.graph
        del graph.node[:]
        graph.node.extend(nodes)
        del graph.initializer[:]
        return {name for node in nodes for name in node.input}


def sensitivity(model, calibration, arrays, storage=None):
    """How much each layer alone changes the outputs when it computes in 8 bits, the worst layer first:
    the root mean square difference relative to the root mean square of the outputs, for the output that
    changes most, by layer. Needs onnxruntime.

    model: a float model made by export(): an onnx.ModelProto, or a file for a model above 2 GiB.
    arrays: real data by input. storage: where to store models; by default in a temporary
    folder.
    """
    if storage is None:
        with Storage(None) as own:
            return sensitivity(model, calibration, arrays, own)
    stored = stored_model(model)
    expected = run(model, arrays)
    errors = {}
    everything = quantize(stored, calibration, storage)
    everything.stored.discard()
    for layer in everything.layers:
        alone = quantize(stored, calibration, storage, only=[layer]).stored
        got = run(alone.source, arrays)
        alone.discard()
        errors[layer] = max(relative_error(expected[name], got[name]) for name in expected)
    return OrderedDict(sorted(errors.items(), key=lambda one: -one[1]))

"""Folds a scale and shift per channel into the weights of the convolution or fully connected layer before it, so that 8-bit kernels
can compute both as one operator."""
import numpy as np
from onnx import helper

_PRODUCTS = ("Conv", "Gemm")


class Fold:
    """Folds within a list of nodes; weights: arrays by name, outputs: names of the model's outputs. Changes nodes and weights."""

    def __init__(self, nodes, weights, outputs):
        self.nodes, self.weights, self.outputs = nodes, weights, outputs

    def run(self):
        for product in [node for node in self.nodes if self._is_product(node)]:
            while True:
                reader = self._only_reader(product.output[0])
                numbers = None if reader is None else self._factor_and_shift(product, reader)
                if numbers is None:
                    break
                self._apply(product, *numbers)
                product.output[0] = reader.output[0]
                self.nodes.remove(reader)

    def _is_product(self, node):
        return node.op_type in _PRODUCTS and all(name in self.weights for name in node.input[1:])

    def _only_reader(self, tensor):
        readers = [node for node in self.nodes if tensor in node.input]
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def _channels(self, product):
        return self.weights[product.input[1]].shape[output_axis(product)]

    def _factor_and_shift(self, product, reader):
        """Factor and shift per channel; None if the reader is not such an operator."""
        if reader.op_type == "BatchNormalization":
            scale, shift, mean, variance = (self.weights.get(name) for name in reader.input[1:5])
            if any(array is None for array in (scale, shift, mean, variance)):
                return None
            epsilon = next((one.f for one in reader.attribute if one.name == "epsilon"), 1e-5)
            factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
            return factor, shift - mean * factor
        if reader.op_type not in ("Mul", "Add"):
            return None
        numbers = [self._by_channel(product, self.weights[name]) for name in reader.input if name in self.weights]
        if len(numbers) != 1 or numbers[0] is None:
            return None
        return (numbers[0], 0.0) if reader.op_type == "Mul" else (1.0, numbers[0])

    def _by_channel(self, product, array):
        """One number per channel, for a weight that is broadcast along all other axes; else None."""
        axes_behind = 0 if product.op_type == "Gemm" else self.weights[product.input[1]].ndim - 2
        shape = (1,) * (axes_behind + 1 - array.ndim) + array.shape
        if any(extent != 1 for extent in shape[len(shape) - axes_behind:]):
            return None
        channels = self._channels(product)
        along = shape[len(shape) - axes_behind - 1]
        if along not in (1, channels) or int(np.prod(shape)) != along:  # e.g. varies along items
            return None
        return np.broadcast_to(array.astype(np.float64).ravel(), (channels,))

    def _apply(self, product, factor, shift):
        weight = self.weights[product.input[1]]
        shape = [1] * weight.ndim
        shape[output_axis(product)] = -1
        channels = self._channels(product)
        factor = np.broadcast_to(np.asarray(factor, np.float64), (channels,))
        bias = self.weights[product.input[2]].astype(np.float64) if len(product.input) > 2 else 0.0
        # Adds new weights, because other nodes may read the old ones.
        name = f"{product.output[0]}/folded"
        self.weights[name] = (weight * factor.reshape(shape)).astype(np.float32)
        self.weights[f"{name}.bias"] = np.broadcast_to(bias * factor + shift, (channels,)).astype(np.float32)
        product.input[1:] = [name, f"{name}.bias"]


def output_axis(product):
    """The axis of the weights that holds the output channels."""
    if product.op_type == "Conv":
        return 0
    if product.op_type == "MatMul":
        return -1
    return 0 if any(one.name == "transB" and one.i for one in product.attribute) else 1


def attribute(node, name, default):
    """The value of an attribute."""
    return next((helper.get_attribute_value(one) for one in node.attribute if one.name == name), default)

"""Recurrent layers, unrolled: ONNX's own have no input that marks the beginnings of sequences.

The initial states come from the layer's bottoms, else they are 0.
"""
from math import prod

import numpy as np

from ..registry import writes


class Steps:
    """The layer's inputs over time: x as (T N, I), cont as T columns of (N, 1) or None, the initial states.

    sizes: number of steps, and items per step.
    """

    def __init__(self, layer, onnx, sizes, width, states, shows_states=False):
        self.layer, self.onnx, self.width = layer, onnx, width
        self.times, self.items = sizes
        bottoms = list(zip(layer.bottoms, layer.shapes))
        x, shape = bottoms.pop(0)
        self.x = onnx.reshape(x, [self.times * self.items, prod(shape) // (self.times * self.items)])
        self.cont = self._split_cont(bottoms.pop(0)[0]) if bottoms else None
        shown = states if shows_states else 0
        self.static = self._flat(*bottoms.pop(0)) if len(bottoms) > shown else None
        self.first = ([self._flat(*bottom) for bottom in bottoms] if shown
                      else [onnx.constant(np.zeros((self.items, width))) for _ in range(states)])

    def _flat(self, tensor, shape):
        return self.onnx.reshape(tensor, [self.items, prod(shape) // self.items])

    def _split_cont(self, cont):
        rows = self.onnx.reshape(cont, [self.times, self.items, 1])
        return [self.onnx.reshape(part, [self.items, 1]) for part in self.onnx.split(rows, 0, [1] * self.times)]

    def continued(self, tensor, time):
        """A state of the previous step; 0 where a sequence begins."""
        return tensor if self.cont is None else self.onnx.op("Mul", tensor, self.cont[time])

    def products(self, weights, bias, static_weights=None):
        """W x + b, plus the contribution of the static input, as one (N, columns) tensor per step."""
        onnx = self.onnx
        product = onnx.op("Gemm", self.x, weights, bias, transB=1)
        parts = onnx.split(product, 0, [self.items] * self.times)
        if self.static is None:
            return parts
        static = onnx.op("Gemm", self.static, static_weights, transB=1)
        return [onnx.op("Add", part, static) for part in parts]

    def results(self, outputs, states):
        """The layer's tops: all outputs, and the last states if the layer exposes them."""
        joined = self.onnx.op("Concat", *outputs, axis=0) if len(outputs) > 1 else outputs[0]
        tops = [self.onnx.reshape(joined, self.layer.top_shape)]
        for state, shape in zip(states, self.layer.top_shapes[1:]):
            tops.append(self.onnx.reshape(state, shape))
        return tops


def _steps_of(layer, onnx, states):
    options = layer.param.recurrent_param
    return Steps(layer, onnx, layer.shape[:2], options.num_output, states, options.expose_hidden)


def _lstm_gates(onnx, gates, c, width):
    """c and h after a step, from the gates' inputs (order i, f, o, g) and the previous c."""
    i, f, o, g = onnx.split(gates, 1, [width] * 4)
    forgotten = onnx.op("Mul", onnx.op("Sigmoid", f), c)
    c = onnx.op("Add", forgotten, onnx.op("Mul", onnx.op("Sigmoid", i), onnx.op("Tanh", g)))
    return c, onnx.op("Mul", onnx.op("Sigmoid", o), onnx.op("Tanh", c))


def _lstm(steps, products, recurrent_weights):
    onnx, (h, c), outputs = steps.onnx, steps.first, []
    for time, product in enumerate(products):
        gates = onnx.op("Add", product, onnx.op("Gemm", steps.continued(h, time), recurrent_weights, transB=1))
        c, h = _lstm_gates(onnx, gates, steps.continued(c, time), steps.width)
        outputs.append(h)
    return steps.results(outputs, [h, c])


@writes("LSTM")
def lstm(layer, onnx):
    steps = _steps_of(layer, onnx, states=2)
    weights = [layer.weight(onnx, k) for k in range(len(layer.blobs))]
    return _lstm(steps, steps.products(*weights[:-1]), weights[-1])


@writes("Lstm")
def lstm_of_rows(layer, onnx):
    options = layer.param.lstm_param
    steps = Steps(layer, onnx, (layer.shape[0] // options.batch_size, options.batch_size), options.num_output, states=2)
    weights, recurrent_weights, bias = (layer.weight(onnx, k) for k in range(3))
    return _lstm(steps, steps.products(weights, bias), recurrent_weights)


@writes("RNN")
def rnn(layer, onnx):
    steps = _steps_of(layer, onnx, states=1)
    weights = [layer.weight(onnx, k) for k in range(len(layer.blobs))]
    h, outputs = steps.first[0], []
    for time, product in enumerate(steps.products(*weights[:-3])):
        fed_back = onnx.op("Gemm", steps.continued(h, time), weights[-3], transB=1)
        h = onnx.op("Tanh", onnx.op("Add", product, fed_back))
        outputs.append(onnx.op("Tanh", onnx.op("Gemm", h, weights[-2], weights[-1], transB=1)))
    return steps.results(outputs, [h])


@writes("GRU")
def gru(layer, onnx):
    steps = _steps_of(layer, onnx, states=1)
    weights = [layer.weight(onnx, k) for k in range(len(layer.blobs))]
    h, outputs = steps.first[0], []
    for time, product in enumerate(steps.products(*weights[:-3])):
        hidden = steps.continued(h, time)
        z, r, n = onnx.split(product, 1, [steps.width] * 3)

        def gate(kind, inputs, recurrent_weights, state):
            return onnx.op(kind, onnx.op("Add", inputs, onnx.op("Gemm", state, recurrent_weights, transB=1)))

        z, r = gate("Sigmoid", z, weights[-3], hidden), gate("Sigmoid", r, weights[-2], hidden)
        n = gate("Tanh", n, weights[-1], onnx.op("Mul", r, hidden))
        h = onnx.op("Add", n, onnx.op("Mul", z, onnx.op("Sub", hidden, n)))
        outputs.append(h)
    return steps.results(outputs, [h])


@writes("LSTMUnit")
def lstm_unit(layer, onnx):
    c, gates, cont = layer.bottoms
    items, width = layer.shape[1:]
    c = onnx.op("Mul", onnx.reshape(c, [items, width]), onnx.reshape(cont, [items, 1]))
    tops = _lstm_gates(onnx, onnx.reshape(gates, [items, 4 * width]), c, width)
    return [onnx.reshape(top, shape) for top, shape in zip(tops, layer.top_shapes)]

"""Recurrent layers, step by step: ONNX's own have no input that marks the beginnings of sequences.

The initial states come from the layer's bottoms, else they are 0.
"""
from math import prod

import numpy as np

from ..registry import writes


class Recurrence:
    """The layer's inputs over time: x as (T N, I), cont as T columns of (N, 1) or None, the initial states of each part. A part
    is one layer in one direction.

    sizes: number of steps, and items per step. own: number of parameters of a part besides those of the products with x.
    """

    def __init__(self, layer, onnx, sizes, options, states, own):
        self.layer, self.onnx, self.width, self.own = layer, onnx, options.num_output, own
        self.times, self.items = sizes
        is_recurrent = layer.type != "Lstm"
        self.layers = options.num_layers if is_recurrent else 1
        self.directions = 1 + (is_recurrent and options.bidirectional)
        self.projection = options.projection_size if is_recurrent else 0
        parts = self.layers * self.directions
        bottoms = list(zip(layer.bottoms, layer.shapes))
        x, shape = bottoms.pop(0)
        self.x = onnx.reshape(x, [self.times * self.items, prod(shape) // (self.times * self.items)])
        self.cont = self._split_cont(bottoms.pop(0)[0]) if bottoms else None
        shown = states if is_recurrent and options.expose_hidden else 0
        self.static = self._flat(*bottoms.pop(0)) if len(bottoms) > shown else None
        if shown:
            self.first = [[self._flat(state, (1, *shape[1:])) for state in onnx.split(tensor, 0, [1] * parts)] for tensor, shape in bottoms]
        else:
            widths = [self.projection or self.width, self.width][:states]
            self.first = [[onnx.constant(np.zeros((self.items, width)))] * parts for width in widths]
        weights = [layer.weight(onnx, k) for k in range(len(layer.blobs))]
        self.weights = iter(weights if is_recurrent else [weights[0], weights[2], weights[1]])

    def _flat(self, tensor, shape):
        return self.onnx.reshape(tensor, [self.items, prod(shape) // self.items])

    def _split_cont(self, cont):
        rows = self.onnx.reshape(cont, [self.times, self.items, 1])
        return [self.onnx.reshape(part, [self.items, 1]) for part in self.onnx.split(rows, 0, [1] * self.times)]

    def _products(self, rows, static):
        """W x + b, plus the contribution of the static input, as one (N, columns) tensor per step."""
        onnx = self.onnx
        product = onnx.op("Gemm", rows, next(self.weights), next(self.weights), transB=1)
        parts = onnx.split(product, 0, [self.items] * self.times)
        if static is None:
            return parts
        added = onnx.op("Gemm", static, next(self.weights), transB=1)
        return [onnx.op("Add", part, added) for part in parts]

    def _continued(self, tensor, time, is_reverse):
        """A state of the step before; 0 where a sequence begins, or backward, where it ends."""
        if self.cont is None or (is_reverse and time == self.times - 1):
            return tensor
        return self.onnx.op("Mul", tensor, self.cont[time + is_reverse])

    def _run_part(self, rows, index, step):
        """Outputs of a part as (T N, D), and its last states."""
        is_reverse = index % self.directions == 1
        products = self._products(rows, self.static if index < self.directions else None)
        weights = [next(self.weights) for _ in range(self.own)]
        states, outputs = [of[index] for of in self.first], {}
        for time in reversed(range(self.times)) if is_reverse else range(self.times):
            before = [self._continued(state, time, is_reverse) for state in states]
            states, outputs[time] = step(self.onnx, products[time], before, weights)
        joined = [outputs[time] for time in range(self.times)]
        return self.onnx.op("Concat", *joined, axis=0) if len(joined) > 1 else joined[0], states

    def run(self, step):
        """The layer's tops: all outputs, and the last states if the layer shows them. step(onnx, product, states, weights): the states
        after a step, and its output."""
        rows, last = self.x, []
        for number in range(self.layers):
            parts = [self._run_part(rows, number * self.directions + direction, step) for direction in range(self.directions)]
            last += [states for _, states in parts]
            rows = self.onnx.op("Concat", *(outputs for outputs, _ in parts), axis=1) if len(parts) > 1 else parts[0][0]
        tops = [self.onnx.reshape(rows, self.layer.top_shape)]
        for states, shape in zip(zip(*last), self.layer.top_shapes[1:]):
            joined = self.onnx.op("Concat", *states, axis=0) if len(states) > 1 else states[0]
            tops.append(self.onnx.reshape(joined, shape))
        return tops


def _lstm_gates(onnx, gates, c, width):
    """c and h after a step, from the gates' inputs (order i, f, o, g) and the previous c."""
    i, f, o, g = onnx.split(gates, 1, [width] * 4)
    forgotten = onnx.op("Mul", onnx.op("Sigmoid", f), c)
    c = onnx.op("Add", forgotten, onnx.op("Mul", onnx.op("Sigmoid", i), onnx.op("Tanh", g)))
    return c, onnx.op("Mul", onnx.op("Sigmoid", o), onnx.op("Tanh", c))


def _fed_back(onnx, product, state, weights):
    return onnx.op("Add", product, onnx.op("Gemm", state, weights, transB=1))


def _lstm(recurrence):
    def step(onnx, product, states, weights):
        c, h = _lstm_gates(onnx, _fed_back(onnx, product, states[0], weights[0]), states[1], recurrence.width)
        if recurrence.projection:
            h = onnx.op("Gemm", h, weights[1], transB=1)
        return [h, c], h
    return recurrence.run(step)


@writes("LSTM")
def lstm(layer, onnx):
    return _lstm(Recurrence(layer, onnx, layer.shape[:2], layer.param.recurrent_param, states=2,
                            own=2 if layer.param.recurrent_param.projection_size else 1))


@writes("Lstm")
def lstm_of_rows(layer, onnx):
    options = layer.param.lstm_param
    return _lstm(Recurrence(layer, onnx, (layer.shape[0] // options.batch_size, options.batch_size), options, states=2, own=1))


@writes("RNN")
def rnn(layer, onnx):
    def step(onnx, product, states, weights):
        h = onnx.op("Tanh", _fed_back(onnx, product, states[0], weights[0]))
        return [h], onnx.op("Tanh", onnx.op("Gemm", h, weights[1], weights[2], transB=1))
    return Recurrence(layer, onnx, layer.shape[:2], layer.param.recurrent_param, states=1, own=3).run(step)


@writes("GRU")
def gru(layer, onnx):
    options = layer.param.recurrent_param
    recurrence = Recurrence(layer, onnx, layer.shape[:2], options, states=1, own=4 if options.reset_after else 3)

    def step(onnx, product, states, weights):
        hidden = states[0]
        z, r, n = onnx.split(product, 1, [recurrence.width] * 3)
        z, r = (onnx.op("Sigmoid", _fed_back(onnx, gate, hidden, recurrent)) for gate, recurrent in zip((z, r), weights))
        if options.reset_after:
            fed = onnx.op("Gemm", hidden, weights[2], weights[3], transB=1)
            n = onnx.op("Tanh", onnx.op("Add", n, onnx.op("Mul", r, fed)))
        else:
            n = onnx.op("Tanh", _fed_back(onnx, n, onnx.op("Mul", r, hidden), weights[2]))
        h = onnx.op("Add", n, onnx.op("Mul", z, onnx.op("Sub", hidden, n)))
        return [h], h
    return recurrence.run(step)


@writes("LSTMUnit")
def lstm_unit(layer, onnx):
    c, gates, cont = layer.bottoms
    items, width = layer.shape[1:]
    c = onnx.op("Mul", onnx.reshape(c, [items, width]), onnx.reshape(cont, [items, 1]))
    tops = _lstm_gates(onnx, onnx.reshape(gates, [items, 4 * width]), c, width)
    return [onnx.reshape(top, shape) for top, shape in zip(tops, layer.top_shapes)]

"""Compares values of activations with their formulas."""
import math

import caffe
import numpy as np
import pytest

X = np.linspace(-6, 9, 61).reshape(1, 61)

FORMULAS = {
    "type: 'ReLU6'": lambda x: min(6, max(0, x)),
    "type: 'ReLU6' relu6_param { threshold: 1.5 }": lambda x: min(1.5, max(0, x)),
    "type: 'HardSigmoid'": lambda x: min(1, max(0, 0.2 * x + 0.5)),
    "type: 'HardSigmoid' hard_sigmoid_param { alpha: 0.125 beta: 0.25 }": lambda x: min(1, max(0, x / 8 + 0.25)),
    "type: 'HardSwish'": lambda x: x * min(6, max(0, x + 3)) / 6,
    "type: 'Mish'": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "type: 'GELU'": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "type: 'SiLU'": lambda x: x / (1 + math.exp(-x)),
    "type: 'Softplus'": lambda x: math.log1p(math.exp(x)),
}


@pytest.mark.parametrize("layer", FORMULAS)
def test_values_are_those_of_the_formula(run_layer, layer):
    y = run_layer(f"layer {{ name: 'l' {layer} bottom: 'x0' top: 'y' }}", X)["y"]
    assert y[0] == pytest.approx([FORMULAS[layer](x) for x in X[0]], rel=1e-6, abs=1e-6)


def test_large_values_do_not_overflow(run_layer):
    for layer in ("Mish", "GELU", "SiLU", "HardSwish", "Softplus"):
        x = np.array([[-1e4, -100, 100, 1e4]])
        y = run_layer(f"layer {{ name: 'l' type: '{layer}' bottom: 'x0' top: 'y' }}", x)["y"]
        assert y[0] == pytest.approx([0, 0, 100, 1e4], abs=1e-30), layer


SOFTPLUS = ["type: 'Softplus'", "type: 'BNLL'", "type: 'Expression' expression_param { expr: 'softplus(x)' }"]


def in_float(write, layer, x):
    """y and the gradient of x, for a gradient of ones, in float."""
    net = caffe.Net(write(f"force_backward: true layer {{ name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: {x.size} }} }} }} "
                          f"layer {{ name: 'l' {layer} bottom: 'x' top: 'y' }}"), caffe.TRAIN)
    net.blobs["x"].data[...] = x
    net.forward()
    net.blobs["y"].diff[...] = 1
    net.backward()
    return net.blobs["y"].data.copy(), net.blobs["x"].diff.copy()


@pytest.mark.parametrize("layer", SOFTPLUS)
def test_small_values_of_softplus_keep_their_digits(write, layer):
    x = np.linspace(-80, -5, 76)  # 1 + exp(x) is 1 in float below -17
    y, dx = in_float(write, layer, x)
    assert y == pytest.approx(np.log1p(np.exp(x)), rel=2e-6)
    assert dx == pytest.approx(1 / (1 + np.exp(-x)), rel=2e-5)


@pytest.mark.parametrize("layer", SOFTPLUS)
def test_softplus_of_no_number_has_no_gradient(write, layer):
    y, dx = in_float(write, layer, np.array([np.nan, 0]))
    assert np.isnan(y[0]) and np.isnan(dx[0]) and dx[1] == 0.5


def test_a_threshold_is_positive(run_layer):
    with pytest.raises(caffe.InvalidArgument, match="threshold is -1; it must be above 0"):
        run_layer("layer { name: 'l' type: 'ReLU6' bottom: 'x0' top: 'y' relu6_param { threshold: -1 } }", X)

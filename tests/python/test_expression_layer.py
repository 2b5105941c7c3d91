"""Compares Expression with NumPy: values and gradients of each function, operator and form of broadcasting."""
import math

import caffe
import numpy as np
import pytest

RANDOM = np.random.default_rng(5)
ERF = np.vectorize(math.erf)


def inputs_of(*shapes, low=-2.0, high=2.0):
    return [RANDOM.uniform(low, high, shape) for shape in shapes]


def expression(expr, bottoms, names=(), top="y"):
    shown = " ".join(f"bottom: 'x{i}'" for i in range(bottoms))
    named = " ".join(f"name: '{name}'" for name in names)
    return f"layer {{ name: 'l' type: 'Expression' {shown} top: '{top}' expression_param {{ expr: '{expr}' {named} }} }}"


@pytest.fixture
def differentiate(write):
    """differentiate(expr, arrays, dy): the value and the gradients of the arrays, for a gradient of the top."""
    def run(expr, arrays, dy=None, names=(), kind="DOUBLE", top="y"):
        text = f"force_backward: true default_forward_type: {kind} default_backward_type: {kind}\n"
        for i, array in enumerate(arrays):
            dims = " ".join(f"dim: {extent}" for extent in array.shape)
            text += f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ {dims} }} }} }}\n"
        net = caffe.Net(write(text + expression(expr, len(arrays), names, top)), caffe.TRAIN)
        for i, array in enumerate(arrays):
            net.blobs[f"x{i}"].data[...] = array
        y = net.forward()[top].copy()
        if dy is None:
            return y
        net.blobs[top].diff[...] = dy
        net.backward()
        return y, [net.blobs[f"x{i}"].diff.copy() for i in range(len(arrays))]

    return run


def numeric(function, arrays, dy):
    """Central differences of sum(function * dy)."""
    gradients = []
    for k, array in enumerate(arrays):
        gradient = np.zeros_like(array)
        for i in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [each.copy() for each in arrays]
                moved[k][i] += step
                ends.append((function(*moved) * dy).sum())
            gradient[i] = (ends[0] - ends[1]) / 2e-6
        gradients.append(gradient)
    return gradients


def check(differentiate, expr, function, arrays):
    want = np.asarray(function(*arrays), dtype=float)
    dy = RANDOM.uniform(0.5, 1.5, want.shape)
    y, gradients = differentiate(expr, arrays, dy)
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, rtol=2e-6, atol=1e-6)
    for got, each in zip(gradients, numeric(function, arrays, dy)):
        np.testing.assert_allclose(got, each, rtol=2e-4, atol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "exp(x)": np.exp, "sin(x)": np.sin, "cos(x)": np.cos, "tanh(x)": np.tanh, "sigmoid(x)": sigmoid,
    "relu(x)": lambda x: np.maximum(x, 0), "softplus(x)": lambda x: np.log1p(np.exp(x)), "erf(x)": ERF,
    "gelu(x)": lambda x: x * 0.5 * (1 + ERF(x / np.sqrt(2))), "abs(x)": np.abs, "sign(x)": np.sign,
    "floor(x)": np.floor, "round(x)": np.rint, "square(x)": np.square, "-x": np.negative, "-x^2": lambda x: -x**2,
    "x^3": lambda x: x**3, "x^3.0 - 2^x": lambda x: x**3 - 2**x, "clip(x, -1, 0.5)": lambda x: np.clip(x, -1, 0.5),
    "1 - x / 2 - -x * 3": lambda x: 1 - x / 2 + x * 3, "x * sigmoid(1.702 * x)": lambda x: x * sigmoid(1.702 * x),
    "where(x > 0.3, x * 2, x * x)": lambda x: np.where(x > 0.3, x * 2, x * x), "pi * x": lambda x: np.pi * x,
    "(x < 0.1) * x + (x >= 0.1) * 2": lambda x: np.where(x < 0.1, x, 2), "0.5e1*x+.5": lambda x: 5 * x + 0.5,
    "(x <= 0.2) + (x > 0.7) * x": lambda x: (x <= 0.2) + (x > 0.7) * x, "x == x": np.ones_like,
    "2 - 3 - x": lambda x: -1 - x, "2 ^ 3 ^ 0.5 * x": lambda x: 2**(3**0.5) * x, "2 ^ -1 * x": lambda x: x / 2,
    "x": lambda x: x, "x + x": lambda x: 2 * x}
OF_POSITIVE = {
    "log(x)": np.log, "sqrt(x)": np.sqrt, "rsqrt(x)": lambda x: x**-0.5, "1 / x": lambda x: 1 / x,
    "x^2.5": lambda x: x**2.5, "pow(x, x)": lambda x: x**x, "x^0.5 + x^-0.5 + x^-1": lambda x: x**0.5 + x**-0.5 + 1 / x}


@pytest.mark.parametrize("expr", FUNCTIONS)
def test_functions_of_one_bottom(differentiate, expr):
    check(differentiate, expr, FUNCTIONS[expr], inputs_of((2, 3, 5)))


@pytest.mark.parametrize("expr", OF_POSITIVE)
def test_functions_of_positive_numbers(differentiate, expr):
    check(differentiate, expr, OF_POSITIVE[expr], inputs_of((2, 3, 5), low=0.3))


TWO = {"x + y": np.add, "x - y": np.subtract, "x * y": np.multiply, "x / (y + 3)": lambda x, y: x / (y + 3),
       "max(x, y)": np.maximum, "min(x, y)": np.minimum, "pow(x + 3, y)": lambda x, y: (x + 3)**y,
       "clip(x, y - 1, y + 1)": lambda x, y: np.clip(x, y - 1, y + 1), "where(x > y, x * y, y)": lambda x, y: np.where(x > y, x * y, y),
       "x * tanh(y) + y": lambda x, y: x * np.tanh(y) + y}
SHAPES = [((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 1)), ((2, 3, 4), (2, 1, 1)), ((3, 1), (4,)), ((4,), (2, 1, 3, 1)),
          ((2, 3), (1, 1, 1)), ((2, 3), ()), ((2, 3, 4), (2, 1, 4))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("expr", TWO)
def test_two_bottoms_broadcast(differentiate, expr, shapes):
    check(differentiate, expr, TWO[expr], inputs_of(*shapes))


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


REDUCTIONS = {
    "sum(x, axis=1)": lambda x: x.sum(1, keepdims=True), "mean(x, axis=-1)": lambda x: x.mean(-1, keepdims=True),
    "max(x, axis=0)": lambda x: x.max(0, keepdims=True), "min(x, axis=2)": lambda x: x.min(2, keepdims=True),
    "sum(x)": lambda x: x.sum(keepdims=True), "max(x)": lambda x: x.max(keepdims=True),
    "mean(x, axis=(0, 2))": lambda x: x.mean((0, 2), keepdims=True), "x - mean(x, axis=1)": lambda x: x - x.mean(1, keepdims=True),
    "exp(x - max(x, axis=1)) / sum(exp(x - max(x, axis=1)), axis=1)": softmax,
    "(x - mean(x, axis=-1)) * rsqrt(mean(square(x - mean(x, axis=-1)), axis=-1) + 0.001)":
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.001),
    "sum(x, axis=1) * sum(x, axis=2)": lambda x: x.sum(1, keepdims=True) * x.sum(2, keepdims=True),
    "sum(sum(x * x, axis=1), axis=2)": lambda x: (x * x).sum((1, 2), keepdims=True),
    "log(sum(exp(x), axis=-1))": lambda x: np.log(np.exp(x).sum(-1, keepdims=True)), "sum(x, axis=0) * 3": lambda x: 3 * x.sum(0, keepdims=True)}


@pytest.mark.parametrize("expr", REDUCTIONS)
def test_reductions_keep_their_axis(differentiate, expr):
    check(differentiate, expr, REDUCTIONS[expr], inputs_of((2, 3, 5)))


def test_reductions_of_broadcast_operands(differentiate):
    arrays = inputs_of((2, 3, 5), (3, 1))
    check(differentiate, "mean(x * y, axis=1) + sum(y)", lambda x, y: (x * y).mean(1, keepdims=True) + y.sum(keepdims=True), arrays)
    check(differentiate, "sum(x + y, axis=(0, 1))", lambda x, y: (x + y).sum((0, 1), keepdims=True), inputs_of((5, 1), (4,)))
    check(differentiate, "x * sum(y, axis=0)", lambda x, y: x * y.sum(0, keepdims=True), inputs_of((4,), (3, 1)))


def test_gradients_at_ties(differentiate):
    zero, one = np.zeros(3), np.ones(3)
    cases = {"abs(x)": [0], "relu(x)": [0], "sign(x)": [0], "floor(x)": [0], "clip(x, 0, 1)": [1], "clip(x, -1, 0)": [1],
             "max(x, y)": [0.5, 0.5], "min(x, y)": [0.5, 0.5], "max(x)": [1 / 3], "where(x, 2 * x, 3 * x)": [3],
             "clip(x, y, 1)": [1, 0], "x == y": [0, 0]}
    for expr, want in cases.items():
        _, gradients = differentiate(expr, [zero] * len(want), np.ones(1) if expr == "max(x)" else one)
        for got, each in zip(gradients, want):
            assert got == pytest.approx(each * one), expr


def test_gradients_that_are_not_numbers_elsewhere_stay_out(differentiate):
    """Where takes the gradient of the chosen operand only, powers of 0 have finite gradients."""
    x = np.array([0.0, 4.0])
    _, (gradient,) = differentiate("where(x > 0, 2 * x, 0)", [x], np.array([np.inf, 1]))
    assert gradient == pytest.approx([0, 2])
    _, (base, power) = differentiate("x ^ y", [np.array([0.0, 2.0, 0.0]), np.array([0.0, 3.0, 2.0])], np.ones(3))
    assert base == pytest.approx([0, 12, 0]) and power == pytest.approx([0, 8 * np.log(2), 0])


def test_not_a_number_passes_as_in_numpy(differentiate):
    x, y = np.array([np.nan, 1, np.nan, 2]), np.array([1, np.nan, np.nan, 1.0])
    for expr, function in {"max(x, y)": np.maximum, "min(x, y)": np.minimum, "x < y": np.less, "x == y": np.equal}.items():
        np.testing.assert_array_equal(differentiate(expr, [x, y]), function(x, y), err_msg=expr)
    for expr in ("relu(x)", "sign(x)", "max(x)", "clip(x, 0, 1)"):
        assert np.isnan(differentiate(expr, [x])[0]), expr


def test_names(differentiate):
    a, b = inputs_of((2, 3), (3,))
    np.testing.assert_allclose(differentiate("signal * gain_2", [a, b], names=("signal", "gain_2")), a * b, rtol=1e-6)
    many = inputs_of(*[(2,)] * 6)
    np.testing.assert_allclose(differentiate("x + 2*y + 3*z + 4*x3 + 5*x4 + 6*x5", many), sum((k + 1) * each for k, each in enumerate(many)), rtol=1e-5)


@pytest.mark.parametrize("expr", ["x * x + x", "x - mean(x, axis=0)", "max(x, 0.5) / 2"])
def test_in_place_is_the_same(write, expr):
    """A top with the bottom's name; the layer before it is not its own input."""
    found = []
    for top in ("p", "y"):
        net = caffe.Net(write(
            "force_backward: true layer { name: 'x0' type: 'Input' top: 'x0' input_param { shape { dim: 4 dim: 3 } } } "
            "layer { name: 'p' type: 'Power' bottom: 'x0' top: 'p' power_param { scale: 1.5 } } "
            f"layer {{ name: 'l' type: 'Expression' bottom: 'p' top: '{top}' expression_param {{ expr: '{expr}' }} }} "
            f"layer {{ name: 't' type: 'TanH' bottom: '{top}' top: 'z' }}"), caffe.TRAIN)
        net.blobs["x0"].data[...] = np.linspace(-1, 1, 12).reshape(4, 3)
        y = net.forward()["z"].copy()
        net.blobs["z"].diff[...] = 1
        net.backward()
        found.append((y, net.blobs["x0"].diff.copy()))
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind,tolerance", [("FLOAT", 1e-5), ("FLOAT16", 5e-3), ("BFLOAT16", 3e-2)])
def test_types(differentiate, kind, tolerance):
    """Whole blocks, a rest, and broadcast operands; numbers between operations are not rounded."""
    x, b = inputs_of((2, 3, 701), (3, 1))
    y, (dx, db) = differentiate("x * sigmoid(1.702 * x) + tanh(y)", [x, b], np.ones((2, 3, 701)), kind=kind)
    np.testing.assert_allclose(y, x * sigmoid(1.702 * x) + np.tanh(b), atol=tolerance * 4)
    s = sigmoid(1.702 * x)
    np.testing.assert_allclose(dx, s + 1.702 * x * s * (1 - s), atol=tolerance * 4)
    np.testing.assert_allclose(db, 1402 * (1 - np.tanh(b)**2), rtol=tolerance * 4)


def test_images_may_be_channels_last(write):
    """A formula follows the layout of a convolution; an operand per channel stays plain."""
    text = ("layer { name: 'x0' type: 'Input' top: 'x0' input_param { shape { dim: 2 dim: 3 dim: 6 dim: 5 } } } "
            "layer { name: 'b' type: 'Input' top: 'b' input_param { shape { dim: 16 dim: 1 dim: 1 } } } "
            "layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 16 kernel_size: 3 pad: 1 "
            "weight_filler { type: 'xavier' } } } "
            "layer { name: 'l' type: 'Expression' bottom: 'c' bottom: 'b' top: 'y' expression_param { expr: 'x * y + tanh(x)' } } "
            "layer { name: 'd' type: 'Convolution' bottom: 'y' top: 'd' convolution_param { num_output: 16 kernel_size: 3 "
            "weight_filler { type: 'xavier' } } }")
    net = caffe.Net(write(text), caffe.TEST)
    net.blobs["x0"].data[...], net.blobs["b"].data[...] = inputs_of((2, 3, 6, 5), (16, 1, 1))
    net.forward()
    c, b = net.blobs["c"].data, net.blobs["b"].data
    np.testing.assert_allclose(net.blobs["y"].data, c * b + np.tanh(c), rtol=1e-5, atol=1e-6)


def test_other_shapes_after_reshaping(differentiate, write):
    net = caffe.Net(write("layer { name: 'x0' type: 'Input' top: 'x0' input_param { shape { dim: 2 dim: 3 } } } "
                          + expression("x - mean(x, axis=1)", 1)), caffe.TEST)
    net.blobs["x0"].reshape(4, 2, 3)
    x, = inputs_of((4, 2, 3))
    net.blobs["x0"].data[...] = x
    np.testing.assert_allclose(net.forward()["y"], x - x.mean(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize("expr, function", [
    ("max(x * 1.1, axis=1)", lambda x: (x * 1.1).max(1, keepdims=True)),
    ("min(tanh(x), axis=1)", lambda x: np.tanh(x).min(1, keepdims=True)),
    ("max(x * sigmoid(x), axis=1) + x", lambda x: (x / (1 + np.exp(-x))).max(1, keepdims=True) + x)])
def test_the_gradient_of_a_largest_function_reaches_it_in_every_type(differentiate, kind, expr, function):
    """The element that is largest is found again, although its function is not stored."""
    x = RANDOM.permuted(np.tile(np.linspace(-1.5, 1.5, 32), (8, 1)), axis=1).astype(np.float16).astype(float)
    y = function(x)
    _, (dx,) = differentiate(expr, [x], np.ones(y.shape), kind=kind)
    np.testing.assert_allclose(dx, numeric(function, [x], np.ones(y.shape))[0], rtol=0.01, atol=0.02)


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("expr, x, wanted", [
    ("x * rsqrt(mean(square(x), axis=1))", 300, 1), ("log(sum(exp(x), axis=1))", 20, 20 + math.log(8)),
    ("mean(square(x))", 300, 90000)])
def test_what_lies_between_reductions_has_the_range_of_float(differentiate, kind, expr, x, wanted):
    np.testing.assert_allclose(differentiate(expr, [np.full((2, 8), float(x))]), wanted, rtol=0.01)


def test_the_gradient_of_a_power_of_0_is_0(differentiate):
    y, (dx,) = differentiate("x ^ 0", [np.array([0.0, 2.0])], np.ones(2))
    assert y.tolist() == [1, 1] and dx.tolist() == [0, 0]

"""Compares MatMul and BatchReduction with NumPy."""
import caffe
import numpy as np
import pytest

RANDOM = np.random.default_rng(5)


def matmul(options=""):
    return f"layer {{ name: 'l' type: 'MatMul' bottom: 'x0' bottom: 'x1' top: 'y' matmul_param {{ {options} }} }}"


@pytest.mark.parametrize("outer", [(), (3,), (2, 3)])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul(run_layer, outer, transpose_a, transpose_b):
    a, b = RANDOM.standard_normal((*outer, 4, 5)), RANDOM.standard_normal((*outer, 5, 6))
    options = f"transpose_a: {str(transpose_a).lower()} transpose_b: {str(transpose_b).lower()}"
    y = run_layer(matmul(options), np.swapaxes(a, -1, -2) if transpose_a else a,
                  np.swapaxes(b, -1, -2) if transpose_b else b)["y"]
    assert y.shape == (*outer, 4, 6) and y == pytest.approx(a @ b, abs=1e-5)


@pytest.mark.parametrize("of_a, of_b", [((3,), ()), ((), (3,)), ((2, 1), (1, 3)), ((2, 3), (3,)), ((2, 1, 2), (2, 3, 1)), ((1, 1), (2, 3)), ((2, 3, 2), (1, 3, 1))])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matrices_are_broadcast(run_layer, of_a, of_b, transpose_a, transpose_b):
    a, b = RANDOM.standard_normal((*of_a, 4, 5)), RANDOM.standard_normal((*of_b, 5, 6))
    options = f"transpose_a: {str(transpose_a).lower()} transpose_b: {str(transpose_b).lower()}"
    y = run_layer(matmul(options), np.swapaxes(a, -1, -2) if transpose_a else a,
                  np.swapaxes(b, -1, -2) if transpose_b else b)["y"]
    assert y.shape == (a @ b).shape and y == pytest.approx(a @ b, abs=1e-5)


@pytest.mark.parametrize("a, b, message", [
    ((4, 5), (4, 5), "have 5 columns, those of bottom 1 .* 4 rows; they must be equal"),
    ((2, 4, 5), (3, 5, 6), "before the last two axes they must have equal axes, or axes of 1"),
    ((4,), (4,), "at least 2"),
])
def test_shapes_that_do_not_fit_are_refused(run_layer, a, b, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(matmul(), np.zeros(a), np.zeros(b))


def reduction(options):
    return f"layer {{ name: 'l' type: 'BatchReduction' bottom: 'x0' top: 'y' batch_reduction_param {{ {options} }} }}"


X = RANDOM.standard_normal((2, 5, 3, 4))


def test_batch_reduction_takes_one_axis_away(run_layer):
    for options, want in (("", X.sum(0)), ("level: 1", X.sum(0)),
                          ("reduction_param { axis: 1 operation: MEAN }", X.mean(1)),
                          ("reduction_param { axis: -1 coeff: 0.5 }", X.sum(3) / 2)):
        y = run_layer(reduction(options), X)["y"]
        assert y.shape == want.shape and y == pytest.approx(want, abs=1e-5), options


def test_levels_are_runs_of_squares(run_layer):
    y = run_layer(reduction("level: 1 level: 2 reduction_param { axis: 1 operation: MEAN }"), X)["y"]
    assert y == pytest.approx(np.stack([X[:, 0], X[:, 1:].mean(1)], 1), abs=1e-5)
    y = run_layer(reduction("level: 2 reduction_param { axis: 3 }"), X)["y"]
    assert y == pytest.approx(X.sum(3, keepdims=True), abs=1e-5)


def test_by_position_only_the_diagonal_counts(run_layer):
    x = RANDOM.standard_normal((3, 4, 4, 2))
    for options, want in (("", np.einsum("nttc->nc", x) / 4), ("level: 2", np.einsum("nttc->nc", x)[:, None] / 4)):
        y = run_layer(reduction(f"pos: true {options} reduction_param {{ axis: 1 operation: MEAN }}"), x)["y"]
        assert y.shape == want.shape and y == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("options, message", [
    ("reduction_param { operation: ASUM }", "operation is ASUM; only SUM and MEAN"),
    ("level: 0", "level is 0; it must be in 1..46340"),
    ("level: 2 level: 3 reduction_param { axis: 1 }", "the levels have 13 parts, axis 1 .* has 5 elements"),
    ("pos: true level: 1 level: 2", "there are 2 levels; leave out all but one"),
    ("pos: true reduction_param { axis: 1 }", "needs two equal axes from axis 1 on"),
    ("reduction_param { axis: 4 }", "axis 4"),
])
def test_reductions_that_do_not_fit_are_refused(run_layer, options, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(reduction(options), X)

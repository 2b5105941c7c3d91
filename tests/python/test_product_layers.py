"""Compares MatMul, BatchReduction, LayerScale and PatchEmbed with NumPy."""
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


def test_layer_scale(run_layer):
    layer = "layer { name: 'l' type: 'LayerScale' bottom: 'x0' top: 'y' layer_scale_param { initial: 0.25 } }"
    assert (run_layer(layer, X)["y"] == np.float32(0.25 * X)).all()
    scale = RANDOM.standard_normal(4)
    assert run_layer(layer, X, params=(scale,))["y"] == pytest.approx(X * scale, abs=1e-6)
    assert run_layer(layer.replace("initial: 0.25", ""), X)["y"] == pytest.approx(1e-5 * X)
    assert run_layer(layer, X[0, 0, 0], params=(scale,))["y"] == pytest.approx(X[0, 0, 0] * scale, abs=1e-6)


def patch_embed(options="num_output: 5 patch_size: 2", kind="PatchEmbed", field="patch_embed_param"):
    return f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' top: 'y' {field} {{ {options} }} }}"


def test_patch_embed_is_a_convolution_by_rows(run_layer):
    x, weights, bias = RANDOM.standard_normal((2, 3, 4, 6)), RANDOM.standard_normal((5, 3, 2, 2)), RANDOM.standard_normal(5)
    y = run_layer(patch_embed(), x, params=(weights, bias))["y"]
    patches = [x[:, :, 2 * i:2 * i + 2, 2 * j:2 * j + 2].reshape(2, -1) for i in range(2) for j in range(3)]
    assert y.shape == (2, 6, 5) and y == pytest.approx(np.stack(patches, 1) @ weights.reshape(5, -1).T + bias, abs=1e-5)
    convolution = patch_embed("num_output: 5 kernel_size: 2 stride: 2", "Convolution", "convolution_param")
    images = run_layer(convolution, x, params=(weights, bias))["y"]
    assert y == pytest.approx(images.reshape(2, 5, 6).swapaxes(1, 2), abs=1e-5)


@pytest.mark.parametrize("layer, shape, message", [
    (patch_embed(""), (1, 3, 16, 16), "num_output is 0; set patch_embed_param { num_output } to at least 1"),
    (patch_embed("num_output: 2 patch_size: 0"), (1, 3, 16, 16), "patch_size is 0; it must be at least 1"),
    (patch_embed(), (3, 4, 4), "needs a bottom with 4 axes .*, got shape 3x4x4"),
    (patch_embed(), (1, 3, 5, 4), r"images of 5x4 cannot be divided into patches of 2x2 \(patch_size\)"),
    (patch_embed(), (1, 3, 4, 5), "images of 4x5 cannot be divided"),
    ("layer { name: 'l' type: 'LayerScale' bottom: 'x0' top: 'y' }", (), "the bottom is a scalar; it must have an axis"),
])
def test_patches_and_scales_that_do_not_fit_are_refused(run_layer, layer, shape, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(layer, np.zeros(shape))

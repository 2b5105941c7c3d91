"""Compares BN, SyncBN, LayerNorm, RMSNorm, GroupNorm and InstanceNorm with NumPy."""
import caffe
import numpy as np
import pytest

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((4, 3, 5, 2)) * 2 + 1
SLOPE, BIAS, MEAN = (RANDOM.standard_normal((1, 3, 1, 1)) for _ in range(3))
VARIANCE = RANDOM.uniform(0.5, 2, (1, 3, 1, 1))


def bn(options="", kind="BN"):
    return f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' top: 'y' {options} }}"


def normalised(x, mean, variance, eps):
    return SLOPE * (x - mean) / np.sqrt(variance + eps) + BIAS


@pytest.mark.parametrize("kind", ["BN", "SyncBN"])
def test_bn_uses_the_batch_in_training_and_running_statistics_in_testing(run_layer, kind):
    axes = (0, 2, 3)
    batch = X.mean(axes, keepdims=True), X.var(axes, keepdims=True)
    y = run_layer(bn("bn_param { eps: 0.01 }", kind), X, params=(SLOPE, BIAS), train=True)["y"]
    assert y == pytest.approx(normalised(X, *batch, 0.01), abs=1e-5)
    y = run_layer(bn("", kind), X, params=(SLOPE, BIAS, MEAN, VARIANCE))["y"]
    assert y == pytest.approx(normalised(X, MEAN, VARIANCE, 1e-5), abs=1e-5)


def test_a_frozen_bn_has_given_statistics_and_learns_nothing(run_layer):
    frozen = "bn_param { frozen: true }"
    y = run_layer(bn(frozen), X, params=(SLOPE, BIAS, MEAN, VARIANCE), train=True)["y"]
    assert y == pytest.approx(normalised(X, MEAN, VARIANCE, 1e-5), abs=1e-5)
    assert run_layer(bn(frozen), X, train=True)["y"] == pytest.approx(X, rel=1e-4)


def test_momentum_is_the_share_that_running_statistics_keep(write):
    net = caffe.Net(write("layer { name: 'x0' type: 'Input' top: 'x0' input_param { shape { dim: 4 dim: 3 dim: 5 "
                          "dim: 2 } } } " + bn("bn_param { momentum: 0.75 }")), caffe.TRAIN)
    net.blobs["x0"].data[...] = X
    assert [blob.data.shape for blob in net.params["l"]] == [(1, 3, 1, 1)] * 4
    mean, variance = X.mean((0, 2, 3)), X.var((0, 2, 3))
    for share in (0.25, 0.25 + 0.75 * 0.25):
        net.forward()
        assert net.params["l"][2].data.ravel() == pytest.approx(share * mean, rel=1e-4)
        assert net.params["l"][3].data.ravel() == pytest.approx(share * variance, rel=1e-4)


def test_bn_of_segnet_has_two_blobs(write, run_layer):
    fillers = "scale_filler { type: 'constant' value: 1 } shift_filler { type: 'constant' value: 0.001 }"
    for train in (True, False):  # also in testing, the batch's statistics
        y = run_layer(bn(f"bn_param {{ {fillers} }}"), X, params=(SLOPE, BIAS), train=train)["y"]
        want = normalised(X, X.mean((0, 2, 3), keepdims=True), X.var((0, 2, 3), keepdims=True), 1e-9)
        assert y == pytest.approx(want, abs=1e-5)
        y = run_layer(bn(f"bn_param {{ bn_mode: INFERENCE {fillers} }}"), X, params=(SLOPE, BIAS), train=train)["y"]
        assert y == pytest.approx(SLOPE * X + BIAS, abs=1e-5)


@pytest.mark.parametrize("tops", [2, 3])
def test_bn_of_segnet_gives_the_batchs_statistics(run_layer, tops):
    names = ("mean", "variance")[:tops - 1]
    layer = bn(" ".join(f"top: '{name}'" for name in names) + " bn_param { scale_filler { value: 1 } }")
    for train in (True, False):
        blobs = run_layer(layer, X, params=(SLOPE, BIAS), train=train)
        mean, variance = X.mean((0, 2, 3), keepdims=True), X.var((0, 2, 3), keepdims=True)
        assert blobs["y"] == pytest.approx(normalised(X, mean, variance, 1e-9), abs=1e-5)
        for name, want in zip(names, (mean, variance)):
            assert blobs[name].shape == (1, 3, 1, 1) and blobs[name] == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("options", ["", "bn_param { bn_mode: INFERENCE }"])
def test_other_bns_have_one_top(run_layer, options):
    with pytest.raises(caffe.InvalidArgument, match="takes at most 1 top"):
        run_layer(bn(f"top: 'mean' {options}"), X)


def test_layer_norm(run_layer):
    for axis, axes in ((-1, (3,)), (1, (1, 2, 3)), (2, (2, 3))):
        scale, bias = (RANDOM.standard_normal(X.shape[axis:]) for _ in range(2))
        want = (X - X.mean(axes, keepdims=True)) / np.sqrt(X.var(axes, keepdims=True) + 0.01)
        layer = "layer {{ name: 'l' type: 'LayerNorm' bottom: 'x0' top: 'y' layer_norm_param {{ axis: {} eps: 0.01 {} }} }}"
        assert run_layer(layer.format(axis, "affine: false"), X)["y"] == pytest.approx(want, abs=1e-5)
        assert run_layer(layer.format(axis, ""), X)["y"] == pytest.approx(want, abs=1e-5)
        y = run_layer(layer.format(axis, ""), X, params=(scale, bias))["y"]
        assert y == pytest.approx(want * scale + bias, abs=1e-5)


def test_rms_norm(run_layer):
    for axis, axes in ((-1, (3,)), (1, (1, 2, 3)), (2, (2, 3))):
        scale = RANDOM.standard_normal(X.shape[axis:])
        want = X / np.sqrt((X * X).mean(axes, keepdims=True) + 0.01)
        layer = "layer {{ name: 'l' type: 'RMSNorm' bottom: 'x0' top: 'y' rms_norm_param {{ axis: {} eps: 0.01 {} }} }}"
        assert run_layer(layer.format(axis, "affine: false"), X)["y"] == pytest.approx(want, abs=1e-5)
        assert run_layer(layer.format(axis, ""), X)["y"] == pytest.approx(want, abs=1e-5)
        assert run_layer(layer.format(axis, ""), X, params=(scale,))["y"] == pytest.approx(want * scale, abs=1e-5)


def by_groups(x, groups, eps):
    rows = x.reshape(x.shape[0], groups, -1)
    return ((rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + eps)).reshape(x.shape)


@pytest.mark.parametrize("shape", [(4, 6, 5, 2), (4, 6, 7), (3, 6, 2, 2, 2)])
@pytest.mark.parametrize("kind, options, groups", [
    ("GroupNorm", "num_groups: 1", 1), ("GroupNorm", "num_groups: 2", 2), ("GroupNorm", "num_groups: 6", 6), ("InstanceNorm", "", 6)])
def test_group_norm(run_layer, shape, kind, options, groups):
    x = RANDOM.standard_normal(shape) * 2 + 1
    scale, bias = RANDOM.standard_normal((2, 6))
    layer = f"group_norm_param {{ eps: 0.01 {options} AFFINE }}"
    want, by_channel = by_groups(x, groups, 0.01), (6, *[1] * (len(shape) - 2))
    for train in (False, True):
        assert run_layer(bn(layer.replace("AFFINE", "affine: false"), kind), x, train=train)["y"] == pytest.approx(want, abs=1e-5)
        assert run_layer(bn(layer.replace("AFFINE", ""), kind), x, train=train)["y"] == pytest.approx(want, abs=1e-5)
        y = run_layer(bn(layer.replace("AFFINE", ""), kind), x, params=(scale, bias), train=train)["y"]
        assert y == pytest.approx(want * scale.reshape(by_channel) + bias.reshape(by_channel), abs=1e-5)


def test_a_group_is_32_channels_unless_told_otherwise(run_layer):
    x = RANDOM.standard_normal((2, 64, 3))
    assert run_layer(bn("", "GroupNorm"), x)["y"] == pytest.approx(by_groups(x, 32, 1e-5), abs=1e-5)


def test_items_without_further_axes_have_groups_too(run_layer):
    x = RANDOM.standard_normal((3, 6))
    assert run_layer(bn("group_norm_param { num_groups: 2 }", "GroupNorm"), x)["y"] == pytest.approx(by_groups(x, 2, 1e-5), abs=1e-5)


@pytest.mark.parametrize("dtype, tolerance", [("BFLOAT16", 5e-2), ("FLOAT16", 1e-2)])
def test_group_norm_of_16_bits(write, dtype, tolerance):
    x = RANDOM.standard_normal((2, 6, 5, 7)) * 2 + 1
    net = caffe.Net(write(f"default_forward_type: {dtype} layer {{ name: 'x' type: 'Input' top: 'x0' input_param {{ shape {{ dim: 2 dim: 6 "
                          "dim: 5 dim: 7 } } } " + bn("group_norm_param { num_groups: 3 }", "GroupNorm")), caffe.TEST)
    net.blobs["x0"].data[...] = x
    assert net.forward()["y"] == pytest.approx(by_groups(x, 3, 1e-5), abs=tolerance)


@pytest.mark.parametrize("layer, message", [
    (bn("bn_param { bn_mode: LEARN momentum: 0.9 }"), "options of SegNet .* and of PSPNet"),
    (bn("bn_param { momentum: 1.5 }"), "momentum is 1.5; it is the share that is kept"),
    (bn("layer_norm_param { affine: false bias_filler { value: 1 } }", "LayerNorm"), "affine is false, but there is a filler"),
    (bn("layer_norm_param { axis: 4 }", "LayerNorm"), "axis 4"),
    (bn("rms_norm_param { affine: false scale_filler { value: 2 } }", "RMSNorm"), "affine is false, but there is a filler"),
    (bn("rms_norm_param { axis: 4 }", "RMSNorm"), "axis 4"),
    *((bn(f"group_norm_param {{ affine: false {filler} {{ value: 1 }} }}", kind), "affine is false, but there is a filler for the scale or the bias")
      for kind in ("GroupNorm", "InstanceNorm") for filler in ("scale_filler", "bias_filler")),
    (bn("group_norm_param { num_groups: 3 }", "InstanceNorm"), "InstanceNorm has a group for each channel; leave out num_groups, or use GroupNorm"),
    (bn("group_norm_param { num_groups: 0 }", "GroupNorm"), "num_groups is 0; it must be at least 1"),
    (bn("group_norm_param { num_groups: 2 }", "GroupNorm"), "the 3 channels cannot be divided into 2 groups; change num_groups"),
])
def test_options_that_contradict_are_refused(run_layer, layer, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(layer, X)


@pytest.mark.parametrize("kind", ["BN", "GroupNorm", "InstanceNorm"])
def test_a_vector_has_no_channels(run_layer, kind):
    with pytest.raises(caffe.InvalidArgument, match="must have items and channels"):
        run_layer(bn("", kind), X[0, 0, :, 0])


@pytest.mark.parametrize("kind", ["BatchNorm", "BN", "GroupNorm", "LayerNorm", "MVN", "Normalize", "RMSNorm", "SyncBN"])
@pytest.mark.parametrize("eps", ["-1", "nan"])
def test_eps_that_is_no_small_number_is_refused(write, kind, eps):
    field = {"BatchNorm": "batch_norm", "BN": "bn", "GroupNorm": "group_norm", "LayerNorm": "layer_norm", "MVN": "mvn",
             "Normalize": "norm", "RMSNorm": "rms_norm", "SyncBN": "bn"}[kind]
    with pytest.raises(caffe.InvalidArgument, match=f"eps is {eps}; it is added to what is divided by"):
        caffe.Net(write("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 dim: 3 dim: 3 } } }"
                        f"layer {{ name: 'l' type: '{kind}' bottom: 'x' top: 'y' {field}_param {{ eps: {eps} }} }}"), caffe.TEST)

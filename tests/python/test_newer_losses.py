"""Compares losses that Caffe does not have with NumPy."""
import caffe
import numpy as np
import pytest

from test_broadcast_layers import gradients

X = np.random.default_rng(2).normal(0, 2, (3, 4, 5))


def loss_of(run_layer, kind, x, t, options=""):
    return float(run_layer(f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' bottom: 'x1' top: 'y' {options} }}", x, t)["y"])


def dx_of(write, kind, x, t, options=""):
    layer = f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' bottom: 'x1' top: 'y' propagate_down: true propagate_down: false {options} }}"
    return gradients(write, layer, [x, t], 1)[0]


def distribution(x):
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


@pytest.mark.parametrize("normalization, divisor", [("", 3), ("normalization: NONE", 1), ("normalization: FULL", 60),
                                                    ("normalization: PRE_FIXED pre_fixed_normalizer: 7", 7)])
@pytest.mark.parametrize("log_target", [False, True])
def test_divergence_of_distributions(run_layer, write, normalization, divisor, log_target):
    x, t = np.log(distribution(X)), distribution(X[::-1])
    t[0, 0] = 0 if not log_target else t[0, 0]
    options = f"kl_div_loss_param {{ log_target: {str(log_target).lower()} }} loss_param {{ {normalization} }}"
    terms = np.where(t > 0, t * (np.log(np.maximum(t, 1e-300)) - x), 0)
    target = np.log(t) if log_target else t
    assert loss_of(run_layer, "KLDivLoss", x, target, options) == pytest.approx(terms.sum() / divisor, rel=1e-6)
    assert np.allclose(dx_of(write, "KLDivLoss", x, target, options), -t / divisor, rtol=1e-6)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("smooth", [0, 1, 0.25])
def test_overlap_of_masks(run_layer, squares, smooth):
    p, t = 1 / (1 + np.exp(-X)), (X[::-1] > 0.5).astype(float)
    p[0, 1], t[0, 1] = 0, 0  # neither has anything
    exponent = 2 if squares else 1
    overlap, areas = (p * t).sum(2), (p ** exponent + t ** exponent).sum(2)
    divisor = areas + smooth
    terms = np.where(divisor == 0, 0, 1 - (2 * overlap + smooth) / np.where(divisor == 0, 1, divisor))
    options = f"dice_loss_param {{ smooth: {smooth} squares: {str(squares).lower()} }}"
    assert loss_of(run_layer, "DiceLoss", p, t, options) == pytest.approx(terms.mean(), rel=1e-6)


def test_a_perfect_mask_has_no_loss(run_layer):
    t = (X > 0).astype(float)
    assert loss_of(run_layer, "DiceLoss", t, t) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("weight", [0.25, 1, 3])
def test_positives_have_a_weight(run_layer, write, weight):
    t = np.random.default_rng(1).choice([0, 0.3, 1], X.shape)
    p = 1 / (1 + np.exp(-X))
    options = f"loss_param {{ positive_weight: {weight} }}"
    terms = -(weight * t * np.log(p) + (1 - t) * np.log(1 - p))
    assert loss_of(run_layer, "SigmoidCrossEntropyLoss", X, t, options) == pytest.approx(terms.sum() / 3, rel=1e-6)
    want = ((1 - t) * p - weight * t * (1 - p)) / 3
    assert np.allclose(dx_of(write, "SigmoidCrossEntropyLoss", X, t, options), want, rtol=1e-5, atol=1e-8)


def test_weighted_losses_do_not_overflow(run_layer):
    x, t = np.array([[-1000.0, 1000.0]]), np.array([[1.0, 0.0]])
    assert loss_of(run_layer, "SigmoidCrossEntropyLoss", x, t, "loss_param { positive_weight: 3 }") == 4000


@pytest.mark.parametrize("kind, options, shapes, message", [
    ("DiceLoss", "dice_loss_param { smooth: -1 }", [(2, 3), (2, 3)], "smooth is -1; it must be a number from 0 up"),
    ("DiceLoss", "", [(2, 3), (2, 4)], "the bottoms have shapes 2x3 and 2x4; scores and targets must have one shape"),
    ("DiceLoss", "", [(3,), (3,)], "with items and channels"),
    ("KLDivLoss", "", [(2, 3), (2, 4)], "the bottoms have shapes 2x3 and 2x4; they must have as many elements"),
    ("SigmoidCrossEntropyLoss", "loss_param { positive_weight: 0 }", [(2, 3), (2, 3)], "positive_weight is 0; it must be above 0"),
    ("SigmoidCrossEntropyLoss", "loss_param { positive_weight: nan }", [(2, 3), (2, 3)], "positive_weight is nan"),
])
def test_what_does_not_fit_is_refused(run_layer, kind, options, shapes, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        loss_of(run_layer, kind, *map(np.zeros, shapes), options)


LOGITS = np.array([[50, 0, -50], [100, 0, -100], [1, 2, 3]], np.float64)


def log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


@pytest.mark.parametrize("types", ["FLOAT", "BFLOAT16", "FLOAT16"])
def test_distillation_from_large_scores(write, types):
    """Where Softmax and Log overflow: a probability of 0 has no logarithm."""
    targets = np.array([[0.7, 0.2, 0.1]] * 3)
    text = "".join(f"default_{way}_{what}: {types}\n" for way in ("forward", "backward") for what in ("type", "math"))
    net = caffe.Net(write(text + """force_backward: true
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 3 dim: 3 } } }
layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 3 dim: 3 } } }
layer { name: "log" type: "LogSoftmax" bottom: "x" top: "log" }
layer { name: "loss" type: "KLDivLoss" bottom: "log" bottom: "t" top: "loss" }"""), caffe.TRAIN)
    net.blobs["x"].data[...], net.blobs["t"].data[...] = LOGITS, targets
    wanted = (targets * (np.log(targets) - log_softmax(LOGITS))).sum() / 3
    tolerance = 1e-5 if types == "FLOAT" else 1e-2
    assert net.forward()["loss"] == pytest.approx(wanted, rel=tolerance)
    net.backward()
    assert net.blobs["x"].diff == pytest.approx((np.exp(log_softmax(LOGITS)) - targets) / 3, abs=tolerance)


def ctc(options="", lengths=(4, 2, 0), labels=(2, 2, 1)):
    return f"""force_backward: true
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 4 dim: 3 dim: 5 }} }} }}
layer {{ name: "lengths" type: "Input" top: "lengths" input_param {{ shape {{ dim: 3 }} }} }}
layer {{ name: "counts" type: "Input" top: "counts" input_param {{ shape {{ dim: 3 }} }} }}
layer {{ name: "labels" type: "Input" top: "labels" input_param {{ shape {{ dim: 2 dim: 3 }} }} }}
layer {{ name: "loss" type: "CTCLoss" bottom: "x" bottom: "lengths" bottom: "counts" bottom: "labels" top: "loss" ctc_loss_param {{ {options} }} }}"""


def test_ctc_leaves_out_sequences_that_are_too_short(write):
    def loss(options, lengths):
        net = caffe.Net(write(ctc(options)), caffe.TRAIN)
        net.blobs["x"].data[...] = np.random.default_rng(4).standard_normal((4, 3, 5))
        net.blobs["lengths"].data[...], net.blobs["counts"].data[...] = lengths, (2, 2, 1)
        net.blobs["labels"].data[...] = [[1, 3, 0], [2, 3, 0]]  # equal ones need a blank between them: 3 steps
        value = net.forward()["loss"].copy()
        net.backward()
        return value, net.blobs["x"].diff.copy()
    with pytest.raises(caffe.InvalidArgument, match="sequence 1 has 2 time steps after output_delay; its 2 labels need at least 3; give "
                       "fewer labels, or set zero_infinity"):
        loss("", (4, 2, 0))
    alone, gradient = loss("", (4, 0, 0))
    value, with_short = loss("zero_infinity: true", (4, 2, 0))
    assert value == alone > 0 and (with_short == gradient).all() and not with_short[:, 1:].any() and with_short[:, 0].any()

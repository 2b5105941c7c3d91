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

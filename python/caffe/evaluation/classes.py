"""Metrics of classifiers."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from .. import InvalidArgument
from .._packages import need

MOST_CONFUSIONS = 50
_ROUNDING = 1e-3  # that probabilities may exceed 1 by, as sums in half precision do


def probabilities_of(scores: np.ndarray) -> np.ndarray:
    """Softmax over the last axis, in float64: the probabilities that SoftmaxWithLoss compares with the labels.

    scores: (N, C), any real numbers. Returns (N, C); each row has the sum 1.
    """
    scores = np.asarray(scores, np.float64)
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def log_loss(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Mean of -log of the probability of the label, in nats: SoftmaxWithLoss's loss.

    labels: (N,), from 0 to C - 1. probabilities: (N, C), from 0 to 1, raised to at least 1.2e-38 (the
    smallest normal float), as in SoftmaxWithLoss.
    """
    labels, probabilities = _checked(labels, probabilities)
    _require_probabilities(probabilities)
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    return float(-np.log(np.maximum(own, np.finfo(np.float32).tiny)).mean()) + 0.0  # not -0


def calibration(confidences: np.ndarray, is_right: np.ndarray, bins: int = 15) -> Dict[str, Any]:
    """Expected calibration error (Guo et al. 2017, "On calibration of modern neural networks").

    confidences: (N,), probabilities of the predicted classes, from 0 to 1. is_right: (N,), bool.
    Returns "expected_error", the mean over all items of |accuracy - confidence| of their bin, and
    "bins" of equal width, each (low, high] with "count", "confidence" and "accuracy" (means; None
    for an empty bin).
    """
    confidences, is_right = np.asarray(confidences, np.float64), np.asarray(is_right, bool)
    if len(confidences) == 0 or confidences.shape != is_right.shape:
        raise InvalidArgument(f"calibration: {confidences.shape} confidences and {is_right.shape} answers; give one of each for "
                              "every item, and one item at least")
    if bins < 1:
        raise InvalidArgument(f"calibration: bins is {bins}; give 1 or more")
    _require_probabilities(confidences)
    edges = np.linspace(0, 1, bins + 1)
    number = np.clip(np.searchsorted(edges, confidences, side="left") - 1, 0, bins - 1)
    rows, error = [], 0.0
    for k in range(bins):
        inside = number == k
        count = int(inside.sum())
        row = dict(low=float(edges[k]), high=float(edges[k + 1]), count=count, confidence=None, accuracy=None)
        if count:
            row.update(confidence=float(confidences[inside].mean()), accuracy=float(is_right[inside].mean()))
            error += count / len(confidences) * abs(row["confidence"] - row["accuracy"])
        rows.append(row)
    return dict(expected_error=error, bins=rows)


def score_classes(labels: np.ndarray, scores: np.ndarray, names: Optional[Sequence[str]] = None,
                  are_probabilities: bool = True) -> Dict[str, Any]:
    """Accuracy, metrics of each class (sklearn.metrics), confusions, calibration and log loss.

    labels: (N,), from 0 to C - 1, N at least 1. scores: (N, C); if not are_probabilities, any numbers
    where the largest wins, and calibration and log loss are omitted. names: of the C classes. The
    first class wins ties.

    A class's "precision" is None if it was never predicted, its "recall" if it has no items. "macro"
    has means over the classes that have items, with 0 for an undefined precision. Row i, column j of
    "confusion_matrix" counts items of class i that were predicted as class j.
    """
    metrics = need("sklearn.metrics")
    labels, scores = _checked(labels, scores)
    count, classes = scores.shape
    if np.isnan(scores).any():
        item = int(np.isnan(scores).any(axis=1).argmax())
        raise InvalidArgument(f"scores of item {item} are not numbers (NaN); look at the weights, they may have diverged")
    if are_probabilities:
        _require_probabilities(scores)
    names = _names(names, classes)
    every = np.arange(classes)
    predicted = scores.argmax(axis=1)
    matrix = metrics.confusion_matrix(labels, predicted, labels=every)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(labels, predicted, labels=every, zero_division=0)
    taken = matrix.sum(axis=0)
    rows = [dict(label=k, name=names[k], precision=float(precision[k]) if taken[k] else None,
                 recall=float(recall[k]) if support[k] else None, f1=float(f1[k]) if support[k] or taken[k] else None,
                 support=int(support[k]), predicted=int(taken[k])) for k in range(classes)]
    has_items = support > 0
    figures: Dict[str, Any] = dict(
        items=count, accuracy=float(metrics.accuracy_score(labels, predicted)), top5_accuracy=None, log_loss=None, calibration=None,
        macro={name: float(values[has_items].mean()) for name, values in (("precision", precision), ("recall", recall), ("f1", f1))},
        classes=rows, confusions=_confusions(matrix, names), confusion_matrix=matrix.tolist())
    if classes > 5:
        own = scores[np.arange(count), labels][:, None]
        better = (scores > own) | ((scores == own) & (every < labels[:, None]))
        figures["top5_accuracy"] = float((better.sum(axis=1) < 5).mean())
    if are_probabilities:
        figures["log_loss"] = log_loss(labels, scores)
        figures["calibration"] = calibration(scores.max(axis=1), predicted == labels)
    return figures


def _confusions(matrix: np.ndarray, names: Sequence[str]) -> List[Dict[str, Any]]:
    """The most frequent confusions, in descending order."""
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    items = matrix.sum(axis=1)
    rows = []
    for place in np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]:
        label, taken_for = np.unravel_index(place, wrong.shape)
        if wrong[label, taken_for] == 0:
            break
        rows.append(dict(label=int(label), name=names[label], taken_for=int(taken_for), taken_for_name=names[taken_for],
                         count=int(wrong[label, taken_for]), share=float(wrong[label, taken_for] / items[label])))
    return rows


def _names(names: Optional[Sequence[str]], classes: int) -> Sequence[str]:
    if not names:
        return [str(label) for label in range(classes)]
    if len(names) < classes:
        raise InvalidArgument(f"there are {len(names)} names for {classes} classes; give one for each")
    return names


def _require_probabilities(values: np.ndarray) -> None:
    wrong = ~((values >= 0) & (values <= 1 + _ROUNDING))  # also NaN
    if wrong.any():
        item, value = int(np.argwhere(wrong)[0, 0]), values[wrong][0]
        raise InvalidArgument(f"item {item} has the probability {value:g}; give numbers from 0 to 1: probabilities_of makes them of "
                              "other scores")


def _checked(labels, scores):
    """Returns labels as integers, and scores as numbers; raises if their shapes do not match, or for other labels."""
    try:
        labels, scores = np.asarray(labels, np.float64), np.asarray(scores)
        scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"labels and scores are not arrays of numbers ({error}); give (N,) and (N, C)") from None
    if scores.ndim != 2 or labels.shape != scores.shape[:1] or len(labels) == 0:
        raise InvalidArgument(f"labels have shape {labels.shape} and scores {scores.shape}; give (N,) and (N, C), N at least 1")
    with np.errstate(invalid="ignore"):
        whole = labels.astype(np.int64)
    wrong = (whole != labels) | (whole < 0) | (whole >= scores.shape[1])
    if wrong.any():
        item = int(wrong.argmax())
        raise InvalidArgument(f"item {item} has the label {labels[item]:g}, but there are scores for classes 0 to {scores.shape[1] - 1}; "
                              "labels are whole numbers in this range")
    return whole, scores

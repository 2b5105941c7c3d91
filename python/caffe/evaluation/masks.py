"""Metrics of segmentation nets, which give each pixel a class."""
from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

import numpy as np

from .. import InvalidArgument


def confusion_of_masks(labels: np.ndarray, predicted: np.ndarray, classes: int, ignored: Optional[int] = None) -> np.ndarray:
    """Counts pixels: row i, column j has those of class i that were predicted as class j.

    labels, predicted: whole numbers from 0 to classes - 1, in arrays of equal shape; pixels whose
    label is `ignored` do not count. Returns (classes, classes), int64; sum matrices over images.
    """
    labels, predicted = np.asarray(labels).ravel(), np.asarray(predicted).ravel()
    if labels.shape != predicted.shape:
        raise InvalidArgument(f"there are {labels.size} labels for {predicted.size} pixels; both need the same shape")
    if ignored is not None:
        counted = labels != ignored
        labels, predicted = labels[counted], predicted[counted]
    rows = _classes_of(labels, classes, "label", "labels are whole numbers in this range, or the one that the loss ignores")
    columns = _classes_of(predicted, classes, "prediction", "predictions are whole numbers in this range")
    return np.bincount(classes * rows + columns, minlength=classes * classes).reshape(classes, classes)


def _classes_of(pixels: np.ndarray, classes: int, what: str, advice: str) -> np.ndarray:
    """The pixels as integers from 0 to classes - 1; raises InvalidArgument for others."""
    with np.errstate(invalid="ignore"):
        whole = pixels.astype(np.int64)
    wrong = (whole != pixels) | (whole < 0) | (whole >= classes)
    if wrong.any():
        raise InvalidArgument(f"a pixel has the {what} {pixels[wrong.argmax()]:g}, but there are scores for classes 0 to {classes - 1}; {advice}")
    return whole


def score_masks(confusion: np.ndarray, names: Optional[Sequence[str]] = None) -> Dict[str, Any]:
    """Intersection over union, and pixel accuracy (Long et al. 2015, "Fully convolutional networks").

    confusion: (C, C) from confusion_of_masks. A class that occurs neither in labels nor in predictions
    has no "iou" (None) and is not part of "mean_iou". "mean_accuracy" is the mean of the classes'
    "accuracy", the share of their pixels that were predicted correctly.
    """
    given = np.asarray(confusion, np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not ((given >= 0) & (given == np.floor(given))).all():
        raise InvalidArgument(f"confusion has shape {given.shape}; give (C, C) counts of pixels, as confusion_of_masks does")
    confusion = np.asarray(confusion).astype(np.int64)
    if names and len(names) < len(confusion):
        raise InvalidArgument(f"there are {len(names)} names for {len(confusion)} classes; give one for each")
    right, has, taken = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    union = has + taken - right
    if union.sum() == 0:
        raise InvalidArgument("no pixel has a label; all of them are ignored")
    names = names or [str(label) for label in range(len(confusion))]
    rows = [dict(label=k, name=names[k], iou=float(right[k] / union[k]) if union[k] else None,
                 accuracy=float(right[k] / has[k]) if has[k] else None, pixels=int(has[k]), predicted=int(taken[k]))
            for k in range(len(confusion))]
    return dict(mean_iou=_mean(row["iou"] for row in rows), pixel_accuracy=float(right.sum() / has.sum()),
                mean_accuracy=_mean(row["accuracy"] for row in rows), pixels=int(has.sum()), classes=rows,
                confusion_matrix=confusion.tolist())


def _mean(values) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known))

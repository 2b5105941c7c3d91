"""Metrics of object detectors, by VOC's rules (Everingham et al. 2010 and 2012).

Ground truth rows are (image, class, xmin, ymin, xmax, ymax, difficult), detection rows (image, class,
score, xmin, ymin, xmax, ymax). Image numbers are arbitrary integers. Coordinates are fractions of the
image's width and height, as in SSD's layers; overlaps are the same in pixels.
"""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import InvalidArgument

TRUTH, DETECTION = 7, 7  # numbers per row
RULES = ("voc2007", "voc2012", "integral")
_CURVE_POINTS = 200
_FARTHEST = 4  # larger coordinates are taken for pixels


class Matches(NamedTuple):
    """The detections of one class, by descending score.

    rows: (D,), row indices among all detections. scores: (D,). is_right: (D,), bool, True for the
    first detection of an object. counts: (D,), bool, False for detections of a difficult object.
    objects: number of objects to be found.
    """

    rows: np.ndarray
    scores: np.ndarray
    is_right: np.ndarray
    counts: np.ndarray
    objects: int


def overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of a box (4,) with others (K, 4): (xmin, ymin, xmax, ymax). Returns (K,)."""
    box = _rows([box], 4, "box")[0]
    return _overlaps(box, _rows(others, 4, "others"))


def _overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    area = np.prod(np.maximum(box[2:] - box[:2], 0)) + np.prod(np.maximum(others[:, 2:] - others[:, :2], 0), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(common > 0, common / (area - common), 0.0)


def match_boxes(truths: np.ndarray, detections: np.ndarray, label: int, overlap: float = 0.5) -> Matches:
    """Matches the detections of a class with its objects, as the layer DetectionEvaluate does.

    Each detection, clipped to the image, is assigned to the object of its image that it overlaps most,
    provided that the overlap is at least `overlap`, in (0, 1]. The first detection of an object is
    right, later ones are wrong; detections of a difficult object count as neither.
    """
    return _match(*rows_of(truths, detections), label, overlap)


def _match(truths: np.ndarray, detections: np.ndarray, label: int, overlap: float) -> Matches:
    if not 0 < overlap <= 1:
        raise InvalidArgument(f"overlap is {overlap:g}; give a number above 0, up to 1")
    truths = truths[truths[:, 1] == label]
    rows = np.flatnonzero(detections[:, 1] == label)
    scores = np.where(np.isnan(detections[rows, 2]), -np.inf, detections[rows, 2])
    rows = rows[np.argsort(-scores, kind="stable")]
    of_image: Dict[float, np.ndarray] = {image: np.flatnonzero(truths[:, 0] == image) for image in np.unique(truths[:, 0])}
    is_taken = np.zeros(len(truths), bool)
    is_right, counts = np.zeros(len(rows), bool), np.ones(len(rows), bool)
    for k, row in enumerate(rows):
        objects = of_image.get(detections[row, 0])
        if objects is None or np.isnan(detections[row, 2]):
            continue
        common = _overlaps(np.clip(detections[row, 3:7], 0, 1), truths[objects, 2:6])
        best = int(common.argmax())
        if common[best] < overlap:
            continue
        found = objects[best]
        if truths[found, 6]:
            counts[k] = False
        else:
            is_right[k] = not is_taken[found]
            is_taken[found] = True
    return Matches(rows, detections[rows, 2], is_right, counts, int((truths[:, 6] == 0).sum()))


def precision_recall(matches: Matches):
    """Precision and recall after each detection that counts, (D',) each; recall never falls. Recall is
    0 if there are no objects."""
    right = np.cumsum(matches.is_right[matches.counts])
    return right / np.arange(1, len(right) + 1), right / max(matches.objects, 1)


def average_precision(precision: np.ndarray, recall: np.ndarray, rule: str = "voc2012") -> float:
    """precision, recall: from precision_recall. rule:

    voc2007   mean of the largest precision at recall >= 0, 0.1, ..., 1 (caffe test_detection's 11point)
    voc2012   area under the curve of the largest precision at any higher recall (MaxIntegral)
    integral  area under the precision-recall curve itself (Integral, Caffe's own)
    """
    if rule not in RULES:
        raise InvalidArgument(f"rule is '{rule}'; use {', '.join(RULES)}")
    if len(precision) == 0:
        return 0.0
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    if rule == "voc2007":
        places = np.searchsorted(recall, np.arange(11) / 10, side="left")
        return float(sum(envelope[place] for place in places if place < len(envelope)) / 11)
    steps = np.diff(np.concatenate([[0.0], recall]))
    return float(((envelope if rule == "voc2012" else precision) * steps).sum())


def score_boxes(truths: np.ndarray, detections: np.ndarray, labels: Sequence[int], names: Optional[Sequence[str]] = None,
                overlap: float = 0.5, threshold: float = 0.5) -> Dict[str, Any]:
    """Mean average precision by VOC's rules, and metrics of each class.

    labels: the classes, without the background. names: keyed by label. A class without objects has
    no metrics (None) and is not part of the means, which are None if no class has objects.
    "precision" and "recall" of a class count detections whose score is at least `threshold`;
    "best_f1" is the largest harmonic mean of both over all thresholds, "best_threshold" its threshold.
    "curve" has at most 200 points (recall, precision).
    """
    truths, detections = rows_of(truths, detections)
    names = names_by_label(labels, names)
    rows = []
    for label in labels:
        matches = _match(truths, detections, label, overlap)
        precision, recall = precision_recall(matches)
        row: Dict[str, Any] = dict(label=int(label), name=names[label], objects=matches.objects,
                                   detections=len(matches.rows), **{rule: None for rule in RULES}, precision=None, recall=None, best_f1=None,
                                   best_threshold=None, curve=[])
        if matches.objects:
            row.update({rule: average_precision(precision, recall, rule) for rule in RULES})
            shown = int((matches.scores[matches.counts] >= threshold).sum())
            row.update(recall=float(recall[shown - 1]) if shown else 0.0, precision=float(precision[shown - 1]) if shown else None,
                       curve=_thinned(recall, precision), **_best_f1(precision, recall, matches.scores[matches.counts]))
        rows.append(row)
    known = [row for row in rows if row["objects"]]
    return dict(overlap=overlap, threshold=threshold, objects=sum(row["objects"] for row in rows), detections=len(detections),
                **{rule: float(np.mean([row[rule] for row in known])) if known else None for rule in RULES}, classes=rows)


def _best_f1(precision, recall, scores) -> Dict[str, Optional[float]]:
    # Detections with equal scores are accepted or rejected together.
    is_last = np.append(scores[1:] != scores[:-1], True)[:len(scores)]
    f1 = np.where(is_last, 2 * precision * recall / np.maximum(precision + recall, 1e-12), 0)
    if len(f1) == 0 or f1.max() == 0:
        return dict(best_f1=0.0, best_threshold=None)
    return dict(best_f1=float(f1.max()), best_threshold=float(scores[f1.argmax()]))


def _thinned(recall, precision):
    places = np.unique(np.linspace(0, len(recall) - 1, min(len(recall), _CURVE_POINTS)).round().astype(int)) if len(recall) else []
    return [[round(float(recall[place]), 5), round(float(precision[place]), 5)] for place in places]


def rows_of(truths: Any, detections: Any) -> Tuple[np.ndarray, np.ndarray]:
    """Both as arrays. Raises InvalidArgument for other shapes, and for coordinates that are not fractions of the image."""
    truths, detections = _rows(truths, TRUTH, "truths"), _rows(detections, DETECTION, "detections")
    _require_fractions(truths[:, 2:6], "truths", share=0)
    _require_fractions(detections[:, 3:7], "detections", share=0.5)  # a poor detector finds some boxes far outside
    return truths, detections


def _require_fractions(boxes: np.ndarray, what: str, share: float) -> None:
    """Raises InvalidArgument if more than this share of the boxes lies far outside of the image."""
    is_outside = (np.abs(boxes) > _FARTHEST).any(axis=1)
    if is_outside.sum() > share * len(boxes):
        row = int(is_outside.argmax())
        raise InvalidArgument(f"row {row} of {what} has the box ({', '.join(f'{place:g}' for place in boxes[row])}); coordinates are "
                              "fractions from 0 to 1: divide those in pixels by the image's width and height")


def names_by_label(labels: Sequence[int], names: Optional[Sequence[str]]) -> Dict[int, str]:
    """Names of these labels; their numbers without names. Raises InvalidArgument if a label has no name."""
    try:
        return {label: names[label] if names else str(label) for label in labels}
    except LookupError:
        raise InvalidArgument(f"there are {len(names or ())} names, and the highest label is {max(labels)}; give one for each label from 0 "
                              "on") from None


def _rows(values, numbers, what) -> np.ndarray:
    try:
        rows = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{what} are not numbers ({error}); give rows of {numbers}") from None
    if rows.size == 0:
        return np.zeros((0, numbers))
    if rows.ndim != 2 or rows.shape[1] != numbers:
        raise InvalidArgument(f"{what} have shape {rows.shape}; give rows of {numbers} numbers")
    return rows

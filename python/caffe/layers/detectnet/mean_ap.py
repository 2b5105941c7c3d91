"""Scores DetectNet's boxes, in the same way as NVCaffe."""
from typing import Sequence

import numpy as np

import caffe

TRUE_POSITIVE, FALSE_POSITIVE, MISSED = 1, 2, 3
LEAST_OVERLAP = 0.7


def overlap(box: Sequence[float], other: Sequence[float]) -> float:
    """Area of the intersection of two boxes x1, y1, x2, y2 over that of their union."""
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((box[2] - box[0]) * (box[3] - box[1]) + (other[2] - other[0]) * (other[3] - other[1]) - shared)


def score(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Rows x1, y1, x2, y2, verdict: first for each box of `found` in descending order of confidence, then
    for each box of `truth` that was missed. Both arguments: K x 5, x1, y1, x2, y2, confidence; rows of
    zeros are ignored."""
    truth, found = (boxes[boxes.any(axis=1)] for boxes in (truth, found))
    is_met = np.zeros(len(truth), dtype=bool)
    rows = []
    for box in found[np.argsort(-found[:, 4], kind="stable")]:
        overlaps = [0 if met else overlap(box, real) for met, real in zip(is_met, truth)]
        best = int(np.argmax(overlaps)) if overlaps else -1
        hit = best >= 0 and overlaps[best] >= LEAST_OVERLAP and not np.isnan(box[4])
        if hit:
            is_met[best] = True
        rows.append([*box[:4], TRUE_POSITIVE if hit else FALSE_POSITIVE])
    rows += [[*box[:4], MISSED] for box in truth[~is_met]]
    return np.array(rows, dtype=np.float32).reshape(-1, 5)


class ScoreDetections(caffe.Layer):
    """Bottoms: true and found boxes (N, 50, 5). Top: (N, 50, 5), rows x1, y1, x2, y2 and 1 for a found
    box with an overlap of at least 0.7 with a true box, 2 for a found box without, 3 for a true box
    that was missed; unused rows are 0."""

    def setup(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        pass

    def reshape(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        if bottom[0].data.shape != bottom[1].data.shape or bottom[0].data.shape[2:] != (5,):
            raise ValueError(f"bottoms are {bottom[0].data.shape} and {bottom[1].data.shape}; both should be (N, K, 5)")
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        top[0].data[...] = 0
        for item, (truth, found) in enumerate(zip(bottom[0].data, bottom[1].data)):
            rows = score(truth, found)[:top[0].data.shape[1]]
            top[0].data[item, :len(rows)] = rows


class mAP(caffe.Layer):
    """Bottom: the top of ScoreDetections. Tops: "mAP", precision and recall of the batch, in percent;
    "mAP" is not an area under a curve but precision * recall / 100. param_str is accepted and
    ignored."""

    def setup(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        if len(top) != 3:
            raise ValueError(f"{len(top)} tops; there are three: mAP, precision, recall")

    def reshape(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        for blob in top:
            blob.reshape(1)

    def forward(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        verdicts = bottom[0].data[..., 4]
        hits, wrong, missed = ((verdicts == value).sum() for value in (TRUE_POSITIVE, FALSE_POSITIVE, MISSED))
        precision = 100 * hits / max(hits + wrong, 1)
        recall = 100 * hits / max(hits + missed, 1)
        for blob, value in zip(top, (precision * recall / 100, precision, recall)):
            blob.data[...] = value

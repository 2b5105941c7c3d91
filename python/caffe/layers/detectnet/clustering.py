"""Turns DetectNet's grids into boxes, in the same way as NVCaffe.

A grid has one cell per `stride` x `stride` pixels. For each cell the net predicts the
probability that an object of a class covers it (the coverage) and the object's box, in pixels
relative to the cell's upper left corner.
"""
from typing import List, Sequence

import numpy as np

import caffe

MOST_BOXES = 50  # per image and class: the capacity of the tops


def cell_boxes(coverage: np.ndarray, boxes: np.ndarray, stride: int, threshold: float) -> np.ndarray:
    """The boxes of all cells whose coverage is at least `threshold`, in whole pixels of the image.

    coverage: H x W. boxes: 4 x H x W, x1, y1, x2, y2 relative to the cell. Returns K x 4.
    """
    rows, columns = np.nonzero(coverage >= threshold)
    origins = np.stack([columns, rows, columns, rows]) * stride
    return np.rint(boxes[:, rows, columns] + origins).T.astype(int)


def _is_similar(boxes: np.ndarray, box: np.ndarray, eps: float) -> np.ndarray:
    reach = eps * (np.minimum(boxes[:, 2], box[2]) + np.minimum(boxes[:, 3], box[3])) / 2
    near = np.abs(boxes[:, :2] - box[:2]) <= reach[:, None]
    far = np.abs(boxes[:, :2] + boxes[:, 2:] - box[:2] - box[2:]) <= reach[:, None]
    return np.all(near & far, axis=1)


def _groups(boxes: np.ndarray, eps: float) -> List[np.ndarray]:
    """Indices of boxes, grouped by chains of similar boxes."""
    free = np.ones(len(boxes), dtype=bool)
    groups = []
    for first in range(len(boxes)):
        if not free[first]:
            continue
        free[first] = False
        group = [first]
        for member in group:  # the group grows during the loop
            found = np.nonzero(free & _is_similar(boxes, boxes[member], eps))[0]
            free[found] = False
            group.extend(found)
        groups.append(np.array(group))
    return groups


def group_rectangles(boxes: np.ndarray, least: int, eps: float):
    """Equivalent of OpenCV's groupRectangles for K x 4 whole numbers: returns the mean box and the size of
    each group of more than `least` similar boxes. Groups inside a much stronger group are dropped.

    NVCaffe passes corners (x1, y1, x2, y2) to that function, which interprets them as (x, y, width,
    height). Common values of `eps` are tuned for that, so this function does the same.
    """
    groups = [group for group in _groups(boxes, eps) if len(group) > least]
    means = [np.rint(boxes[group].mean(axis=0)).astype(int) for group in groups]
    counts = [len(group) for group in groups]

    def is_inside(i: int, j: int) -> bool:
        x, y, width, height = means[i]
        left, top, over_width, over_height = means[j]
        margin_x, margin_y = int(round(over_width * eps)), int(round(over_height * eps))
        return (x >= left - margin_x and y >= top - margin_y and x + width <= left + over_width + margin_x
                and y + height <= top + over_height + margin_y and (counts[j] > max(3, counts[i]) or counts[i] < 3))

    kept = [i for i in range(len(means)) if not any(j != i and is_inside(i, j) for j in range(len(means)))]
    return [(means[i], counts[i]) for i in kept]


class _Clusters(caffe.Layer):
    """Bottoms: coverage (N, classes, H, W) and boxes (N, 4, H, W). Tops, one per class: (N, 50, 5),
    rows x1, y1, x2, y2 in pixels and the logarithm of the number of cells in the box's group; unused
    rows are 0."""

    FIELDS = ""

    def setup(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        names = self.FIELDS.split(",")
        values = [float(value) for value in self.param_str.split(",")]
        if len(values) not in (len(names), len(names) + 1):
            raise ValueError(f"param_str is '{self.param_str}'; it should be '{self.FIELDS}[,classes]'")
        self.options = dict(zip(names, values))
        classes = int(values[-1]) if len(values) > len(names) else 1
        if len(top) != classes:
            raise ValueError(f"{len(top)} tops for {classes} classes; there is one for each class")

    def reshape(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        count, classes, height, width = bottom[0].data.shape
        if classes != len(top) or bottom[1].data.shape != (count, 4, height, width):
            raise ValueError(f"bottoms are {bottom[0].data.shape} and {bottom[1].data.shape}; they should be "
                             f"(N, {len(top)}, H, W) and (N, 4, H, W)")
        for blob in top:
            blob.reshape(count, MOST_BOXES, 5)

    def forward(self, bottom: Sequence[caffe.Blob], top: Sequence[caffe.Blob]) -> None:
        for kind, blob in enumerate(top):
            blob.data[...] = 0
            for item, (coverage, boxes) in enumerate(zip(bottom[0].data[:, kind], bottom[1].data)):
                found = self.cluster(coverage, boxes)[:MOST_BOXES]
                for row, (box, count) in enumerate(found):
                    blob.data[item, row] = [*box, np.log(count)]


class ClusterGroundtruth(_Clusters):
    """The boxes from which the label grids were made. param_str: "img_x,img_y,stride[,classes]"."""

    FIELDS = "img_x,img_y,stride"

    def cluster(self, coverage, boxes):
        found = cell_boxes(coverage, boxes, int(self.options["stride"]), np.finfo(np.float32).tiny)
        return list(zip(*np.unique(found, axis=0, return_counts=True))) if len(found) else []


class ClusterDetections(_Clusters):
    """The net's boxes. param_str:
    "img_x,img_y,stride,cvg_thr,rect_thr,rect_eps,min_height[,classes]". Cells count if their coverage
    is at least cvg_thr, groups need more than rect_thr cells, and boxes lower than min_height pixels
    are dropped."""

    FIELDS = "img_x,img_y,stride,cvg_thr,rect_thr,rect_eps,min_height"

    def cluster(self, coverage, boxes):
        found = cell_boxes(coverage, boxes, int(self.options["stride"]), self.options["cvg_thr"])
        groups = group_rectangles(found, int(self.options["rect_thr"]), self.options["rect_eps"])
        return [(box, count) for box, count in groups if box[3] - box[1] >= self.options["min_height"]]

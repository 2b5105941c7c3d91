"""Boxes proposed by a region proposal network (Ren et al. 2015, "Faster R-CNN")."""
import math

import numpy as np

from ..registry import writes

_LOWEST = float(np.finfo(np.float32).min)


@writes("Proposal")
def proposal(layer, onnx):
    head = _Head(layer, onnx)
    found = [head.proposals_of(item) for item in range(head.items)]
    rows, scores = (onnx.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0] for parts in zip(*found))
    rows, scores = _at_least_one(onnx, rows, scores)
    return [rows, scores][:len(layer.tops)]


def _at_least_one(onnx, rows, scores):
    """Adds a box of zeros if there are no boxes. The number of boxes varies."""
    extent = onnx.slice(onnx.op("Shape", rows), [0], [1], [0])
    count = onnx.cast(onnx.op("Max", onnx.cast(extent, np.float32), onnx.constant([1])), np.int64)
    results = []
    for tensor, columns in ((rows, 5), (scores, 1)):
        both = onnx.op("Concat", tensor, onnx.constant(np.zeros((1, columns))), axis=0)
        results.append(onnx.op("Slice", both, onnx.integers([0]), count, onnx.integers([0])))
    onnx.varying.update(results)
    return results


class _Head:
    """Decoded boxes of all anchors at all positions. A box from pixel 3 to pixel 5 is three pixels wide."""

    def __init__(self, layer, onnx):
        self.onnx, self.options = onnx, layer.param.proposal_param
        (self.items, _, height, width), anchors = layer.shape, self._anchors()
        self.places, self.count = height * width, len(anchors) * height * width
        scores, offsets = layer.bottoms[:2]
        scores = onnx.slice(scores, [len(anchors)], [2 * len(anchors)], [1])
        scores = onnx.op("Transpose", onnx.reshape(scores, [self.items, len(anchors), self.places]), perm=[0, 2, 1])
        self.images = self._images(layer)
        corners, is_decoded = self._decoded(onnx, offsets, anchors, width)
        self.first, self.last = corners  # pixels, (N, M, 2)
        sizes = onnx.scaled(onnx.op("Sub", self.last, self.first), 1, 1)
        is_large = onnx.op("Not", onnx.op("Less", sizes, self._least_sizes()))
        valid = onnx.op("And", is_decoded, is_large)
        is_valid = onnx.over_axes("ReduceMin", onnx.cast(valid, np.float32), [2], keepdims=0)
        scores = onnx.reshape(scores, [self.items, self.count])
        self.scores = onnx.op("Where", onnx.cast(is_valid, bool), scores, onnx.constant(_LOWEST))

    def _anchors(self):
        """Anchors around the first position; sides are rounded to pixels before scaling."""
        base, anchors = self.options.base_size, []
        for ratio in list(self.options.ratio) or [0.5, 1, 2]:
            width = math.floor(math.sqrt(base * base / ratio) + 0.5)
            height = math.floor(width * ratio + 0.5)
            anchors += [(width * scale, height * scale) for scale in list(self.options.scale) or [8, 16, 32]]
        return np.array(anchors)

    def _images(self, layer):
        """(height, width, scale of the height, scale of the width), each (N or 1, 1, 1)."""
        rows, shape = layer.bottoms[2], layer.shapes[2]
        columns = shape[1] if len(shape) == 2 else int(np.prod(shape[1:]))
        table = self.onnx.reshape(rows, [shape[0], columns, 1])
        parts = self.onnx.split(table, 1, [1] * columns)
        return parts[0], parts[1], parts[2], parts[3 if columns > 3 else 2]

    def _least_sizes(self):
        _, _, down, across = self.images
        return self.onnx.scaled(self.onnx.op("Concat", across, down, axis=2), self.options.min_size)

    def _decoded(self, onnx, offsets, anchors, width):
        """First and last pixels, clipped to the image, and whether they are numbers."""
        codes = onnx.op("Transpose", onnx.reshape(offsets, [self.items, len(anchors), 4, self.places]), perm=[0, 3, 1, 2])
        shifts, growths = onnx.split(onnx.reshape(codes, [self.items, self.count, 4]), 2, [2, 2])
        rows, columns = np.divmod(np.arange(self.places), width)
        centres = np.repeat(np.stack([columns, rows], 1) * self.options.feat_stride + self.options.base_size / 2, len(anchors), 0)
        sizes = np.tile(anchors, (self.places, 1))
        middles = onnx.op("Add", onnx.op("Mul", shifts, onnx.constant(sizes)), onnx.constant(centres))
        halves = onnx.op("Mul", onnx.op("Exp", growths), onnx.constant(sizes / 2))
        corners = onnx.op("Sub", middles, halves), onnx.op("Add", middles, halves)
        is_number = [onnx.op("Less", onnx.op("Abs", corner), onnx.constant(np.inf)) for corner in corners]
        height, width, _, _ = self.images
        edge = onnx.op("Max", onnx.scaled(onnx.op("Concat", width, height, axis=2), 1, -1), onnx.constant(0))
        inside = [onnx.op("Max", onnx.op("Min", corner, edge), onnx.constant(0)) for corner in corners]
        return inside, onnx.op("And", *is_number)

    def proposals_of(self, item):
        """Rows (item, x1, y1, x2, y2) and scores, the best first."""
        onnx, options = self.onnx, self.options
        first, last, scores = (onnx.slice(tensor, [item], [item + 1], [0]) for tensor in (self.first, self.last, self.scores))
        boxes = onnx.op("Concat", first, last, axis=2)
        if options.pre_nms_topn < self.count:
            scores, best = onnx.op("TopK", scores, onnx.integers([options.pre_nms_topn]), outputs=2, axis=1)
            boxes = onnx.op("Gather", boxes, onnx.over_axes("Squeeze", best, [0]), axis=1)
        grown = onnx.op("Add", boxes, onnx.constant([0, 0, 1, 1]))
        places = onnx.op("NonMaxSuppression", grown, onnx.over_axes("Unsqueeze", scores, [1]),
                         onnx.integers([options.post_nms_topn]), onnx.constant([min(options.nms_thresh, 1)]),
                         onnx.constant([_LOWEST]))
        chosen = onnx.over_axes("Squeeze", onnx.slice(places, [2], [3], [1]), [1])
        boxes, scores = (onnx.op("Gather", onnx.over_axes("Squeeze", tensor, [0]), chosen, axis=0) for tensor in (boxes, scores))
        scores = onnx.over_axes("Unsqueeze", scores, [1])
        return onnx.op("Concat", onnx.scaled(onnx.op("Sub", scores, scores), 1, item), boxes, axis=1), scores

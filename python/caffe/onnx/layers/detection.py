"""SSD's detection head."""
import numpy as np

from ..registry import writes


@writes("DetectionOutput")
def detection_output(layer, onnx):
    if layer.request.detection == "raw":
        layer.leave_out("raw heads were asked for")
        return []
    head = _Head(layer, onnx)
    rows = [head.detections_of(item) for item in range(head.items)]
    rows = onnx.op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]
    layer.top_shapes[0] = (1, 1, None, 7)
    return onnx.over_axes("Unsqueeze", rows, [0, 1])


class _Head:
    """Boxes and scores of all prior boxes, and their selection."""

    def __init__(self, layer, onnx):
        self.onnx, self.options = onnx, layer.param.detection_output_param
        options = self.options
        priors = layer.constants[2]
        if priors is None:
            layer.refuse("prior boxes that depend on data")
        if options.nms_param.eta != 1:
            layer.refuse(f"nms_param {{ eta: {options.nms_param.eta} }}; NonMaxSuppression has one threshold for all boxes")
        self.priors = priors.reshape(2, -1, 4).astype(np.float32)
        self.count, self.classes, self.items = self.priors.shape[1], options.num_classes, layer.shape[0]
        self.labels = [label for label in range(self.classes) if label != options.background_label_id]
        if not self.labels:
            layer.refuse(f"num_classes: {self.classes}, of which background_label_id: {options.background_label_id} is the only one")
        locations = 1 if options.share_location else self.classes
        codes = onnx.reshape(layer.bottoms[0], [self.items, self.count, locations, 4])
        self.boxes = self._decoded(codes)  # (items, priors, locations, 4)
        scores = onnx.reshape(layer.bottoms[1], [self.items, self.count, self.classes])
        scores = onnx.op("Transpose", scores, perm=[0, 2, 1])
        self.scores = self._best(onnx.op("Gather", scores, onnx.integers(self.labels), axis=1))  # (items, labels, priors)

    def _decoded(self, codes):
        """Decodes boxes (xmin, ymin, xmax, ymax) relative to the prior boxes (Liu et al. 2016)."""
        onnx, options = self.onnx, self.options
        boxes, variances = self.priors
        if not options.variance_encoded_in_target:
            codes = onnx.op("Mul", codes, onnx.constant(variances[:, None]))
        sizes = boxes[:, 2:] - boxes[:, :2]
        kind = type(options).DESCRIPTOR.fields_by_name["code_type"].enum_type.values_by_number[options.code_type].name
        if kind == "CORNER":
            return onnx.op("Add", onnx.constant(boxes[:, None]), codes)
        if kind == "CORNER_SIZE":
            scaled = onnx.op("Mul", codes, onnx.constant(np.concatenate([sizes, sizes], 1)[:, None]))
            return onnx.op("Add", onnx.constant(boxes[:, None]), scaled)
        shifts, growths = onnx.split(codes, 3, [2, 2])
        middles = onnx.op("Add", onnx.constant(((boxes[:, :2] + boxes[:, 2:]) / 2)[:, None]),
                          onnx.op("Mul", shifts, onnx.constant(sizes[:, None])))
        halves = onnx.op("Mul", onnx.op("Exp", growths), onnx.constant(sizes[:, None] / 2))
        return onnx.op("Concat", onnx.op("Sub", middles, halves), onnx.op("Add", middles, halves), axis=3)

    def _best(self, scores):
        """Keeps the top_k best scores of each class; the others get a score below any threshold."""
        nms, onnx = self.options.nms_param, self.onnx
        if not nms.HasField("top_k") or not 0 <= nms.top_k < self.count:
            return scores
        lowest = onnx.constant(np.finfo(np.float32).min)
        if nms.top_k == 0:
            return onnx.op("Min", scores, lowest)
        values, _ = onnx.op("TopK", scores, onnx.integers([nms.top_k]), outputs=2, axis=2)
        least = onnx.slice(values, [nms.top_k - 1], [nms.top_k], [2])
        is_worse = onnx.op("Less", scores, least)
        return onnx.op("Where", is_worse, lowest, scores)

    def detections_of(self, item):
        """Rows (item, label, score, xmin, ymin, xmax, ymax), by label, the best first."""
        onnx = self.onnx
        boxes = onnx.slice(self.boxes, [item], [item + 1], [0])
        scores = onnx.slice(self.scores, [item], [item + 1], [0])
        if self.options.share_location:
            rows = self._selected(item, onnx.over_axes("Squeeze", boxes, [2]), scores, self.labels)
        else:
            rows = [self._selected(item, onnx.over_axes("Squeeze", onnx.slice(boxes, [label], [label + 1], [2]), [2]),
                                   onnx.slice(scores, [k], [k + 1], [1]), [label]) for k, label in enumerate(self.labels)]
            rows = onnx.op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]
        return self._kept(rows)

    def _selected(self, item, boxes, scores, labels):
        """Selects by non-maximum suppression. boxes: (1, priors, 4), scores: (1, labels, priors)."""
        onnx, options = self.onnx, self.options
        places = onnx.op("NonMaxSuppression", boxes, scores, onnx.integers([self.count]),
                         onnx.constant([min(options.nms_param.nms_threshold, 1)]),
                         onnx.constant([options.confidence_threshold]))
        _, label, box = onnx.split(places, 1, [1, 1, 1])
        chosen = onnx.op("GatherND", scores, places)
        labels = onnx.op("Gather", onnx.constant(labels), label, axis=0)
        items = onnx.scaled(labels, 0, item) if item else onnx.op("Sub", labels, labels)
        boxes = onnx.over_axes("Squeeze", boxes, [0])
        corners = onnx.op("Gather", boxes, onnx.over_axes("Squeeze", box, [1]), axis=0)
        if options.vote_threshold:
            of_label = onnx.op("Gather", onnx.over_axes("Squeeze", scores, [0]), onnx.over_axes("Squeeze", label, [1]), axis=0)
            corners = self._voted(corners, boxes, of_label)
        return onnx.op("Concat", items, labels, onnx.over_axes("Unsqueeze", chosen, [1]), corners, axis=1)

    def _voted(self, corners, boxes, scores):
        """Means of the candidates that overlap `corners` (kept, 4), weighted by score (Gidaris and Komodakis 2015). boxes: (priors, 4),
        scores: (kept, priors)."""
        onnx, options = self.onnx, self.options

        def sides(low, high):
            return onnx.op("Relu", onnx.op("Sub", high, low))

        def area(sizes):
            width, height = onnx.split(sizes, 2, [1, 1])
            return onnx.over_axes("Squeeze", onnx.op("Mul", width, height), [2])

        kept, others = onnx.over_axes("Unsqueeze", corners, [1]), onnx.over_axes("Unsqueeze", boxes, [0])
        (kept_low, kept_high), (low, high) = onnx.split(kept, 2, [2, 2]), onnx.split(others, 2, [2, 2])
        common = area(sides(onnx.op("Max", kept_low, low), onnx.op("Min", kept_high, high)))
        areas = onnx.op("Add", area(sides(kept_low, kept_high)), area(sides(low, high)))
        least = onnx.op("Mul", onnx.op("Sub", areas, common), onnx.constant(np.float32(options.vote_threshold)))
        is_near = onnx.op("And", onnx.op("Greater", common, onnx.constant(np.float32(0))), onnx.op("Not", onnx.op("Less", common, least)))
        is_candidate = onnx.op("Greater", scores, onnx.constant(np.float32(max(options.confidence_threshold, 0))))
        weights = onnx.where(onnx.op("And", is_near, is_candidate), scores, 0)
        is_finite = onnx.op("Less", onnx.op("Abs", boxes), onnx.constant(np.float32(np.inf)))
        boxes = onnx.where(is_finite, boxes, 0)
        total = onnx.over_axes("ReduceSum", weights, [1], keepdims=1)
        has_votes = onnx.op("Greater", total, onnx.constant(np.float32(0)))
        return onnx.op("Where", has_votes, onnx.op("Div", onnx.op("MatMul", weights, boxes), total), corners)

    def _kept(self, rows):
        """At most keep_top_k rows, the best, in unchanged order."""
        keep, onnx = self.options.keep_top_k, self.onnx
        if keep < 0:
            return rows
        scores = onnx.over_axes("Squeeze", onnx.slice(rows, [2], [3], [1]), [1])
        count = onnx.op("Min", onnx.cast(onnx.op("Shape", scores), np.float32), onnx.constant([keep]))
        count = onnx.cast(count, np.int64)
        _, best = onnx.op("TopK", scores, count, outputs=2, axis=0)
        places, _ = onnx.op("TopK", best, count, outputs=2, axis=0, largest=0)
        return onnx.op("Gather", rows, places, axis=0)

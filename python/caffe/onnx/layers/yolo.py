"""YOLO's detections, as rows (item, label, score, xmin, ymin, xmax, ymax), per item in descending order of score."""
import numpy as np

from ..registry import writes


class _Map:
    """A decoded map (N, boxes (5 + classes), H, W). boxes: (N, cells, B, 4) as fractions of the image; objects: (N, cells, B, 1);
    classes: (N, cells, B, K), before their activation."""

    def __init__(self, onnx, tensor, shape, classes, sizes):
        """sizes: widths and heights of the anchors as fractions of the image, (B, 2)."""
        (self.items, _, height, width), anchors = shape, len(sizes)
        self.cells, self.anchors, self.count = height * width, anchors, classes
        entries = onnx.reshape(tensor, [self.items, anchors, 5 + classes, self.cells])
        entries = onnx.op("Transpose", entries, perm=[0, 3, 1, 2])
        shifts, growths, objects, self.classes = onnx.split(entries, 3, [2, 2, 1, classes])
        rows, columns = np.divmod(np.arange(self.cells), width)
        cells, extents = np.stack([columns, rows], 1)[:, None], np.array([width, height])
        middles = onnx.op("Div", onnx.op("Add", onnx.op("Sigmoid", shifts), onnx.constant(cells)), onnx.constant(extents))
        halves = onnx.op("Mul", onnx.op("Exp", growths), onnx.constant(np.asarray(sizes) / 2))
        self.boxes = onnx.op("Concat", onnx.op("Sub", middles, halves), onnx.op("Add", middles, halves), axis=3)
        self.objects = onnx.op("Sigmoid", objects)


class _Candidates:
    """Boxes (N, M, 4), scores and labels (N, M) before non-maximum suppression."""

    def __init__(self, onnx, boxes, scores, labels):
        self.onnx = onnx
        edges = onnx.over_axes("ReduceMax", onnx.op("Abs", boxes), [2], keepdims=0)
        is_finite = onnx.op("Less", edges, onnx.constant(np.inf))
        self.boxes, self.labels = boxes, labels
        self.scores = onnx.op("Where", is_finite, scores, onnx.constant(np.finfo(np.float32).min))

    def rows(self, items, count, threshold, overlap):
        """Detections of all items: from `count` candidates per item, those whose score exceeds the threshold."""
        onnx = self.onnx
        rows = [self._rows_of(item, count, threshold, overlap) for item in range(items)]
        return onnx.over_axes("Unsqueeze", onnx.op("Concat", *rows, axis=0) if items > 1 else rows[0], [0, 1])

    def _rows_of(self, item, count, threshold, overlap):
        onnx = self.onnx
        boxes, scores, labels = (onnx.slice(tensor, [item], [item + 1], [0]) for tensor in (self.boxes, self.scores, self.labels))
        places = onnx.op("NonMaxSuppression", boxes, onnx.over_axes("Unsqueeze", scores, [1]), onnx.integers([count]),
                         onnx.constant([min(overlap, 1)]), onnx.constant([threshold]))
        chosen = onnx.over_axes("Squeeze", onnx.slice(places, [2], [3], [1]), [1])
        boxes, scores, labels = (onnx.op("Gather", onnx.over_axes("Squeeze", tensor, [0]), chosen, axis=0)
                                 for tensor in (boxes, scores, labels))
        scores, labels = (onnx.over_axes("Unsqueeze", tensor, [1]) for tensor in (scores, labels))
        return onnx.op("Concat", onnx.scaled(onnx.op("Sub", labels, labels), 1, item), labels, scores, boxes, axis=1)


def _detections(layer, tensor):
    layer.top_shapes[0] = (1, 1, None, 7)
    return tensor


def _joined(onnx, *lists):
    """For each list of tensors, which has one per map, the concatenated candidates."""
    return [onnx.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0] for parts in lists]


@writes("YoloDetectionOutput")
def yolo_detections(layer, onnx):
    """YOLO 2: a box has one class, the one with the largest softmax."""
    options, items, total, parts = layer.param.yolo_detection_output_param, layer.shape[0], 0, []
    for bottom, shape in zip(layer.bottoms, layer.shapes):
        sizes = np.reshape(options.biases, (-1, 2)) / [shape[3], shape[2]]
        head = _Map(onnx, bottom, shape, options.num_classes, sizes)
        probabilities = onnx.softmax(head.classes, 3, (items, head.cells, head.anchors, head.count))
        count = head.cells * head.anchors
        scores = onnx.op("Mul", head.objects, onnx.over_axes("ReduceMax", probabilities, [3], keepdims=1))
        labels = onnx.scaled(onnx.cast(onnx.op("ArgMax", head.classes, axis=3, keepdims=0), np.float32), 1, 1)
        parts.append((onnx.reshape(head.boxes, [items, count, 4]), onnx.reshape(scores, [items, count]),
                      onnx.reshape(labels, [items, count])))
        total += count
    found = _Candidates(onnx, *_joined(onnx, *zip(*parts)))
    below = float(np.nextafter(np.float32(options.confidence_threshold), np.float32(-1)))  # the layer includes equal scores
    return _detections(layer, found.rows(items, total, below, options.nms_threshold))


@writes("Yolov3DetectionOutput")
def yolov3_detections(layer, onnx):
    """YOLO 3: each class of a box has its own score."""
    options = layer.param.yolov3_detection_output_param
    classes, anchors = options.num_classes, np.reshape(options.biases, (-1, 2))
    boxes, scores, count, items = [], [], 0, layer.shape[0]
    for k, (bottom, shape) in enumerate(zip(layer.bottoms, layer.shapes)):
        extents = options.anchors_scale[k] * np.array([shape[3], shape[2]])
        chosen = list(options.mask[k * options.num_box:(k + 1) * options.num_box])
        head = _Map(onnx, bottom, shape, classes, anchors[chosen] / extents)
        size = head.cells * head.anchors * classes
        every = onnx.op("Expand", onnx.over_axes("Unsqueeze", head.boxes, [3]),
                        onnx.integers([items, head.cells, head.anchors, classes, 4]))
        boxes.append(onnx.reshape(every, [items, size, 4]))
        scores.append(onnx.reshape(onnx.op("Mul", head.objects, onnx.op("Sigmoid", head.classes)), [items, size]))
        count += size
    labels = onnx.constant(np.tile(np.arange(1, classes + 1), (items, count // classes)))
    boxes, scores = _joined(onnx, boxes, scores)
    found = _Candidates(onnx, boxes, scores, labels)
    return _detections(layer, found.rows(items, count, options.confidence_threshold, options.nms_threshold))

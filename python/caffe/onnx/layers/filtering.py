"""Linear, separable image filters of any form, such as resizing: one matrix for rows and one for columns.

The matrices are measured by running the layer on images that are 1 in one row or one column.
"""
import numpy as np

from ..._caffe import Net
from ...proto import caffe_pb2
from ..registry import writes

_LARGEST_PROBE = 1 << 22  # elements of an input to the layer


class _Probe:
    """A net of this layer alone."""

    def __init__(self, layer, items=None):
        """items: batch size; default: the layer's own. Use 1 if all items are filtered in the same way."""
        self.items = items or layer.shape[0]
        self.shapes = [(self.items, *shape[1:]) for shape in layer.shapes]
        self.height, self.width = layer.shape[2:]
        self.images = max(1, min(max(self.height, self.width), _LARGEST_PROBE // (self.items * self.height * self.width)))
        definition = caffe_pb2.NetParameter()
        for k, shape in enumerate(self.shapes):
            shape = (self.items, self.images, *shape[2:]) if k == 0 else shape
            bottom = definition.layer.add(name=f"x{k}", type="Input", top=[f"x{k}"])
            bottom.input_param.shape.add().dim.extend(shape)
        own = definition.layer.add()
        own.CopyFrom(layer.param)
        own.bottom[:] = [f"x{k}" for k in range(len(self.shapes))]
        own.top[:] = ["y"]
        for field in ("include", "exclude", "forward_type", "backward_type", "forward_math", "backward_math"):
            own.ClearField(field)
        self.net = Net(definition, caffe_pb2.TEST)

    def shown(self, item, images):
        """The layer's outputs for images (count, height, width) of one item; the other items are 0."""
        results = []
        for first in range(0, len(images), self.images):
            part = images[first:first + self.images]
            self.net.blobs["x0"].data[...] = 0
            self.net.blobs["x0"].data[item, :len(part)] = part
            self.net.forward()
            results.append(self.net.blobs["y"].data[0, :len(part)].astype(np.float64))
        return np.concatenate(results)

    def matrices(self, item):
        """The matrices for rows and for columns: outputs x inputs."""
        height, width = self.height, self.width
        whole = self.shown(item, np.ones((1, height, width)))[0]
        row, column = np.unravel_index(np.abs(whole).argmax(), whole.shape)
        rows = self.shown(item, np.eye(height)[:, :, None] * np.ones((1, 1, width)))[:, :, column].T
        columns = self.shown(item, np.eye(width)[:, None, :] * np.ones((1, height, 1)))[:, row, :].T
        return rows / whole[row, column], columns


def _filtered(onnx, image, rows, columns):
    wide = onnx.op("MatMul", image, onnx.constant(columns.T))
    return onnx.op("MatMul", onnx.constant(rows), wide)


@writes("Resample")
def resample(layer, onnx):
    return _filtered(onnx, layer.bottom, *_Probe(layer, items=1).matrices(0))


@writes("ImResize")
def im_resize(layer, onnx):
    """The mean over items; each item has its own frame."""
    probe = _Probe(layer)
    parts = [onnx.slice(layer.bottom, [item], [item + 1], [0]) for item in range(probe.items)]
    result = _filtered(onnx, parts[0], *probe.matrices(0))
    for item, part in enumerate(parts[1:], 1):
        result = onnx.op("Add", result, _filtered(onnx, part, *probe.matrices(item)))
    return result


@writes("Downsample")
def downsample(layer, onnx):
    """The mean of the known values; NaN if too large a share is unknown."""
    matrices = _Probe(layer, items=1).matrices(0)
    is_unknown = onnx.op("IsNaN", layer.bottom)
    known = onnx.scaled(onnx.cast(is_unknown, np.float32), -1, 1)
    share = _filtered(onnx, known, *matrices)
    sums = _filtered(onnx, onnx.op("Where", is_unknown, onnx.constant(0), layer.bottom), *matrices)
    is_too_little = onnx.op("Less", onnx.scaled(share, 1.5), onnx.constant(1 - 1e-3))
    return onnx.op("Where", is_too_little, onnx.constant(np.nan), onnx.op("Div", sums, share))


@writes("BatchReduction")
def batch_reduction(layer, onnx):
    """Sums over runs along an axis, as a matrix product."""
    options = layer.param.batch_reduction_param
    reduction = options.reduction_param
    axis = layer.axis(reduction.axis)
    axes = 2 if options.pos else 1
    extent = layer.shape[axis]
    runs = [level ** 2 for level in options.level] if list(options.level) not in ([], [1]) else [extent]
    matrix = np.zeros((len(runs), extent * (extent if options.pos else 1)))
    begin, step = 0, extent + 1 if options.pos else 1
    for row, run in zip(matrix, runs):
        places = begin + step * np.arange(run)
        row[places] = reduction.coeff / (run if reduction.operation == reduction.MEAN else 1)
        begin += run
    folded = onnx.reshape(layer.bottom, [layer.count(0, axis), matrix.shape[1], layer.count(axis + axes)])
    return onnx.reshape(onnx.op("MatMul", onnx.constant(matrix), folded), layer.top_shape)

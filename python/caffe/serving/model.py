"""A net that answers: its inputs and outputs, and a net for each size of batch."""
import dataclasses
import os
import shlex

import numpy as np

from .. import TEST, InvalidArgument, Net
from .._counted import counted
from ..deployment import model_info
from ..proto import caffe_pb2


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or an output. shape: -1 for the number of items in a batch, and for other extents that vary."""
    name: str
    shape: tuple


def _sizes(limit):
    """Sizes of batches: powers of two below the limit, and the limit."""
    sizes = []
    while 2 ** len(sizes) < limit:
        sizes.append(2 ** len(sizes))
    return [*sizes, limit]


def _resized(net, count):
    """Another net with the same weights, for `count` items."""
    other = net.share()
    for name in net.inputs:
        other.blobs[name].reshape(count, *net.blobs[name].shape[1:])
    other.reshape()
    return other


def _replace(info, over):
    """Replaces the fields of a ModelInfo that another one, if there is one, sets."""
    if over is None:
        return
    names = {field.name for field, _ in over.ListFields()}
    for name in names | ({"mean", "mean_value"} if names & {"mean", "mean_value"} else set()):
        info.ClearField(name)
    info.MergeFrom(over)


def _shifted(rows, by):
    """Rows of detections with other numbers of their items."""
    return rows + np.array([by, 0, 0, 0, 0, 0, 0], np.float32)


def _found(rows, items=np.inf):
    """The detections of the first items. Where there is none, Caffe has a row whose class is -1."""
    rows = rows.reshape(-1, 7)
    return rows[(rows[:, 1] >= 0) & (rows[:, 0] < items)]


def _untrained(net, transfers):
    """Names of the layers that a weights file has nothing for, but for those that share all their parameters with one that it has."""
    named = {layer.name: [param.name for param in layer.param] for layer in net.definition.layer}
    inline = {layer.name for layer in net.definition.layer if layer.blobs}
    loaded = inline | {name for name, outcome, *_ in transfers if outcome == "copied"}
    shared = {name for layer in loaded for name in named.get(layer, ()) if name}
    return [layer for layer, blobs in net.params.items()
            if layer not in loaded and not (len(named[layer]) >= len(blobs) and shared.issuperset(named[layer][:len(blobs)]))]


class Model:
    """A net for inference, and what a client may know about it.

    name: what clients call it
    definition, weights: names of files, as for caffe.Net
    max_batch: the most items that the net computes at once
    precision: as for caffe.Net
    labels: names of the classes; by default those of the net, the weights or `info`
    info: a ModelInfo, whose fields those of the weights and the net replace
    pads: fill a batch up to the next size. Otherwise it is divided into smaller ones. Padding is faster on GPUs.

    If the first axis of an output does not grow with that of the inputs, as with a Reshape to a fixed shape, a
    request has the whole shape that the file says, and is computed alone: max_batch is 0.

    Raises InvalidArgument for a net without inputs or with a layer without trained weights, and what caffe.Net raises.
    """

    def __init__(self, name, definition, weights, *, max_batch=16, precision=None, labels=(), info=None, pads=False):
        self.name = name
        self._pads = pads
        self._net = Net(definition, TEST, precision=precision, keep_all=False)
        missing = _untrained(self._net, self._net.copy_from(weights)) if weights else []
        if not self._net.inputs:
            raise InvalidArgument(f"{definition}: has no inputs, so it is not a net for inference; make one: caffe deploy {shlex.quote(os.fspath(definition))}")
        if self._net.params and not weights and not any(layer.blobs for layer in self._net.definition.layer):
            raise InvalidArgument(f"{definition}: has no weights, so that answers would be random; give --weights=FILE.caffemodel, name that file "
                                  f"{os.path.splitext(definition)[0]}.caffemodel, or give a model's folder")
        if missing:
            raise InvalidArgument(f"{weights}: has no weights for {counted(len(missing), 'layer')} of {definition}, so that answers would be random: "
                                  f"{', '.join(missing[:8])}; layers are matched by name")
        self.info = caffe_pb2.ModelInfo()
        for over in (info, model_info(weights) if weights else None, self._net.definition.model_info):
            _replace(self.info, over)
        self.labels = list(labels) or list(self.info.label)
        types = {top: layer.type for layer in self._net.definition.layer for top in layer.top}
        # Rows of detections have seven numbers; the first one is the number of the item.
        self.detections = {output for output in self._net.outputs if types.get(output, "").endswith("DetectionOutput")}
        self._rows = self._rows_of_items()
        self.max_batch = max_batch if self._rows else 0
        self.inputs = [Tensor(blob, self._shape_of(blob)) for blob in self._net.inputs]
        self.outputs = [Tensor(blob, self._shape_of(blob)) for blob in self._net.outputs]

    def _rows_of_items(self):
        """Extent of the first axis for one item, by output; {} if it does not grow with the inputs."""
        try:
            one, two = _resized(self._net, 1), _resized(self._net, 2)
        except InvalidArgument:
            return {}
        rows = {}
        for name in self._net.outputs:
            first, second = one.blobs[name].shape, two.blobs[name].shape
            if name not in self.detections and (not first or tuple(second) != (2 * first[0], *first[1:])):
                return {}
            rows[name] = first[0]
        return rows

    def _shape_of(self, blob):
        if blob in self.detections:
            return (-1, 7)
        shape = tuple(self._net.blobs[blob].shape)
        return (-1, *shape[1:]) if self.max_batch else shape

    def nets(self):
        """New nets by size of batch. A net computes in one thread at a time, so each thread needs its own."""
        return {size: _resized(self._net, size) for size in _sizes(self.max_batch)} if self.max_batch else {0: self._net.share()}

    def run(self, nets, requests, counts):
        """Computes several requests together, or one if max_batch is 0.

        nets: what nets() has returned
        requests: for each, a dict of arrays of float32 by input
        counts: the items of each request

        Returns a dict of arrays by output for each request.
        """
        if not self.max_batch:
            net = nets[0]
            for name, values in requests[0].items():
                net.blobs[name].data[...] = values
            return [{name: _found(rows).copy() if name in self.detections else rows.copy()
                     for name, rows in net.forward().items()}]
        inputs = {name: np.concatenate([request[name] for request in requests]) if len(requests) > 1 else values
                  for name, values in requests[0].items()}
        parts, begin = [], 0
        for items, size in self._pieces(sum(counts)):
            parts.append(self._run_piece(nets[size], {name: values[begin:begin + items] for name, values in inputs.items()}, size, begin))
            begin += items
        whole = {name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else parts[0][name] for name in parts[0]}
        ends = np.cumsum(counts)
        return [{name: self._of_items(name, rows, end - count, end) for name, rows in whole.items()}
                for count, end in zip(counts, ends)]

    def _pieces(self, count):
        """How to divide a batch: a list of (items, size of the net that computes them)."""
        sizes, pieces = _sizes(self.max_batch), []
        while count:
            larger = [size for size in sizes if size >= count] if self._pads else []
            size = larger[0] if larger else max(size for size in sizes if size <= count)
            pieces.append((min(count, size), size))
            count -= pieces[-1][0]
        return pieces

    def _run_piece(self, net, inputs, size, begin):
        items = len(next(iter(inputs.values())))
        for name, values in inputs.items():
            data = net.blobs[name].data
            data[:items] = values
            data[items:size] = 0
        outputs = {}
        for name, rows in net.forward().items():
            if name in self.detections:
                outputs[name] = _shifted(_found(rows, items), begin)
            else:
                outputs[name] = rows[:items * self._rows[name]].copy()
        return outputs

    def _of_items(self, name, rows, begin, end):
        if name in self.detections:
            return _shifted(rows[(rows[:, 0] >= begin) & (rows[:, 0] < end)], -begin)
        return rows[begin * self._rows[name]:end * self._rows[name]]

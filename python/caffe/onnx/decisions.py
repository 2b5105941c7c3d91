"""Compares layers whose tops are decisions: positions, labels and rows of boxes. If two candidates differ only by rounding, the two
sides may choose differently. Both choices are right, but everything computed from them differs.

So decisions are compared by the values that they choose, and Decisions.forward() passes the other side's decisions to the net, so
that later layers compute from the same decisions.
"""
from dataclasses import replace

import numpy as np

from .differences import Difference, choices, numbers, rows
from .layers.pooling import windows_of

_COMPARED = {}  # (layer type, top) -> function(LayerParameter, bottoms, own tops, the other side's tops, tolerance)


def compares(kind, top):
    """Registers a function that compares a top of layers of a type; it returns None if that top decides nothing. Tops that the other
    side does not provide are None."""
    def register(function):
        _COMPARED[kind, top] = function
        return function
    return register


def decided_tops(layer_type, tops):
    """The tops of a layer that may be decisions."""
    return [blob for k, blob in enumerate(tops) if (layer_type, k) in _COMPARED]


class Decisions:
    """Decisions of a net and of another side that computes the same function.

    theirs: the other side's arrays by (index of a deciding layer, blob). Tops are passed to the net if the decisions are equal;
    bottoms are compared as numbers. differences: after forward(), the Difference of each of the net's blobs that are
    decisions.
    """

    def __init__(self, theirs, tolerance):
        self.theirs, self.tolerance = theirs, tolerance
        self.differences = {}

    def forward(self, net):
        """Runs the net; its inputs must be set."""
        begin, layers = 0, list(net.layers)
        for index, layer in enumerate(layers):
            for blob in layer.layer_param.top:  # an in-place layer overwrites a decision
                self.differences.pop(blob, None)
            if decided_tops(layer.type, layer.layer_param.top):
                net._forward(begin, index)  # pylint: disable=protected-access
                begin = index + 1
                self._compare(net, index, layer)
        if begin < len(layers):
            net._forward(begin, len(layers) - 1)  # pylint: disable=protected-access

    def compare_outputs(self, net, blobs, arrays):
        """After forward(): Differences by output. blobs: the net's blob of each output; arrays: the other side's."""
        return {name: self.differences.get(blob) or numbers(net.blobs[blob].data, arrays[name], self.tolerance)
                for name, blob in blobs.items()}

    def _compare(self, net, index, layer):
        param = layer.layer_param
        if set(param.bottom) & set(param.top):
            return
        bottoms = [net.blobs[blob].data for blob in param.bottom]
        below = [replace(found, text=f"'{blob}', about which it decides: {found.text}")
                 for blob, array in zip(param.bottom, bottoms) if (index, blob) in self.theirs
                 for found in [numbers(array, self.theirs[index, blob], self.tolerance)]]
        own = [net.blobs[blob].data for blob in param.top]
        other = [np.asarray(self.theirs[index, blob]) if (index, blob) in self.theirs else None for blob in param.top]
        equal = []
        for k, blob in enumerate(param.top):
            compare = _COMPARED.get((layer.type, k))
            found = compare(param, bottoms, own, other, self.tolerance) if compare and other[k] is not None else None
            if found is None:
                continue
            self.differences[blob] = replace(max([found, *below], key=lambda one: one.relative), decided=found.decided)
            if found.relative <= self.tolerance and own[k].shape == other[k].shape:
                equal.append(k)
        for k in equal:  # after all comparisons, because they may read several tops
            own[k][...] = other[k]


def tops_that_decide(net, arrays):
    """Decisions.theirs from arrays by blob."""
    return {(index, blob): arrays[blob] for index, layer in enumerate(net.layers)
            for blob in decided_tops(layer.type, layer.layer_param.top) if blob in arrays}


@compares("ArgMax", 0)
def arg_max(param, bottoms, own, other, tolerance):
    options, scores, own, other = param.argmax_param, bottoms[0], own[0], other[0]
    if options.HasField("axis"):
        return None if options.out_max_val else choices(own, other, lambda top: _taken(scores, top, options.axis))
    if own.shape != other.shape:
        return numbers(own, other, tolerance)
    flat = scores.reshape(len(scores), -1)
    own, other = (top.reshape(len(flat), -1, options.top_k) for top in (own, other))
    places = choices(own[:, 0], other[:, 0], lambda top: _taken(flat, top, 1))
    values = numbers(own[:, 1:], other[:, 1:], tolerance)
    return max(places, values, key=lambda difference: difference.relative)


@compares("TopK", 1)
def top_k(param, bottoms, own, other, _tolerance):
    return choices(own[1], other[1], lambda top: _taken(bottoms[0], top, param.top_k_param.axis))


@compares("Pooling", 1)
def mask(param, bottoms, own, other, _tolerance):
    """The other side's position must lie in the same window."""
    image, own, other = bottoms[0], own[1], other[1]
    planes, extents = image.reshape(-1, int(np.prod(image.shape[2:]))), image.shape[2:]
    windows = windows_of(param.pooling_param, extents, own.shape[2:])

    def values(places):
        chosen = _taken(planes, places.reshape(len(planes), -1), 1).reshape(places.shape)
        for place, index, stride, pad, kernel in zip(np.divmod(places, extents[1]), np.indices(own.shape[2:]), windows.stride,
                                                     windows.pad, windows.kernel):
            offset = place - (index * stride - pad)
            chosen = np.where((offset >= 0) & (offset < kernel), chosen, np.nan)
        return chosen

    return choices(own, other, values)


@compares("Threshold", 0)
def threshold(param, bottoms, own, other, _tolerance):
    """At the threshold itself both answers are right, so the difference is the number's distance from the threshold."""
    limit = param.threshold_param.threshold
    return choices(own[0], other[0], lambda top: bottoms[0] if top is own[0] else np.full(np.shape(top), limit, np.float32))


@compares("DetectionOutput", 0)
@compares("YoloDetectionOutput", 0)
@compares("Yolov3DetectionOutput", 0)
def detections(_param, _bottoms, own, other, tolerance):
    """Rows (item, label, score, xmin, ymin, xmax, ymax). Without detections Caffe writes a row with label -1."""
    own, other = own[0], other[0]
    if own.shape[-1] != 7 or other.shape[-1] != 7:
        return numbers(own, other, tolerance)
    own, other = (table[table[:, 1] != -1] for table in (own.reshape(-1, 7), other.reshape(-1, 7)))
    return rows(own, other, [1, 1, _largest(own[:, 2]), *[_largest(own[:, 3:])] * 4], tolerance)


@compares("Proposal", 0)
@compares("Proposal", 1)
def proposals(_param, _bottoms, own, other, tolerance):
    """Rows (item, xmin, ymin, xmax, ymax), and the score of each, if the other side provides both."""
    told = [(ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1)) for ours, theirs in zip(own, other) if theirs is not None]
    counts = [len(theirs) for _, theirs in told]
    if len(set(counts)) > 1:
        return Difference(np.inf, f"the other side has {counts[0]} boxes and {counts[1]} scores")
    for ours, theirs in told:
        if theirs.shape[1] != ours.shape[1]:
            return numbers(ours, theirs, tolerance)
    scales = [[1, *[_largest(ours[:, 1:])] * 4] if ours.shape[1] == 5 else [_largest(ours)] for ours, _ in told]
    ours, theirs = (np.concatenate(tables, 1) for tables in zip(*told))
    return rows(ours, theirs, sum(scales, []), tolerance)


@compares("Nms", 0)
def peaks(_param, _bottoms, own, other, tolerance):
    """For each map a row with the number of peaks, then rows (x, y, height), padded with zeros."""
    own, other = own[0], other[0]
    if own.shape != other.shape:
        return numbers(own, other, tolerance)
    places = np.indices(own.shape[:3]).reshape(3, -1)
    which = np.stack([places[0] * own.shape[1] + places[1], places[2] == 0], 1)  # index of the map; True for the row with the count
    own, other = (np.concatenate([which, top.reshape(-1, 3)], 1) for top in (own, other))
    own, other = (table[table[:, 1:].any(axis=1)] for table in (own, other))
    return rows(own, other, [1, 1, *[_largest(own[:, 2:4])] * 2, _largest(own[:, 4])], tolerance)


def _largest(array):
    return float(np.abs(array).max(initial=0)) or 1.0


def _taken(values, places, axis):
    """Takes values at positions along an axis; NaN for invalid positions."""
    extent = values.shape[axis]
    known = (places == np.floor(places)) & (places >= 0) & (places < extent)
    taken = np.take_along_axis(values, np.where(known, places, 0).astype(np.int64), axis)
    return np.where(known, taken, np.nan)

"""Matches arrays of records with the inputs of a net, and checks them once before training."""
from collections.abc import Mapping

import numpy as np

from .._caffe import InvalidArgument
from ..pycaffe import as_array

_CHECKED_AT_ONCE = 1 << 22  # numbers

# Losses and scores whose second bottom holds class labels, and the options with the axis of the scores.
_OF_CLASSES = {"SoftmaxWithLoss": "softmax_param", "Accuracy": "accuracy_param", "InfogainLoss": "infogain_loss_param",
               "MultinomialLogisticLoss": None, "HingeLoss": None}


class Records:
    """Arrays by input name, all with the same number of records."""

    def __init__(self, arrays, labels=()):
        self.arrays = arrays
        self.labels = tuple(labels)  # names of the inputs given as y
        self.count = len(next(iter(arrays.values())))

    def take(self, numbers):
        """Copies of the records with these numbers, as Records."""
        return Records({name: array[numbers] for name, array in self.arrays.items()}, self.labels)

    def fill(self, net, indices):
        """Copies records into the input blobs of `net`, which take on the batch's shape."""
        for name, array in self.arrays.items():
            blob = net.blobs[name]
            if blob.shape[0] != len(indices):
                blob.reshape(len(indices), *array.shape[1:])
            view = blob.data
            if array.dtype == view.dtype and view.flags.c_contiguous:
                np.take(array, indices, axis=0, out=view, mode="clip")
            else:
                view[...] = array[indices]

    def fill_in_order(self, net, first, last):
        """Like fill(), for records first to last - 1."""
        for name, array in self.arrays.items():
            blob = net.blobs[name]
            if blob.shape[0] != last - first:
                blob.reshape(last - first, *array.shape[1:])
            blob.data[...] = array[first:last]


def count_of(x):
    """Number of records in x, an array or a dict of arrays. Raises InvalidArgument if there are none."""
    arrays = {f"x[{name!r}]": values for name, values in x.items()} if isinstance(x, Mapping) else {"x": x}
    if not arrays:
        raise InvalidArgument("fit: x is an empty dict; give an array for each input of the net")
    for name, values in arrays.items():
        array = as_array(values, name)
        if array.ndim == 0 or len(array) == 0:
            raise InvalidArgument(f"fit: {name} is empty: shape {array.shape}; its first axis counts records")
    return len(array)


def by_input(values, inputs, what, taken=()):
    """{input: array} for the caller's x or y, which is a dict, or an array for one of `inputs`.

    `taken`: inputs that already have arrays.
    """
    if isinstance(values, Mapping):
        unknown = [name for name in values if name not in inputs]
        if unknown:
            raise InvalidArgument(f"{what}: the net has no input {unknown[0]!r}; its inputs: {', '.join(inputs) or 'none'}")
        return {name: as_array(array, f"{what}[{name!r}]") for name, array in values.items()}
    left = [name for name in inputs if name not in taken]
    usual = {"x": "data", "y": "label"}[what]
    if usual in left:
        name = usual
    elif len(left) == 1 or (what == "x" and len(inputs) == 2 and left):
        name = left[0]
    elif not left:
        raise InvalidArgument(f"{what}: no input of the net is left for it; its inputs: {', '.join(inputs) or 'none'}")
    else:
        raise InvalidArgument(f"{what}: the net has the inputs {', '.join(inputs)}; say which one the array is for: "
                              f"{what}={{{left[0]!r}: array}}")
    return {name: as_array(values, what)}


def _said(name, what):
    return f"{what} (input {name!r})"


def _fitting(array, name, what, shape):
    """A view of the array whose records have the input's shape; axes of extent 1 may be missing."""
    if array.ndim == 0:
        raise InvalidArgument(f"{_said(name, what)} is one number; give an array whose first axis counts records")
    own, wanted = array.shape[1:], tuple(shape[1:])
    if [extent for extent in own if extent != 1] == [extent for extent in wanted if extent != 1]:
        return array.reshape(len(array), *wanted)
    advice = ""
    if len(own) == 3 and (own[2], own[0], own[1]) == wanted:
        advice = f"; channels come first: np.moveaxis({what}, -1, 1)"
    elif len(own) > 0 and np.prod(own) == np.prod(wanted):
        advice = f"; {what}.reshape(-1{''.join(f', {extent}' for extent in wanted)}) has them"
    raise InvalidArgument(f"{_said(name, what)} has records of shape {own}, the net wants {wanted}{advice}")


def _check_finite(array, name, what):
    if array.dtype.kind != "f":
        return
    rows = max(1, _CHECKED_AT_ONCE // max(1, array[0].size))
    for first in range(0, len(array), rows):
        with np.errstate(over="ignore"):
            chunk = array[first:first + rows].astype(np.float32, copy=False)
        finite = np.isfinite(chunk).reshape(len(chunk), -1).all(axis=1)
        if not finite.all():
            record = first + int(np.argmin(finite))
            values = array[record:record + 1].reshape(-1)
            with np.errstate(over="ignore"):
                value = values[np.argmin(np.isfinite(values.astype(np.float32)))]
            raise InvalidArgument(f"{_said(name, what)}: record {record} holds {value}; numbers have to be finite in float32")


def _classes(layer, net, array):
    """The layer's number of classes for labels `array`, or None if the array cannot hold class labels."""
    scores = net.blobs[layer.bottom[0]].shape
    options = _OF_CLASSES[layer.type]
    axis = getattr(layer, options).axis if options else 1
    if not -len(scores) <= axis < len(scores):
        return None
    per_record = int(np.prod(scores[1:])) // scores[axis]
    return scores[axis] if array[0].size == per_record else None


def _ignored(layer):
    """The labels, if any, that the layer ignores although they are not classes."""
    values = [options.ignore_label for options in (layer.loss_param, layer.accuracy_param) if options.HasField("ignore_label")]
    return values[:1]


def _check_labels(array, name, what, net):
    for layer in net.definition.layer:
        if layer.type not in _OF_CLASSES or len(layer.bottom) < 2 or layer.bottom[1] != name:
            continue
        classes = _classes(layer, net, array)
        if classes is None:
            continue
        wrong = (array < 0) | (array >= classes)
        for value in _ignored(layer):
            wrong &= array != value
        if array.dtype.kind == "f":
            wrong |= array != np.floor(array)
        if wrong.any():
            place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            raise InvalidArgument(f"{_said(name, what)}: the label of record {place[0]} is {array[place]}, but layer {layer.name!r} "
                                  f"({layer.type}) has the classes 0 to {classes - 1}"
                                  + ("; give whole numbers from 0" if array[place] < classes
                                     else "; give whole numbers from 0, or more scores (num_output)"))


def label_inputs(net):
    """Names of the inputs that only losses and accuracies read."""
    readers = {name: [] for name in net.inputs}
    for layer in net.definition.layer:
        for bottom in layer.bottom:
            if bottom in readers:
                readers[bottom].append(layer.type.endswith("Loss") or layer.type == "Accuracy")
    return [name for name, are_losses in readers.items() if are_losses and all(are_losses)]


def records_for(net, x, y, call):
    """Records for all inputs of `net`. Raises InvalidArgument for values that do not fit, with the number
    of the first wrong record.

    `call`: name, for errors, of the function whose arguments x and y are.
    """
    try:
        return _records(net, x, y)
    except InvalidArgument as error:
        raise InvalidArgument(f"{call}: {error}") from None


def _records(net, x, y):
    inputs = list(net.inputs)
    given = y if isinstance(y, Mapping) else {}
    named = by_input(x, inputs, "x", taken=given)
    labels = {} if y is None else by_input(y, inputs, "y", taken=named)
    twice = [name for name in labels if name in named]
    if twice:
        raise InvalidArgument(f"input {twice[0]!r} is given in x and in y")
    missing = [name for name in inputs if name not in named and name not in labels]
    if missing:
        raise InvalidArgument(f"the net also needs {', '.join(missing)}; give "
                              + ("y" if y is None and len(missing) == 1 else f"a dict with {missing[0]!r}"))
    arrays = {}
    for name, array in {**named, **labels}.items():
        what = "y" if name in labels else "x"
        array = _fitting(array, name, what, net.blobs[name].shape)
        if len(array) == 0:
            raise InvalidArgument(f"{_said(name, what)} is empty: shape {array.shape}")
        arrays[name] = array
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{_said(name, 'y' if name in labels else 'x')} has {count}" for name, count in counts.items())
        raise InvalidArgument(f"the arrays have different numbers of records: {told}")
    for name, array in arrays.items():
        what = "y" if name in labels else "x"
        _check_finite(array, name, what)
        _check_labels(array, name, what, net)
    return Records(arrays, labels)

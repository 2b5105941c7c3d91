"""Methods that Python adds to the extension's Net: access by name, whole batches, callbacks."""
import difflib
import enum
from collections import OrderedDict
from itertools import zip_longest

import numpy as np

from ._caffe import InvalidArgument, Layer, Net
from ._unmade import guard_construction


def as_array(values, what="the array"):
    """Converts `values` to a numeric NumPy array. Accepts arrays, lists, Blobs, and tensors of
    other libraries (DLPack)."""
    foreign = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
    array = np.from_dlpack(values) if foreign else np.asarray(values)
    if array.dtype.kind not in "biufV" or array.dtype.fields is not None:
        raise InvalidArgument(f"{what} has dtype {array.dtype}; give real numbers, e.g. np.float32")
    return array


def _cached(name, make):
    """A property computed once per net: blobs, layers and names of a net do not change."""
    key = "_cached_" + name

    def get(self):
        found = self.__dict__.get(key)
        if found is None:
            found = self.__dict__[key] = make(self)
        return found

    get.__doc__ = make.__doc__
    return property(get)


class ByName(OrderedDict):
    """Blobs or parameters by name; the KeyError for an unknown name lists the known names."""

    def __init__(self, what, items, hint):
        super().__init__(items)
        self._what, self._hint = what, hint  # marks the end of construction: later assignments are errors

    def __setitem__(self, name, value):
        if hasattr(self, "_hint"):
            raise InvalidArgument(f"what the net has under a name cannot be exchanged; to set its numbers, {self._hint % repr(name)}")
        super().__setitem__(name, value)

    def __missing__(self, name):
        close = difflib.get_close_matches(name, self, 1) if isinstance(name, str) else []
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise KeyError(f"the net has no {self._what} {name!r}; {hint}It has: {', '.join(self) or 'none'}")

    def copy(self):
        return OrderedDict(self)

    def __reduce__(self):
        return OrderedDict, (list(self.items()),)


def _blobs(net):
    """Blobs by name, in the net's order: OrderedDict of Blob."""
    return ByName("blob", zip(net._blob_names, net._blobs), "write net.blobs[%s].data[...] = values")


def _params(net):
    """Parameter blobs by layer name: OrderedDict of BlobVec (0: weights, 1: biases), for layers with parameters."""
    return ByName("layer with parameters named", net._params, "write net.params[%s][0].data[...] = values")


def _layers(net):
    """The layers in order. A layer written in Python is an object of its class."""
    return net._layers


def tops_of(net, layer):
    """Names of the blobs that layer number `layer` writes."""
    return [net._blob_names[i] for i in net._top_ids(layer)]


def bottoms_of(net, layer):
    """Names of the blobs that layer number `layer` reads."""
    return [net._blob_names[i] for i in net._bottom_ids(layer)]


def _by_layer_name(net, values):
    """Layers without weights may share a name; the name then refers to the first, also as start and end of forward()."""
    result = OrderedDict()
    for name, value in zip(net._layer_names, values):
        result.setdefault(name, value)
    return result


def _layer_dict(net):
    """Layers by name: OrderedDict."""
    return _by_layer_name(net, net.layers)


def _blob_loss_weights(net):
    """Loss weight by blob name (0 for blobs that are not a loss): OrderedDict of float."""
    return OrderedDict(zip(net._blob_names, net._blob_loss_weights))


def _top_names(net):
    """Names of the blobs that each layer writes, by layer name: OrderedDict of lists."""
    return _by_layer_name(net, (tops_of(net, k) for k in range(len(net._layer_names))))


def _bottom_names(net):
    """Names of the blobs that each layer reads, by layer name: OrderedDict of lists."""
    return _by_layer_name(net, (bottoms_of(net, k) for k in range(len(net._layer_names))))


def _inputs(net):
    """Names of the blobs that the caller sets: tops of Input layers."""
    return net._inputs


def _outputs(net):
    """Names of the blobs that no layer reads, sorted."""
    return net._outputs


def _layer_index(self, name):
    try:
        return self._layer_names.index(name)
    except ValueError:
        raise InvalidArgument(f"the net has no layer {name!r}; its layers: {', '.join(self._layer_names)}") from None


def _missing_axis(name, shape, wanted):
    """Advice for an error about an array without the batch axis or an axis of extent 1; "" for other arrays."""
    names = ("batch", "channel", "height", "width") if len(wanted) == 4 else range(len(wanted))
    for axis, title in enumerate(names):
        without = (*wanted[:axis], *wanted[axis + 1:])
        if shape == without if axis == 0 else wanted[axis] == 1 and shape[:1] and shape[1:] == without[1:]:
            return f"; the {title} axis is missing: np.expand_dims({name}, {axis}) adds it"
    return ""


def _set(blob, name, values, diff=False):
    array = as_array(values, name)
    if array.ndim == 0 or not blob.shape or array.shape[0] != blob.shape[0]:
        if array.shape != blob.shape:
            advice = _missing_axis(name, array.shape, tuple(blob.shape))
            raise InvalidArgument(f"{'Diff' if diff else 'Input'} is not batch sized: {name} has shape {array.shape}, "
                                  f"its blob {blob.shape}"
                                  + (advice or "; reshape the blob, or use forward_all for other numbers of items"))
    view = blob.diff if diff else blob.data
    try:
        view[...] = array
    except ValueError as error:
        raise InvalidArgument(f"{name} has shape {array.shape}, its blob {blob.shape}: {error}"
                              + _missing_axis(name, array.shape, tuple(blob.shape))) from None


def _named(self, names):
    missing = [name for name in names if name not in self.blobs]
    if missing:
        raise InvalidArgument(f"the net has no blob {missing[0]!r}; its blobs: {', '.join(self.blobs)}")
    return names


def forward(self, blobs=None, start=None, end=None, **kwargs):
    """Runs the layers from `start` to `end` (names, inclusive; default all).

    kwargs: arrays by input name, for all inputs or none: float32 or convertible to it, with the input
    blob's shape. Without them the values in the input blobs are used. Returns a dict of the net's
    outputs (with `end`, of that layer's tops) and of the blobs named in `blobs`: float32 views, which
    the next forward() overwrites; copy values to keep them.

    Raises InvalidArgument for unknown names and shapes that do not fit, and any exception of a layer
    written in Python.
    """
    if blobs is not None and (hasattr(blobs, "__array__") or hasattr(blobs, "__dlpack__")):
        raise InvalidArgument("forward takes names of blobs, not an array; give inputs by name: forward("
                              + ", ".join(f"{name}=..." for name in self.inputs) + ")")
    if blobs is None and start is None and end is None:
        if kwargs:
            _set_inputs(self, kwargs)
        return self._forward_all_layers()
    first = 0 if start is None else _layer_index(self, start)
    last = len(self._layer_names) - 1 if end is None else _layer_index(self, end)
    outputs = _named(self, [*(self.outputs if end is None else self.top_names[end]), *(blobs or [])])
    if kwargs:
        _set_inputs(self, kwargs)
    self._forward(first, last)
    return {name: self.blobs[name].data for name in outputs}


def _set_inputs(self, arrays):
    if set(arrays) != set(self.inputs):
        raise InvalidArgument("Input blob arguments do not match net inputs. "
                              f"Given: {sorted(arrays)}; inputs: {sorted(self.inputs)}")
    for name, values in arrays.items():
        _set(self.blobs[name], name, values)


def backward(self, diffs=None, start=None, end=None, **kwargs):
    """Runs the layers from `start` down to `end` (names, inclusive; default all, from the last).

    kwargs: gradients by output name, for all outputs or none. Without them the gradient starts from
    the output blobs' diffs, which hold the loss weights. Gradients of parameters are added to their
    diffs (see clear_param_diffs). Returns a dict of the diffs of the net's inputs (with `end`, of
    that layer's bottoms) and of the blobs named in `diffs`. Bottoms have diffs only if a layer
    below them learns, or with force_backward: true.
    """
    first = len(self._layer_names) - 1 if start is None else _layer_index(self, start)
    last = 0 if end is None else _layer_index(self, end)
    wanted = _named(self, [*(self.inputs if end is None else self.bottom_names[end]), *(diffs or [])])
    if kwargs:
        if set(kwargs) != set(self.outputs):
            raise InvalidArgument("Top diff arguments do not match net outputs. "
                                  f"Given: {sorted(kwargs)}; outputs: {sorted(self.outputs)}")
        for name, values in kwargs.items():
            _set(self.blobs[name], name, values, diff=True)
    self._backward(first, last)
    return {name: self.blobs[name].diff for name in wanted}


def forward_all(self, blobs=None, **kwargs):
    """forward() for any number of items, in batches of the net's size. The last batch is padded
    with zeros; results for the padding are removed.

    Returns a dict of new arrays with as many items as were given.
    """
    collected = {name: [] for name in _named(self, [*self.outputs, *(blobs or [])])}
    for batch in self._batch(kwargs):
        outputs = self.forward(blobs=blobs, **batch)
        for name, rows in collected.items():
            rows.extend(outputs[name].copy())
    return _cut(collected, kwargs)


def forward_backward_all(self, blobs=None, diffs=None, **kwargs):
    """forward() and backward() in batches. kwargs hold inputs and, optionally, diffs of outputs.

    Returns two dicts of arrays: outputs with `blobs`, and the inputs' diffs with `diffs`.
    """
    all_outs = {name: [] for name in _named(self, [*self.outputs, *(blobs or [])])}
    all_diffs = {name: [] for name in _named(self, [*self.inputs, *(diffs or [])])}
    inputs = {name: kwargs[name] for name in self.inputs if name in kwargs}
    tops = {name: kwargs[name] for name in self.outputs if name in kwargs}
    unknown = set(kwargs) - set(inputs) - set(tops)
    if unknown:
        raise InvalidArgument(f"{sorted(unknown)[0]!r} is neither an input nor an output of the net")
    for batch, gradients in zip_longest(self._batch(inputs), self._batch(tops) if tops else (), fillvalue={}):
        outputs = self.forward(blobs=blobs, **batch)
        for name, rows in all_outs.items():
            rows.extend(outputs[name].copy())
        found = self.backward(diffs=diffs, **gradients)
        for name, rows in all_diffs.items():
            rows.extend(found[name].copy())
    return _cut(all_outs, inputs), _cut(all_diffs, inputs)


def _cut(collected, given):
    items = len(next(iter(given.values())))
    return {name: np.asarray(rows)[:items] for name, rows in collected.items()}


def _batch(self, arrays):
    """Yields dicts of arrays of the net's batch size; the last one is padded with zeros."""
    if not arrays:
        raise InvalidArgument(f"no arrays given; the net's inputs: {', '.join(self.inputs)}")
    arrays = {name: as_array(values, name) for name, values in arrays.items()}
    for name in _named(self, list(arrays)):
        shape, wanted = arrays[name].shape, tuple(self.blobs[name].shape)
        advice = _missing_axis(name, shape, wanted)
        if advice and wanted[0] != 1:  # an item of a batch of one is broadcast
            raise InvalidArgument(f"{name} has shape {shape}, its blob {wanted}{advice}")
    counts = {name: len(values) for name, values in arrays.items()}
    if len(set(counts.values())) != 1:
        raise InvalidArgument(f"the arrays have different numbers of items: {counts}")
    items = next(iter(counts.values()))
    size = self.blobs[_named(self, [next(iter(arrays))])[0]].shape[0]
    for begin in range(0, items, size):
        batch = {name: values[begin:begin + size] for name, values in arrays.items()}
        missing = size - len(next(iter(batch.values())))
        if missing:
            batch = {name: np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
                     for name, rows in batch.items()}
        yield batch


def set_input_arrays(self, data, labels):
    """Sets the items of a net whose first layer is MemoryData.

    data: float32, C-contiguous, (items, channels, height, width); labels: float32, (items,) or
    (items, 1, 1, 1). The number of items is a multiple of batch_size. The net uses the arrays without
    a copy and keeps references to them.
    """
    labels = np.asarray(labels)
    if labels.ndim == 1:
        labels = np.ascontiguousarray(labels[:, np.newaxis, np.newaxis, np.newaxis])
    self._set_input_arrays(np.asarray(data), labels)


def _hook(name, when):
    add = getattr(Net, "_add_" + name)

    def hook(self, f):
        add(self, f)

    hook.__doc__ = f"Calls f(layer_index) {when} each layer; what it raises ends the run\nand reaches its caller."
    hook.__name__ = name
    return hook


def plan(self):
    """The compiled net as objects: `plan.steps` (a list of PlanStep) and `plan.memory` (bytes by
    kind)."""
    from .display import Plan
    return Plan(self._plan_steps(), self._plan_memory())


def _definition(net):
    """The definition that was compiled: a caffe_pb2.NetParameter."""
    from .proto import caffe_pb2
    return caffe_pb2.NetParameter.FromString(net._definition())


def _layer_param(layer):
    """The layer's definition: a copy, as a caffe_pb2.LayerParameter."""
    from .proto import caffe_pb2
    return caffe_pb2.LayerParameter.FromString(layer._layer_param())


class Phase(enum.IntEnum):
    """caffe.TRAIN and caffe.TEST with names: both `phase == caffe.TEST` and, as older layers compare,
    `str(phase) == "TEST"`."""
    TRAIN = 0
    TEST = 1

    def __str__(self):
        return self.name


def _phase(of):
    """The property `phase` of a class, with a Phase as its value."""
    own = of.phase
    return property(lambda self: Phase(own.fget(self)), doc=own.__doc__)


def _repr(self):
    return f"<caffe.Net {self.name!r}: {len(self._layer_names)} layers, inputs {self.inputs}, outputs {self.outputs}>"


def _repr_html(self):
    from .display import net_html
    return net_html(self)


_RIGHT_CALL = 'caffe.Net("net.prototxt", caffe.TEST, weights="x.caffemodel")'
_construct = guard_construction(Net.__init__)


def _init(self, *args, **kwargs):
    try:
        _construct(self, *args, **kwargs)
    except TypeError as error:
        if "incompatible constructor arguments" not in str(error):
            raise
        raise TypeError(f"Net takes a definition and a phase, and weights by name: {_RIGHT_CALL}") from None


_init.__doc__ = _construct.__doc__


def _replaceable(of, name):
    """Lets scripts and layers assign to this name: pycaffe's objects have no such attribute, so scripts use it for themselves."""
    own, key = getattr(of, name), "_own_" + name

    def get(self):
        return getattr(self, "__dict__", {}).get(key, own.fget(self))

    def put(self, value):
        self.__dict__[key] = value

    get.__doc__ = own.__doc__
    return property(get, put)


Net.__init__ = _init
Net.blobs = _cached("blobs", _blobs)
Net.params = _cached("params", _params)
Net.layers = _cached("layers", _layers)
Net.layer_dict = _cached("layer_dict", _layer_dict)
Net.blob_loss_weights = _cached("blob_loss_weights", _blob_loss_weights)
Net.top_names = _cached("top_names", _top_names)
Net.bottom_names = _cached("bottom_names", _bottom_names)
Net.inputs = _cached("inputs", _inputs)
Net.outputs = _cached("outputs", _outputs)
Net.definition = property(_definition)
Net.forward = forward
Net.backward = backward
Net.forward_all = forward_all
Net.forward_backward_all = forward_backward_all
Net._batch = _batch
Net.set_input_arrays = set_input_arrays
Net.before_forward = _hook("before_forward", "before the forward of")
Net.after_forward = _hook("after_forward", "after the forward of")
Net.before_backward = _hook("before_backward", "before the backward of")
Net.after_backward = _hook("after_backward", "after the backward of")
Net.plan = plan
Net.__repr__ = _repr
Layer.layer_param = property(_layer_param)
Layer.param_str_ = property(Layer.param_str.fget, doc="param_str, as layers written before BVLC Caffe 1.0 read it.")
Layer.phase, Net.phase = _phase(Layer), _phase(Net)
Net._repr_html_ = _repr_html
for _of, _names in ((Net, ("name", "phase")), (Layer, ("name", "layer_param", "phase", "param_str", "param_str_"))):
    for _name in _names:
        setattr(_of, _name, _replaceable(_of, _name))


def __getattr__(name):
    """Supports BVLC's scripts, which import solvers from here: `from caffe.pycaffe import SGDSolver`."""
    if name == "get_solver" or name.endswith("Solver"):
        from . import solver  # not earlier: it needs this module's Net
        return getattr(solver, name)
    if name in ("NCCL", "Timer", "layer_type_list"):
        from . import _caffe
        return getattr(_caffe, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Whether onnxruntime computes what the net computes."""
import importlib.util
import os

import numpy as np

from .._caffe import Error, InvalidArgument, Net
from ..proto import caffe_pb2
from .registry import SOURCES

# Bottoms that hold whole numbers: (layer type, bottom).
_INDICES = {("Embed", 0), ("BatchReindex", 1)}

_LAYER_TYPES = ("forward_type", "backward_type", "forward_math", "backward_math")
_NET_TYPES = tuple(f"default_{field}" for field in _LAYER_TYPES)


class Mismatch(Error):
    """The model's outputs are not the net's."""


class NotComputed(InvalidArgument):
    """There is nothing to compare with."""


def compare(net, report, stored, check, inputs, tolerance, may_change_blobs):
    """Fills in report.differences, or why nothing was compared. Raises Mismatch, and InvalidArgument where `check` is True and
    nothing can be compared.

    stored: the model. may_change_blobs: whether nobody else sees the net.
    """
    report.not_compared = _reason_not_to_compare(check)
    if report.not_compared:
        return
    arrays = inputs_of(net, report, inputs)
    try:
        got = run(stored.source, arrays)
    except NotComputed as error:
        if check:
            raise
        report.not_compared = str(error)
        return
    twin = net if may_change_blobs and _computes_as_models_do(net) else _twin(net)
    expected = _outputs_of(twin, report, arrays)
    report.differences = {name: difference(expected[name], got[name]) for name in report.outputs}
    require_near(report.differences, "onnxruntime", tolerance)
    note_missing_numbers(report, expected, check)


def note_missing_numbers(report, expected, check):
    """Moves outputs that are nothing but NaN from report.differences to report.without_numbers: any model with NaN would pass.
    Raises InvalidArgument for them where `check` is True."""
    report.without_numbers = [name for name, array in expected.items() if np.size(array) and np.isnan(array).all()]
    for name in report.without_numbers:
        del report.differences[name]
    if check and report.without_numbers:
        raise InvalidArgument(f"output '{report.without_numbers[0]}' of the net is nothing but NaN, so that nothing can be compared: "
                              "give the weights, or real inputs")


def require_near(differences, whose, tolerance):
    """Raises Mismatch where a difference of an output is larger."""
    wrong = [f"{name} by {number:.3g}" for name, number in differences.items() if not number <= tolerance]
    if wrong:
        raise Mismatch(f"outputs of {whose} differ from the net's by more than {tolerance:g} of the largest number: "
                       + ", ".join(wrong))


def compare_numbers(net, report, stored, other, inputs):
    """How far the outputs of another stored model are from those of the report's: the root of the mean square difference,
    relative to that of the outputs."""
    arrays = inputs_of(net, report, inputs)
    expected, got = run(stored.source, arrays), run(other.source, arrays)
    return {name: relative_error(expected[name], got[name]) for name in expected}


def relative_error(expected, got):
    expected = np.asarray(expected, np.float64)
    whole = np.sum(expected ** 2)
    wrong = np.sum((expected - got) ** 2)
    if whole == 0:
        return 0.0 if wrong == 0 else np.inf
    return float(np.sqrt(wrong / whole))


def _reason_not_to_compare(check):
    if check is False:
        return "not asked for"
    if importlib.util.find_spec("onnxruntime") is not None:
        return ""
    if check:
        raise NotComputed("the comparison needs onnxruntime: pip install onnxruntime")
    return "there is no onnxruntime: pip install onnxruntime"


def _outputs_of(net, report, arrays):
    for name, array in arrays.items():
        net.blobs[name].data[...] = array
    net.forward()
    return {name: net.blobs[blob].data.copy() for name, blob in report.blobs.items()}


def run(model, arrays):
    """Outputs by name of a model, computed by onnxruntime: an onnx.ModelProto, or a file, as models beyond 2 GiB need. Raises
    NotComputed where onnxruntime has no kernel."""
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as errors
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Else sums of 8-bit products saturate on x86 processors without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        if isinstance(model, (str, os.PathLike)):
            source = os.fspath(model)
            options.add_session_config_entry("session.disable_prepacking", "1")  # packing copies the weights, which are mapped
        else:
            source = model.SerializeToString()
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except errors.NotImplemented as error:
        raise NotComputed(f"onnxruntime {onnxruntime.__version__} cannot run the model: {error}") from None
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, arrays)))


def difference(expected, got):
    """The largest difference, relative to the largest number expected; infinity where shapes or NaN differ."""
    expected, got = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    if expected.shape != got.shape or not np.array_equal(np.isnan(expected), np.isnan(got)):
        return np.inf
    both = np.isfinite(expected) & np.isfinite(got)
    if not np.array_equal(expected[~both], got[~both], equal_nan=True):
        return np.inf
    if not both.any():
        return 0.0
    largest = np.abs(expected[both]).max()
    return float(np.abs(expected[both] - got[both]).max() / (largest if largest > 0 else 1))


def _clear(message, fields):
    for field in fields:
        message.ClearField(field)


def _computes_as_models_do(net):
    """Whether a net that has not run yet is its own twin, which saves memory for its weights."""
    definition = net.definition
    return not any(definition.HasField(field) for field in _NET_TYPES) and all(
        layer.type == "Input" or layer.type not in SOURCES and not any(layer.HasField(field) for field in _LAYER_TYPES)
        for layer in definition.layer)


def _twin(net):
    """A net with the same weights that computes in float, as the model does, whose recurrent states are 0 and whose data comes
    from the caller."""
    definition = caffe_pb2.NetParameter()
    definition.CopyFrom(net.definition)
    _clear(definition, _NET_TYPES)
    for layer in definition.layer:
        _clear(layer, _LAYER_TYPES)
        if layer.type not in SOURCES:
            continue
        layer.type = "Input"
        layer.ClearField("input_param")
        for top in layer.top:
            layer.input_param.shape.add().dim.extend(net.blobs[top].shape)
    twin = Net(definition, net.phase)
    for name, blobs in net.params.items():
        for own, blob in zip(twin.params[name], blobs):
            own.data[...] = blob.data
    return twin


def inputs_of(net, report, given):
    """Arrays by input of the report: those given, else random numbers."""
    given = dict(given or {})
    unknown = set(given) - set(report.inputs)
    if unknown:
        raise InvalidArgument(f"the model has no input {', '.join(sorted(unknown))}; its inputs: {', '.join(report.inputs)}")
    indices = {layer.layer_param.bottom[bottom]: layer for layer in net.layers
               for kind, bottom in _INDICES if layer.type == kind}
    generator = np.random.default_rng(1)
    arrays = {}
    for name, shape in report.inputs.items():
        if name in given:
            arrays[name] = _given(name, given[name], shape)
        elif name in indices:
            arrays[name] = generator.integers(0, _limit(net, indices[name]), shape).astype(np.float32)
        else:
            arrays[name] = generator.uniform(-1, 1, shape).astype(np.float32)
    return arrays


def _given(name, array, shape):
    try:
        array = np.asarray(array, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the array for input '{name}' is not of numbers: {error}") from None
    if array.shape != tuple(shape):
        raise InvalidArgument(f"the array for input '{name}' has shape {array.shape}; it must be {tuple(shape)}")
    return array


def _limit(net, layer):
    if layer.type == "Embed":
        return layer.layer_param.embed_param.input_dim
    return net.blobs[layer.layer_param.bottom[0]].shape[0]

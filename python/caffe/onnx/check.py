"""Compares the results of onnxruntime with those of the net."""
import contextlib
import importlib.util
import os
import tempfile

import numpy as np
import onnx

from .._caffe import Error, InvalidArgument, Net
from .._packages import install_command, need
from ..proto import caffe_pb2
from .decisions import Decisions
from .inputs import inputs_of
from .registry import SOURCES

_LAYER_TYPES = ("forward_type", "backward_type", "forward_math", "backward_math")
_NET_TYPES = tuple(f"default_{field}" for field in _LAYER_TYPES)


class Mismatch(Error):
    """The model's outputs differ from the net's."""


class NotComputed(InvalidArgument):
    """The comparison is not possible."""


def compare(net, report, stored, check, inputs, tolerance, may_change_blobs):
    """Fills in report.differences, or the reason why nothing was compared. Raises Mismatch; also InvalidArgument if `check` is True
    and no comparison is possible.

    stored: the model. may_change_blobs: True if nobody else uses the net.
    """
    report.not_compared = _reason_not_to_compare(check)
    if report.not_compared:
        return
    arrays = inputs_of(net, report, inputs)
    try:
        got = run(stored.source, arrays, report.decisions.values())
    except NotComputed as error:
        if check:
            raise
        report.not_compared = str(error)
        return
    twin = net if may_change_blobs and _computes_as_models_do(net) else _twin(net)
    for name, array in arrays.items():
        twin.blobs[name].data[...] = array
    decisions = Decisions({key: got[tensor] for key, tensor in report.decisions.items()}, tolerance)
    decisions.forward(twin)
    found = decisions.compare_outputs(twin, report.blobs, got)
    report.differences = {name: difference.relative for name, difference in found.items()}
    report.decided_otherwise = {name: difference.decided for name, difference in found.items() if difference.decided}
    require_near(found, "onnxruntime", tolerance)
    note_missing_numbers(report, {name: twin.blobs[blob].data for name, blob in report.blobs.items()}, check)


def require_near(differences, whose, tolerance):
    """Raises Mismatch if an output's Difference exceeds the tolerance."""
    wrong = [f"{name}: {difference.text}" for name, difference in differences.items() if not difference.relative <= tolerance]
    if wrong:
        raise Mismatch(f"outputs of {whose} differ from the net's by more than {tolerance:g} of the largest number; "
                       f"{'; '.join(wrong)}. Compare with real data (--inputs FILE.npz, or inputs={{...}}), allow more where a "
                       "deep net rounds (--tolerance), or write without comparing (--check=no, or check=False)")


def note_missing_numbers(report, expected, check):
    """Moves all-NaN outputs from report.differences to report.without_numbers: any model with NaN would pass the comparison.
    Raises InvalidArgument for them if `check` is True."""
    report.without_numbers = [name for name, array in expected.items() if np.size(array) and np.isnan(array).all()]
    for name in report.without_numbers:
        del report.differences[name]
    if check and report.without_numbers:
        raise InvalidArgument(f"output '{report.without_numbers[0]}' of the net is nothing but NaN, so that nothing can be compared: "
                              "give the weights, or real inputs")


def compare_numbers(net, report, stored, other, inputs):
    """Root mean square difference between the outputs of another stored model and the report's model, relative to the root mean
    square of the outputs."""
    arrays = inputs_of(net, report, inputs)
    expected, got = run(stored.source, arrays), run(other.source, arrays)
    return {name: relative_error(expected[name], got[name]) for name in expected}


def relative_error(expected, got):
    """Infinity if shapes differ, which is possible for detections."""
    if np.shape(expected) != np.shape(got):
        return np.inf
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
        raise NotComputed(f"the comparison needs onnxruntime: {install_command('onnxruntime')}")
    return f"there is no onnxruntime: {install_command('onnxruntime')}"


def run(model, arrays, also=()):
    """Runs a model with onnxruntime and returns its outputs by name. The model is an onnx.ModelProto, or a file (required above 2 GiB).

    also: intermediate tensors to return, too. Raises NotComputed if onnxruntime lacks a kernel.
    """
    onnxruntime, errors = need("onnxruntime"), need("onnxruntime.capi.onnxruntime_pybind11_state")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Otherwise sums of 8-bit products saturate on x86 processors without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if isinstance(model, (str, os.PathLike)):
        options.add_session_config_entry("session.disable_prepacking", "1")  # packing would copy the mapped weights
    try:
        with _source(model, also) as source:
            session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except errors.NotImplemented as error:
        raise NotComputed(f"onnxruntime {onnxruntime.__version__} cannot run the model: {error}") from None
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, arrays)))


@contextlib.contextmanager
def _source(model, also):
    """The model for onnxruntime, a file or bytes, with additional outputs."""
    is_file = isinstance(model, (str, os.PathLike))
    if is_file and not also:
        yield os.fspath(model)
        return
    proto = onnx.load(model, load_external_data=False) if is_file else model
    shown = proto.graph.output
    count = len(shown)
    names = {value.name for value in shown}
    shown.extend(onnx.helper.make_empty_tensor_value_info(name) for name in also if name not in names)
    source = proto.SerializeToString()
    del shown[count:]
    if not is_file:
        yield source
        return
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(model), suffix=".onnx") as file:  # in the folder of the model's weights
        file.write(source)
        file.flush()
        yield file.name


def _clear(message, fields):
    for field in fields:
        message.ClearField(field)


def _computes_as_models_do(net):
    """True if a net that has not run yet can serve as its own twin, which saves memory for weights."""
    definition = net.definition
    return not any(definition.HasField(field) for field in _NET_TYPES) and all(
        layer.type == "Input" or layer.type not in SOURCES and not any(layer.HasField(field) for field in _LAYER_TYPES)
        for layer in definition.layer)


def _twin(net):
    """A net with the same weights for the comparison: it computes in float, as the model does, starts with zero recurrent states,
    and gets its data from the caller."""
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

"""Whether onnxruntime computes what the net computes."""
import contextlib
import importlib.util
import os
import tempfile

import numpy as np
import onnx

from .._caffe import Error, InvalidArgument, Net
from ..proto import caffe_pb2
from .decisions import Decisions
from .inputs import inputs_of
from .registry import SOURCES

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
    """Raises Mismatch where an output's Difference is larger."""
    wrong = [f"{name}: {difference.text}" for name, difference in differences.items() if not difference.relative <= tolerance]
    if wrong:
        raise Mismatch(f"outputs of {whose} differ from the net's by more than {tolerance:g} of the largest number; "
                       f"{'; '.join(wrong)}. Compare with real data (--inputs FILE.npz, or inputs={{...}}), allow more where a "
                       "deep net rounds (--tolerance), or write without comparing (--check=no, or check=False)")


def note_missing_numbers(report, expected, check):
    """Moves outputs that are nothing but NaN from report.differences to report.without_numbers: any model with NaN would pass.
    Raises InvalidArgument for them where `check` is True."""
    report.without_numbers = [name for name, array in expected.items() if np.size(array) and np.isnan(array).all()]
    for name in report.without_numbers:
        del report.differences[name]
    if check and report.without_numbers:
        raise InvalidArgument(f"output '{report.without_numbers[0]}' of the net is nothing but NaN, so that nothing can be compared: "
                              "give the weights, or real inputs")


def compare_numbers(net, report, stored, other, inputs):
    """How far the outputs of another stored model are from those of the report's: the root of the mean square difference,
    relative to that of the outputs."""
    arrays = inputs_of(net, report, inputs)
    expected, got = run(stored.source, arrays), run(other.source, arrays)
    return {name: relative_error(expected[name], got[name]) for name in expected}


def relative_error(expected, got):
    """Infinity where shapes differ, as of detections they may."""
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
        raise NotComputed("the comparison needs onnxruntime: pip install onnxruntime")
    return "there is no onnxruntime: pip install onnxruntime"


def run(model, arrays, also=()):
    """Outputs by name of a model, computed by onnxruntime: an onnx.ModelProto, or a file, as models beyond 2 GiB need.

    also: tensors between its nodes whose arrays are returned, too. Raises NotComputed where onnxruntime has no kernel.
    """
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as errors
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Else sums of 8-bit products saturate on x86 processors without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if isinstance(model, (str, os.PathLike)):
        options.add_session_config_entry("session.disable_prepacking", "1")  # packing copies the weights, which are mapped
    try:
        with _source(model, also) as source:
            session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except errors.NotImplemented as error:
        raise NotComputed(f"onnxruntime {onnxruntime.__version__} cannot run the model: {error}") from None
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, arrays)))


@contextlib.contextmanager
def _source(model, also):
    """What onnxruntime reads, a file or bytes, with more outputs."""
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
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(model), suffix=".onnx") as file:  # where the model's weights are
        file.write(source)
        file.flush()
        yield file.name


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

"""Converts a net to an ONNX model."""
import os
from collections import OrderedDict
from dataclasses import dataclass, field

import onnx

from .._caffe import InvalidArgument, Net, Unsupported, __version__
from .._output import require_place, weights_beside
from ..deployment import model_info
from ..calibration import Calibration
from ..proto import caffe_pb2
from . import caffe_files, metadata
from . import layers  # noqa: F401  (registers the writers)
from .builder import Builder, newest_opset
from .check import compare, compare_numbers, note_missing_numbers, require_near
from .decisions import decided_tops
from .fitting import Fit, fit
from .inputs import inputs_of
from .problems import Problem, in_sentences, title
from .profile import Profile, load_profile
from .quantizing import quantize, sensitivity
from .registry import SOURCES, LayerView, reason_left_out, reason_refused, writer_of
from .storing import Storage

OLDEST_OPSET = 11
DEFAULT_OPSET = 13

# Layers whose tops depend on shapes only.
_CONSTANT = {"PriorBox"}


@dataclass
class Request:
    """The options of a call of export()."""
    opset: int = None
    detection: str = None
    profile: Profile = None
    allow_unsupported: bool = False
    info: object = None  # the net's ModelInfo

    def __post_init__(self):
        profile = self.profile if self.profile and self.profile.format == "onnx" else None
        if self.opset is None:
            self.opset = profile.opset["default"] if profile else DEFAULT_OPSET
        if self.detection is None:
            self.detection = profile.detection if profile else "nms"
        if not OLDEST_OPSET <= self.opset <= newest_opset():
            raise InvalidArgument(f"opset is {self.opset}; it must be from {OLDEST_OPSET} to {newest_opset()}, the newest one of "
                                  f"package onnx {onnx.__version__}")
        if profile and not profile.takes_opset(self.opset):
            raise InvalidArgument(f"opset is {self.opset}; {profile.name} takes {profile.opsets}")
        if self.detection not in ("nms", "raw"):
            raise InvalidArgument(f"detection is {self.detection!r}; it must be 'nms' or 'raw'")


@dataclass
class Report:
    """The result of export().

    model: the onnx.ModelProto; None for a profile of Caffe's files. If it was written to a file and
    exceeds 2 GiB, its weights are only in the second file, and run() takes the file. inputs, outputs:
    shapes by name; None is an extent that depends on the data. blobs: the net's blobs by output name;
    they differ only if an in-place layer overwrites an input. left_out: the reason for each layer that
    is not in the model, by name. differences: of onnxruntime's outputs from the net's, by name,
    relative to the largest number. decided_otherwise: by output, how many positions, labels or rows of
    boxes onnxruntime chose differently, with candidates within the tolerance ("3 of 40"). decisions:
    tensors of layers that decide, by layer index and blob. not_compared: why there are no differences;
    "" if there are. without_numbers: outputs that are all NaN, which makes a comparison meaningless.
    rewritten: what was changed for a profile's chip, by layer. problems: what would not run there, one
    sentence per layer and reason. int8: names of the layers that compute in 8 bits. kept_float: why
    other layers with weights do not, by name. int8_differences: root mean square difference of the
    8-bit outputs from the float outputs, relative to the latter. sensitivity: relative difference of
    the outputs if this layer alone computes in 8 bits, the worst layer first.
    """
    model: object
    inputs: OrderedDict
    outputs: OrderedDict
    blobs: OrderedDict
    left_out: OrderedDict
    differences: dict = field(default_factory=dict)
    decided_otherwise: dict = field(default_factory=dict)
    decisions: dict = field(default_factory=dict)
    not_compared: str = ""
    without_numbers: list = field(default_factory=list)
    rewritten: OrderedDict = field(default_factory=OrderedDict)
    problems: list = field(default_factory=list)
    int8: list = field(default_factory=list)
    kept_float: OrderedDict = field(default_factory=OrderedDict)
    int8_differences: dict = field(default_factory=dict)
    sensitivity: OrderedDict = field(default_factory=OrderedDict)


def export(net, file=None, weights=None, *, opset=None, detection=None, check=None, inputs=None, tolerance=1e-5, profile=None,
           allow_unsupported=False, batch=None, int8=None, keep_float=(), find_sensitive=False):
    """Writes a net for inference as an ONNX model.

    net: a caffe.Net of phase TEST, or a prototxt with `weights` (.caffemodel or .h5). file: output
    file; weights beyond 2 GiB go to FILE.data; None writes no file. opset: version of ONNX's operators,
    from 11 to the newest that package onnx supports; default: the profile's, or 13. detection: "nms"
    writes DetectionOutput with NonMaxSuppression, "raw" omits it; default: the profile's, or "nms".
    check: also run the model in onnxruntime and compare; default: if onnxruntime is installed. inputs:
    arrays by input for the comparison; default: random numbers. tolerance: largest difference of an
    output, relative to its largest number. profile: of a chip (profile_names()), or a profile's file;
    operators that the chip does not support are rewritten, or refused. allow_unsupported: write
    unsupported operators anyway, and list them in the report. batch: replaces the batch size of a
    prototxt's inputs. int8: a Calibration, or a file of one; the model then has QuantizeLinear and
    DequantizeLinear around 8-bit operators, added after its float version has passed the comparison.
    keep_float: names of layers that stay float. find_sensitive: with int8, measures how much each
    layer alone changes the outputs; `inputs` should then be real data.

    Returns a Report. Raises Unsupported, with all layers that ONNX cannot express or the profile's
    chip does not support; Mismatch if the comparison fails; and InvalidArgument if `check` is True and
    an output is all NaN. In these cases no file is written.
    """
    if not tolerance >= 0:  # also rejects NaN
        raise InvalidArgument(f"tolerance is {tolerance:g}; it must be a number from 0 up")
    if file is not None:
        require_place(file)
    request = Request(opset, detection, None if profile is None else load_profile(profile), allow_unsupported)
    is_given = isinstance(net, Net)
    if not is_given:
        net = Net(os.fspath(net), caffe_pb2.TEST, weights=weights)
        if batch is not None:
            _set_batch(net, batch)
    elif weights is not None:
        raise InvalidArgument("weights go with a prototxt; load them into the net (net.copy_from)")
    elif batch is not None:
        raise InvalidArgument("a batch goes with a prototxt; reshape the net's inputs (net.blobs[...].reshape, net.reshape)")
    request.info = _info_of(net, weights)
    if net.phase != caffe_pb2.TEST:
        raise InvalidArgument("the net has phase TRAIN; make it with caffe.TEST, in which dropout and statistics are those of "
                              "inference")
    if request.profile is not None and request.profile.format == "caffe":
        if int8 is not None:
            raise InvalidArgument(f"{request.profile.name} takes Caffe's files, which have no 8-bit numbers; its toolchain makes them")
        return _export_caffe(net, file, request, check, inputs, tolerance)
    with Storage(file) as storage:
        report, stored = _Exporter(net, request).run(storage)
        stored.check()
        compare(net, report, stored, check, inputs, tolerance, may_change_blobs=not is_given)
        if int8 is not None:
            stored = _quantize(net, report, request, storage, stored, int8, keep_float, inputs, find_sensitive)
        elif keep_float or find_sensitive:
            raise InvalidArgument("keep_float and find_sensitive are for models of 8-bit numbers; give a calibration (int8)")
        if file is not None:
            storage.publish(stored)
        else:
            stored.embed()
    return report


def _info_of(net, weights):
    """The net's ModelInfo, else that of its weights."""
    info = model_info(net)
    return info if info.ByteSize() > 0 or weights is None else model_info(weights)


def _quantize(net, report, request, storage, stored, int8, keep_float, inputs, find_sensitive):
    """Makes the 8-bit model; adds its results to the report."""
    calibration = int8 if isinstance(int8, Calibration) else Calibration.load(int8)
    _require_own_ranges(net)
    quantized = quantize(stored, calibration, storage, keep_float)
    added = {node.op_type for node in quantized.stored.model.graph.node} - {node.op_type for node in report.model.graph.node}
    missing = sorted(added - set(request.profile.operators)) if request.profile else []
    if missing:
        report.problems.append(f"{request.profile.name} does not take {' and '.join(missing)}, as models of 8-bit numbers have them")
        if not request.allow_unsupported:
            raise Unsupported(report.problems[-1])
    quantized.stored.check()
    if not report.not_compared:
        report.int8_differences = compare_numbers(net, report, stored, quantized.stored, inputs)
    if find_sensitive:
        if report.not_compared:
            raise InvalidArgument(f"sensitive layers are found by onnxruntime, and nothing was compared: {report.not_compared}")
        report.sensitivity = sensitivity(stored.source, calibration, inputs_of(net, report, inputs), storage)
    report.model, report.int8, report.kept_float = quantized.stored.model, quantized.layers, quantized.kept
    return quantized.stored


def _export_caffe(net, file, request, check, inputs, tolerance):
    """Writes Caffe's own files, for a toolchain that reads them."""
    weights = None if file is None else weights_beside(os.fspath(file))
    files = caffe_files.CaffeFiles(net, request.profile)
    if files.problems and not request.allow_unsupported:
        raise Unsupported(f"{request.profile.name} does not take {in_sentences(files.problems)}")

    def shapes(names):
        return OrderedDict((name, tuple(net.blobs[name].shape)) for name in names)

    report = Report(None, shapes(net.inputs), shapes(net.outputs), OrderedDict((name, name) for name in net.outputs), OrderedDict(),
                    rewritten=OrderedDict(files.rewritten), problems=[str(problem) for problem in files.problems])
    if check is not False:
        expected, found = caffe_files.compare(files, inputs_of(net, report, inputs), tolerance)
        report.differences = {name: difference.relative for name, difference in found.items()}
        require_near(found, "the net that is written", tolerance)
        note_missing_numbers(report, expected, check)
    if file is not None:
        caffe_files.write(files, os.fspath(file), weights)
    return report


def _require_own_ranges(net):
    """Rejects inputs overwritten in place: ranges are stored by blob, and would be those of the result, not of the input."""
    for layer in net.layers:
        overwritten = set(layer.layer_param.bottom) & set(layer.layer_param.top) & set(net.inputs)
        if overwritten:
            raise InvalidArgument(f"layer '{layer.layer_param.name}' overwrites the input '{overwritten.pop()}' in place, whose range "
                                  "is then not known; give its top another name")


def _set_batch(net, items):
    if items < 1:
        raise InvalidArgument(f"batch is {items}; it must be at least 1")
    for name in net.inputs:
        net.blobs[name].reshape(items, *net.blobs[name].shape[1:])
    net.reshape()


class _Exporter:
    def __init__(self, net, request):
        self.net, self.request = net, request
        self.onnx = Builder(request.opset)
        self.tensors = {}  # blob -> tensor of its latest version
        self.constants = {}  # tensor -> array
        self.shapes = {}  # tensor -> shape
        self.inputs, self.left_out = OrderedDict(), OrderedDict()
        self.unread = set()  # blobs that no later layer has read yet
        self.decisions = {}  # of layers that decide: (index, blob) -> tensor
        self.unsupported = []
        self.types = {}  # layer name -> type

    def run(self, storage):
        """Returns a Report and the Stored model."""
        for blob in self.net.blobs:
            self.onnx.reserve(blob)
        for index in range(len(self.net.layers)):
            self.add_layer(index)
        if self.unsupported:
            sentences = [*self.unsupported, in_sentences(self.fit().problems)]
            raise Unsupported("ONNX or this exporter cannot express " + "; ".join(filter(None, sentences)))
        outputs, blobs = self.name_outputs()
        if not outputs:
            raise InvalidArgument("no layer is left whose results could be outputs")
        self.onnx.drop_unread(outputs)
        fitted = self.fit()
        if fitted.problems and not self.request.allow_unsupported:
            raise Unsupported(f"{self.request.profile.name} does not take {in_sentences(fitted.problems)}")
        self.onnx.drop_unread(outputs)
        read = {name for node in self.onnx.nodes for name in node.input}
        inputs = OrderedDict((name, shape) for name, shape in self.inputs.items() if name in read)
        model = self.onnx.model(self.net.name, inputs, outputs, __version__)
        metadata.put(self.request.info, model)
        stored = storage.store(model, self.onnx.weights)
        return Report(stored.model, inputs, outputs, blobs, self.left_out, decisions=self.decisions_for(blobs.values()),
                      rewritten=fitted.rewritten,
                      problems=[str(problem) for problem in fitted.problems]), stored

    def decisions_for(self, outputs):
        """Tops of layers that decide, and their bottoms if such a top is an output; without constants."""
        made = {name for node in self.onnx.nodes for name in node.output}
        result = {}
        for (index, blob), tensor in self.decisions.items():
            layer = self.net.layers[index]
            tops = decided_tops(layer.type, layer.layer_param.top)
            if tensor in made and (blob in tops or set(tops) & set(outputs)):
                result[index, blob] = tensor
        return result

    def fit(self):
        """Rewrites nodes for the profile."""
        if self.request.profile is None:
            return Fit()
        fitted = fit(self.onnx, self.request.profile, self.inputs)
        fitted.problems = [Problem(layer, self.types.get(layer), text) for layer, text in fitted.problems]
        fitted.rewritten = OrderedDict((title(layer, self.types.get(layer)), texts) for layer, texts in fitted.rewritten.items())
        return fitted

    def add_layer(self, index):
        layer = self.net.layers[index]
        param = layer.layer_param
        name = self.onnx.layer = param.name or f"layer{index}"
        self.types[name] = layer.type
        reason = reason_left_out(layer.type)
        if layer.type in SOURCES:
            self.add_inputs(param.top)
        elif reason is not None:
            self.left_out[name] = reason
        elif any(blob not in self.tensors for blob in param.bottom):
            self.unsupported.append(f"layer '{name}' ({layer.type}), which reads a blob of a layer that is left out")
        elif self.is_constant(layer.type, param):
            self.add_constants(name, param)
        else:
            self.write(index, layer.type, param)

    def add_inputs(self, blobs):
        for blob in blobs:
            self.tensors[blob] = blob
            self.shapes[blob] = self.inputs[blob] = tuple(self.net.blobs[blob].shape)

    def is_constant(self, kind, param):
        """True if no top depends on the net's inputs."""
        known = [self.tensors[blob] in self.constants for blob in param.bottom]
        return kind in _CONSTANT or (bool(known) and all(known) and len(param.top) > 0)

    def add_constants(self, name, param):
        self.net.forward(start=name, end=name)
        self.unread.difference_update(param.bottom)
        for blob in param.top:
            array = self.net.blobs[blob].data.copy()
            tensor = self.onnx.weight(array, f"{name}/values")
            self.constants[tensor] = array
            self.put(blob, tensor, array.shape)

    def put(self, blob, tensor, shape):
        if tensor in self.onnx.varying and shape:
            shape = (None, *shape[1:])
        self.tensors[blob] = tensor
        self.shapes[tensor] = shape
        self.unread.add(blob)

    def write(self, index, kind, param):
        bottoms = [self.tensors[blob] for blob in param.bottom]
        layer = LayerView(self.net, index, bottoms, [self.constants.get(tensor) for tensor in bottoms], self.request)
        writer = writer_of(kind)
        if writer is None:
            why = reason_refused(kind)
            self.unsupported.append(f"layer '{layer.name}' ({kind})" + (f": {why}" if why else ""))
            self.tensors.update(dict.fromkeys(param.top, ""))
            return
        try:
            tensors = writer(layer, self.onnx)
        except Unsupported as error:
            self.unsupported.append(str(error))
            self.tensors.update(dict.fromkeys(param.top, ""))
            return
        if layer.reason_left_out is not None:
            self.left_out[layer.name] = layer.reason_left_out
            return
        self.unread.difference_update(param.bottom)
        for blob, tensor, shape in zip(layer.tops, [tensors] if isinstance(tensors, str) else tensors, layer.top_shapes):
            self.put(blob, tensor, shape)
        decided = decided_tops(kind, layer.tops)
        if decided:
            self.decisions.update({(index, blob): tensor for blob, tensor in zip(param.bottom, bottoms)})
            self.decisions.update({(index, blob): self.tensors[blob] for blob in decided})

    def name_outputs(self):
        """Gives tensors the names of their blobs; returns the shapes and blobs of the outputs by name."""
        self.onnx.layer = "outputs"
        made = {name for node in self.onnx.nodes for name in node.output}
        names, outputs, blobs = {}, OrderedDict(), OrderedDict()
        for blob, tensor in self.tensors.items():
            if blob in self.unread and (tensor not in made or tensor in names):
                tensor = self.onnx.op("Identity", tensor)
                self.shapes[tensor] = self.shapes[self.tensors[blob]]
                made.add(tensor)
            if tensor in made and tensor not in names:
                names[tensor] = blob if blob not in self.inputs else self.onnx.name(f"{blob}/output")
            if blob in self.unread:
                outputs[names[tensor]] = self.shapes[tensor]
                blobs[names[tensor]] = blob
        self.onnx.rename(names)
        self.decisions = {key: names.get(tensor, tensor) for key, tensor in self.decisions.items()}
        return outputs, blobs

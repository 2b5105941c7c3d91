"""The command line: python -m caffe.onnx export, import."""
import argparse
import os
import sys
import tempfile
import zipfile

import numpy as np

from .. import InvalidArgument, IoError
from .._counted import counted
from .._output import require_other, require_own, require_own_net, run_command, start_log, weights_beside, with_extension
from . import DEFAULT_OPSET, OLDEST_OPSET, export, import_model, load_profile, profile_names, torch_files
from .builder import PRODUCER_MARK
from .pixels import PREPROCESSINGS


def _parser():
    program = argparse.ArgumentParser(prog="caffe.onnx", description="Nets as ONNX models.")
    commands = program.add_subparsers(dest="command", required=True)
    _add_export(commands.add_parser("export", help="write a net for inference as an ONNX model"))
    _add_import(commands.add_parser("import", help="make a net for inference of an ONNX model"))
    commands.add_parser("profiles", help="list the chips that export knows").set_defaults(run=_profiles)
    return program


def _add_export(parser):
    parser.add_argument("net", help="prototxt of phase TEST")
    parser.add_argument("weights", nargs="?", help=".caffemodel or .h5; without it weights are those of the fillers")
    parser.add_argument("-o", "--output", required=True, help="file to write")
    parser.add_argument("--opset", type=int,
                        help=f"version of ONNX's operators, from {OLDEST_OPSET} on (default: the profile's, or {DEFAULT_OPSET})")
    parser.add_argument("--detection", choices=("nms", "raw"),
                        help="write DetectionOutput with NonMaxSuppression, or leave it out (default: the profile's, or nms)")
    parser.add_argument("--profile", metavar="NAME|FILE.json", help="the chip that the model is for: see command profiles")
    parser.add_argument("--allow-unsupported", action="store_true",
                        help="write what the profile's chip does not take all the same, with a warning")
    parser.add_argument("--batch", type=int, metavar="N", help="batch size, instead of that of the prototxt's inputs")
    parser.add_argument("--int8", metavar="FILE.json", help="compute in 8 bits, by a calibration file of caffe calibrate")
    parser.add_argument("--keep-float", default="", metavar="LAYER,...", help="layers that --int8 leaves as they are")
    parser.add_argument("--find-sensitive", action="store_true",
                        help="tell how much each layer alone changes the outputs in 8 bits (with real --inputs)")
    check = parser.add_mutually_exclusive_group()
    check.add_argument("--check", action="store_true", default=None,
                       help="compare with onnxruntime (default: where it is installed)")
    check.add_argument("--no-check", dest="check", action="store_false", help="do not compare")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays by input to compare with (default: random numbers)")
    parser.add_argument("--tolerance", type=float, default=1e-5,
                        help="largest difference, relative to an output's largest number (default: 1e-5)")
    parser.set_defaults(run=_export)


def _add_import(parser):
    parser.add_argument("model", nargs="?", default="", help="ONNX file, or one of PyTorch: see torch_files")
    parser.add_argument("--module", default="", metavar="PACKAGE.MODULE:FUNCTION(...)", help="makes the module of a file of PyTorch's weights")
    parser.add_argument("-o", "--output", required=True, metavar="NET.prototxt",
                        help="net to write; its weights go to NET.caffemodel")
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT=N,C,H,W",
                        help="of an input that has no fixed shape in the model")
    parser.add_argument("--tolerance", type=float, default=1e-4,
                        help="largest difference from onnxruntime's outputs, relative to the largest number (default: 1e-4)")
    parser.add_argument("--preprocessing", choices=tuple(PREPROCESSINGS),
                        help="what the model's users do to images; the net then takes them as Caffe's data layers give them")
    parser.set_defaults(run=_import)


def _shape(shape):
    return "x".join("?" if extent is None else str(extent) for extent in shape) or "scalar"


def _print(report, file):
    for layer, texts in report.rewritten.items():
        print(f"rewritten: {layer}: {'; '.join(texts)}")
    for problem in report.problems:
        print(f"warning: {problem}", file=sys.stderr)
    for name, reason in report.left_out.items():
        print(f"left out: layer '{name}': {reason}")
    for name, shape in report.inputs.items():
        print(f"input  {name} {_shape(shape)}")
    for name, shape in report.outputs.items():
        difference = f", largest difference {report.differences[name]:.2g}" if name in report.differences else ""
        if name in report.decided_otherwise:
            difference += f", {report.decided_otherwise[name]} decided otherwise between nearly equal numbers"
        if name in report.without_numbers:
            difference = ", not compared: the net gives no number but NaN (without its weights?)"
        print(f"output {name} {_shape(shape)}{difference}")
    if report.int8:
        print(f"8 bits: {counted(len(report.int8), 'layer')}")
    for name, reason in report.kept_float.items():
        print(f"float: layer '{name}': {reason}")
    for name, error in report.int8_differences.items():
        print(f"output {name} in 8 bits: " + ("another number of rows" if error == float("inf") else
                                              f"root of the mean square difference {error:.2g} of its own"))
    for name, error in report.sensitivity.items():
        print(f"layer {name} alone in 8 bits: {error:.2g}")
    if report.not_compared:
        print(f"not compared with onnxruntime: {report.not_compared}")
    if report.model is None:
        print(f"wrote {file} and {os.path.splitext(file)[0]}.caffemodel")
        return
    print(f"wrote {file}: {counted(len(report.model.graph.node), 'node')}, opset {report.model.opset_import[0].version}")


def _arrays_in(file):
    """The arrays in a file of numpy.savez, by name."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except OSError as error:
        raise IoError(f"{file}: {error.strerror or error}") from None
    except (AttributeError, EOFError, TypeError, ValueError, zipfile.BadZipFile):  # other files, and files of a single array
        raise InvalidArgument(f"{file}: is not a file of arrays by input; write it with numpy.savez(file, data=...)") from None


def _export(options):
    inputs = None if options.inputs is None else _arrays_in(options.inputs)
    is_caffe = options.profile is not None and load_profile(options.profile).format == "caffe"
    file = with_extension(options.output, ".prototxt" if is_caffe else ".onnx")
    for written in (file, weights_beside(file)) if is_caffe else (file,):
        require_other(written, options.net, options.weights, options.inputs, options.int8)
    if is_caffe:
        require_own_net(file, "caffe export")
    else:
        require_own(file, [PRODUCER_MARK], "caffe export")
    report = export(options.net, file, options.weights, opset=options.opset, detection=options.detection,
                    check=options.check, inputs=inputs, tolerance=options.tolerance, profile=options.profile,
                    allow_unsupported=options.allow_unsupported, batch=options.batch, int8=options.int8,
                    keep_float=[name for name in options.keep_float.split(",") if name],
                    find_sensitive=options.find_sensitive)
    _print(report, file)


def _profiles(_options):
    for profile in map(load_profile, profile_names()):
        print(f"{profile.name}: {profile.title}")
        if profile.format == "caffe":
            print(f"  Caffe's files, {len(profile.operators)} layer types")
        else:
            print(f"  opset {profile.opset['default']} ({profile.opsets}), {len(profile.operators)} operators, "
                  f"DetectionOutput {profile.detection}")
        for source in profile.sources:
            print(f"  {source['says']}: {source['page']} ({source['version']}, read {source['read']})")
        for sentence in profile.not_verified:
            print(f"  not verified: {sentence}")


def _import(options):
    shapes = [_shape_given(text) for text in options.shape]
    net = with_extension(options.output, ".prototxt")
    weights = weights_beside(net)
    for file in (net, weights):
        require_other(file, options.model)
    require_own_net(net, "caffe import")
    if not options.model and not options.module:
        raise InvalidArgument("give a model: an ONNX file, or one of PyTorch")
    with tempfile.TemporaryDirectory() as folder:
        model = options.model
        if options.module or torch_files.is_torch(model):
            model = os.path.join(folder, "model.onnx")
            torch_files.to_onnx(options.model, options.module, shapes, model)
            shapes = []
        for name, shape in shapes:
            if not name:
                raise InvalidArgument(f"--shape={','.join(map(str, shape))} names no input; write --shape=INPUT=N,C,H,W")
        try:
            result = import_model(model, net, weights, shapes=dict(shapes), tolerance=options.tolerance, preprocessing=options.preprocessing)
        except InvalidArgument as error:
            given = options.model or options.module
            raise error if str(error).startswith(given) else InvalidArgument(f"{given}: {error}") from None
    for name, difference in result.differences.items():
        print(f"output {name} {_shape(result.net.blobs[name].shape)}, largest difference {difference:.2g}")
    print(f"wrote {net} and {weights}: {counted(len(result.net.layers), 'layer')}")


def _shape_given(text):
    name, _, extents = text.rpartition("=")
    try:
        return name, tuple(int(extent) for extent in extents.split(","))
    except ValueError:
        pass
    raise ValueError(f"--shape {text}: give an input and its extents, as in data=1,3,224,224")


def main(arguments=None):
    options = _parser().parse_args(arguments)
    start_log()
    return run_command(options.command, lambda: options.run(options), also=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())

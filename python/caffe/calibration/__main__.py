"""The command line: python -m caffe.calibration."""
import argparse
import sys

from .. import TEST, Net
from .._counted import counted
from .._output import require_other, require_own, run_command, start_log, with_extension
from . import FEWEST_IMAGES, FORMAT, METHODS, calibrate
from .report import layer_errors


def _parser():
    parser = argparse.ArgumentParser(prog="caffe.calibration", description="Ranges of a net's blobs, for 8-bit numbers.")
    parser.add_argument("net", help="prototxt whose data layer of phase TEST gives images, such as train_val.prototxt")
    parser.add_argument("weights", help=".caffemodel or .h5")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.json", help="file to write")
    parser.add_argument("--iterations", type=int, default=10, metavar="N", help="batches to look at (default: 10)")
    parser.add_argument("--method", choices=METHODS, default="entropy", help="how to clip (default: entropy)")
    parser.add_argument("--percentile", type=float, default=99.99, metavar="P",
                        help="of numbers that method percentile does not clip (default: 99.99)")
    parser.add_argument("--report", action="store_true", help="then print how far each layer in 8 bits is from float")
    return parser


def _tell(done, iterations, what="batch"):
    """Updates one progress line on a terminal; in a file prints only the last."""
    if sys.stderr.isatty():
        print(f"\r{what} {done} of {iterations}", end="\n" if done == iterations else "", file=sys.stderr, flush=True)
    elif done == iterations:
        print(f"{what} {done} of {iterations}", file=sys.stderr, flush=True)


def _print_report(net, calibration):
    errors, together = layer_errors(net, calibration, progress=lambda done, count: _tell(done, count, "layer"))
    width = max(10, *map(len, errors))
    print(f"{'layer':{width}}  error of its top  of the outputs")
    for layer, error in errors.items():
        print(f"{layer:{width}}  {error.own:16.5f}  {error.outputs:14.5f}")
    print(f"{'all layers':{width}}  {'':16}  {together:14.5f}")


def main(arguments=None):
    options = _parser().parse_args(arguments)
    start_log()
    return run_command("calibrate", lambda: _calibrate(options), also=(ValueError,))


def _calibrate(options):
    file = with_extension(options.output, ".json")
    require_own(file, [f'"format": "{FORMAT}"'.encode()], "caffe calibrate")
    require_other(file, options.net, options.weights)
    net = Net(options.net, TEST, weights=options.weights)
    calibration = calibrate(net, options.iterations, options.method, options.percentile, progress=_tell)
    calibration.save(file)
    print(f"wrote {file}: {counted(len(calibration.ranges), 'blob')}, {calibration.describe_images()}, {calibration.method}")
    if calibration.images < FEWEST_IMAGES:
        print(f"warning: different images in the data: {calibration.images}; give {FEWEST_IMAGES} at least, some hundreds are "
              "usual", file=sys.stderr)
    if options.report:
        _print_report(net, calibration)


if __name__ == "__main__":
    sys.exit(main())

"""python -m caffe.evaluation NET: see `caffe help evaluate`."""
import argparse
import os
import sys

from .. import InvalidArgument, set_device, set_mode_gpu
from .._counted import counted
from .._output import run_command, start_log, write_whole
from .._packages import need
from ..class_names import read_names
from . import outputs
from .records import printable
from .run import evaluate
from .subject import NetWish, open_subject


def _parser():
    parser = argparse.ArgumentParser(prog="caffe evaluate", description=__doc__)
    parser.add_argument("net", help="prototxt with a data layer of phase TEST")
    parser.add_argument("--weights", action="append", default=[], help="a file; may be given several times")
    parser.add_argument("--name", default="", help="what to call the model")
    parser.add_argument("--page", default="", metavar="FILE.html")
    parser.add_argument("--metrics", default="", metavar="FILE.json")
    parser.add_argument("--labels", default="", metavar="FILE")
    parser.add_argument("--scores", default="", metavar="BLOB")
    parser.add_argument("--worst", type=int, default=24)
    parser.add_argument("--gpu")
    parser.add_argument("--level", type=int, default=0)
    parser.add_argument("--stages", default="")
    parser.add_argument("--precision")
    parser.add_argument("--lenient", action="store_true")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    return parser


def _gpu(text):
    if not text.isdigit():
        raise InvalidArgument(f"--gpu is '{text}'; give the number of one GPU")
    set_mode_gpu()
    set_device(int(text))


def _shown(file, folder):
    """A file of the model's folder, which is the working folder, under the path that the user gave for it."""
    within = os.path.relpath(file)
    return os.path.join(folder, within) if folder and not within.startswith("..") else file


def _run(options):
    # Fail now, not after reading the whole data set.
    for file, flag in ((options.page, "--page"), (options.metrics, "--metrics")):
        if file:
            outputs.require_own(file, flag)
    if options.page:
        need("jinja2")
        need("PIL")
    names = read_names(options.labels) if options.labels else []
    if options.gpu:
        _gpu(options.gpu)
    wish = NetWish(options.level, [stage for stage in options.stages.split(",") if stage], options.lenient,
                   options.precision.lower() if options.precision else None)
    subject = open_subject(options.net, options.weights, names, options.scores, options.name, wish)
    if options.name:
        subject.weights = printable(", ".join(map(os.path.relpath, options.weights)))
    if subject.untrained:
        print(f"warning: {subject.weights}: {subject.untrained_text()}", file=sys.stderr)
    done = evaluate(subject, options.worst, pictures=bool(options.page), progress=True)
    left_out = done.figures["left_out"]
    if left_out:
        print(f"warning: {len(left_out)} of {subject.supply.count} records cannot be read and are left out; see above", file=sys.stderr)
    if options.metrics:
        write_whole(options.metrics, outputs.json_text(done.figures))
    if options.page:
        write_whole(options.page, done.page())
    if options.json:
        print(outputs.json_text(done.figures), end="")
        return
    print(f"{subject.title}: {counted(done.figures['records'], 'record')}, each once\n{done.text}", end="")
    written = [_shown(file, options.name) for file in (options.page, options.metrics) if file]
    if written:
        print("\nwritten: " + printable(" ".join(written)))


def main(words=None):
    """Returns the exit status."""
    options = _parser().parse_args(words)
    start_log()
    return run_command("evaluate", lambda: _run(options))


if __name__ == "__main__":
    sys.exit(main())

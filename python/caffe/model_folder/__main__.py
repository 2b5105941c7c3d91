"""python -m caffe.model_folder PHOTOS: see `caffe help new`."""
import argparse
import shlex
import sys
from pathlib import Path

from .. import InvalidArgument, zoo
from .._counted import counted
from .._output import raising_signals, run_command
from .databases import argument
from .new import Wishes, make

_FEW = 500  # images


def _parser():
    parser = argparse.ArgumentParser(prog="caffe new", description=__doc__)
    parser.add_argument("photographs", nargs="?", type=Path)
    parser.add_argument("--program", required=True, type=Path, help="the program caffe")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--net")
    parser.add_argument("--from", dest="weights", type=Path)
    parser.add_argument("--size", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--val", default="15", help="percent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nets", action="store_true")
    return parser


def _list_nets():
    for net in zoo.nets().values():
        least, usual, most = net.sides
        print(f"{net.name:14} {net.task:15} {least} to {most} pixels, usually {usual:4}  {net.summary}")


def main(words=None):
    """Returns the exit status."""
    options = _parser().parse_args(words)
    return run_command("new", _list_nets if options.nets else lambda: _make(options))


def _make(options):
    photographs = options.photographs
    whole = photographs.resolve()
    output = options.output or Path(f"{whole.name if whole.is_dir() else whole.stem}_model")
    try:
        val = float(options.val) / 100
    except ValueError:
        raise InvalidArgument(f"--val is '{options.val}%'; give a share of the images, as in 15%") from None
    wishes = Wishes(options.net, options.weights, options.size, options.epochs, val, options.seed, options.batch)
    with raising_signals():
        plan = make(photographs, output, wishes, options.program)
    for files in plan.dataset.left_out:
        print(f"left out: {files}", file=sys.stderr)
    for warning in plan.dataset.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    classes = plan.dataset.num_shown
    print(f"{output}: {plan.dataset.task} of {counted(classes, 'class', 'classes')} ({plan.dataset.kind}), "
          f"{counted(plan.halves.train_count, 'image')} for training and {plan.halves.val_count} for testing")
    print(f"net {plan.net.name} on {plan.side}x{plan.side} pixels, {counted(plan.epochs, 'epoch')} in batches of {plan.batch}")
    if options.batch is not None and plan.batch < options.batch:
        print(f"--batch is {options.batch}, but there are only {plan.batch} images for training: a batch has all of them")
    if plan.copied:
        print(f"{plan.copied[0]} of {plan.copied[1]} layers start from the given weights, the others from scratch")
    elif plan.halves.train_count < _FEW:
        print(f"{plan.halves.train_count} images are few to train a net from scratch; start from pretrained weights (--from)")
    print(f"\nnext:  caffe train {shlex.quote(argument(output))}")


if __name__ == "__main__":
    sys.exit(main())

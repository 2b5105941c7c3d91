#!/usr/bin/env python3
"""Prints a table of a net's layers: types, shapes, parameters, multiply-adds.

  tools/extra/summarize.py NET.prototxt [--phase TEST|TRAIN] [--input data=1,3,224,224 ...] [--json]

--input replaces the data layer that writes the blob, so that its database need not be there.
"""
import argparse
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import find_caffe  # noqa: E402,F401  (before caffe)
import caffe  # noqa: E402
from caffe import summary  # noqa: E402
from caffe.proto import caffe_pb2  # noqa: E402


def input_shape(text):
    name, equals, dims = text.partition("=")
    try:
        shape = [int(dim) for dim in dims.split(",")]
    except ValueError:
        shape = []
    if not equals or not shape:
        raise argparse.ArgumentTypeError(f"{text!r} is not like data=1,3,224,224")
    return name, shape


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", help="prototxt")
    parser.add_argument("--phase", default="TEST", choices=("TEST", "TRAIN"))
    parser.add_argument("--input", action="append", default=[], type=input_shape, metavar="BLOB=DIMS")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    args = parser.parse_args()
    phase = caffe_pb2.Phase.Value(args.phase)
    if args.input:
        net = caffe.Net(summary.with_inputs(caffe.read_net(args.net), dict(args.input)), phase)
    else:
        net = caffe.Net(args.net, phase)
    print(json.dumps(summary.summarize(net), indent=1) if args.json else summary.table(net))


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, caffe.Error) as error:
        sys.exit(f"summarize.py: {error}")

#!/usr/bin/env python3
"""Draws a net's prototxt as a picture with Graphviz (Debian: python3-pydot graphviz).

  python/draw_net.py NET.prototxt PICTURE.png [--rankdir LR|TB|RL|BT] [--phase TRAIN|TEST|ALL] [--display_lrm]

The picture's suffix determines its format: png, pdf, svg ...
"""
import argparse
import sys

import find_caffe  # noqa: F401  (before caffe)
import caffe
import caffe.draw
from caffe.proto import caffe_pb2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input_net_proto_file", help="the net")
    parser.add_argument("output_image_file", help="the picture")
    parser.add_argument("--rankdir", default="LR", choices=("LR", "TB", "RL", "BT"), help="where the net grows to")
    parser.add_argument("--phase", default="ALL", choices=("TRAIN", "TEST", "ALL"), help="leaves out layers of the other")
    parser.add_argument("--display_lrm", action="store_true", help="shows learning rate multipliers")
    args = parser.parse_args()
    net = caffe.read_net(args.input_net_proto_file)
    phase = None if args.phase == "ALL" else caffe_pb2.Phase.Value(args.phase)
    print(f"Drawing net to {args.output_image_file}")
    caffe.draw.draw_net_to_file(net, args.output_image_file, args.rankdir, phase, args.display_lrm)


if __name__ == "__main__":
    try:
        main()
    except (OSError, caffe.Error) as error:
        sys.exit(f"draw_net.py: {error}")

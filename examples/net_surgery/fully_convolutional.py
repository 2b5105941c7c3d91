#!/usr/bin/env python3
"""Turns a classifier into a net that classifies every position of a larger image, with the same weights.

  examples/net_surgery/fully_convolutional.py NET.prototxt WEIGHTS NEW.prototxt NEW.caffemodel [--input_size H,W]

An inner product over a C x H x W blob is a convolution with windows of H x W: its weights are the same numbers in the
same order. If the image is larger than the window, the convolution has one result per position.
"""
import argparse
import pathlib
import sys

import caffe
from google.protobuf import text_format


def convolutional(net):
    """The definition of a caffe.Net with convolutions instead of its inner products, each named NAME-conv.

    Raises ValueError for an inner product that does not cover all of C, H and W.
    """
    changed = net.definition
    for layer in changed.layer:
        if layer.type != "InnerProduct":
            continue
        old = layer.inner_product_param
        shape = net.blobs[layer.bottom[0]].shape
        if old.axis != 1 or old.transpose or len(shape) not in (2, 4):
            raise ValueError(f"layer {layer.name}: an inner product of shape {tuple(shape)} from axis {old.axis} on"
                             f"{', transposed' if old.transpose else ''}; only plain ones over C x H x W become convolutions")
        height, width = shape[2:] if len(shape) == 4 else (1, 1)
        layer.type = "Convolution"
        new = layer.convolution_param
        new.num_output, new.bias_term = old.num_output, old.bias_term
        if height == width:
            new.kernel_size.append(height)
        else:
            new.kernel_h, new.kernel_w = height, width
        if old.HasField("weight_filler"):
            new.weight_filler.CopyFrom(old.weight_filler)
        if old.HasField("bias_filler"):
            new.bias_filler.CopyFrom(old.bias_filler)
        layer.ClearField("inner_product_param")
        # Another name, because copying by name would find weights of another shape.
        layer.name += "-conv"
    if changed == net.definition:
        raise ValueError(f"net {net.name!r} has no inner products")
    return changed


def resize_input(definition, height, width):
    """Changes the size of the net's images, with a batch of one image."""
    for layer in definition.layer:
        if layer.type == "Input":
            for shape in layer.input_param.shape:
                shape.dim[:] = [1, shape.dim[1], height, width]


def transplant(old, new):
    """Copies all parameters of Net `old` to Net `new`, whose convolutions may be the old inner products."""
    for name, blobs in old.params.items():
        target = new.params[name if name in new.params else name + "-conv"]
        for blob, values in zip(target, blobs):
            blob.data.flat = values.data.flat


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("weights")
    parser.add_argument("new_net")
    parser.add_argument("new_weights")
    parser.add_argument("--input_size", help="height,width of the new net's images (default: the old net's)")
    args = parser.parse_args()
    old = caffe.Net(args.net, caffe.TEST, weights=args.weights)
    definition = convolutional(old)
    if args.input_size:
        resize_input(definition, *(int(text) for text in args.input_size.split(",")))
    new = caffe.Net(definition, caffe.TEST)
    transplant(old, new)
    pathlib.Path(args.new_net).write_text(text_format.MessageToString(definition), encoding="utf-8")
    new.save(args.new_weights)
    for name in new.outputs:
        print(f"{name}: {'x'.join(map(str, old.blobs[name].shape))} is now {'x'.join(map(str, new.blobs[name].shape))}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"fully_convolutional.py: {error}")

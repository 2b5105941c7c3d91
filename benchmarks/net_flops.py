#!/usr/bin/env python3
"""Counts floating-point operations of a net's convolutions and inner products, from its prototxt alone.

  benchmarks/net_flops.py NET.prototxt...     prints multiply-adds per image and FLOP per training image

Training costs three products of the same size per layer: forward, the gradient of the weights and the gradient
of the input. A layer that reads the data needs no gradient of its input. Everything else is ignored, so the share
of a machine's GEMM rate computed from this is a lower bound of the machine's utilization.
"""
import math
import re
import sys

TOKEN = re.compile(r'#[^\n]*|"([^"]*)"|([{}:])|([^\s{}:#"]+)')


def parse(text):
    """Prototxt -> {field: [values]}, with messages as such dicts. Sufficient for nets, without a schema."""
    tokens = [m for m in TOKEN.finditer(text) if not m.group().startswith("#")]
    at = 0

    def message():
        nonlocal at
        fields = {}
        while at < len(tokens) and tokens[at].group() != "}":
            name = tokens[at].group()
            at += 1
            if tokens[at].group() == ":":
                at += 1
            if tokens[at].group() == "{":
                at += 1
                value = message()
                at += 1
            else:
                value = tokens[at].group(1) if tokens[at].group(1) is not None else tokens[at].group(3)
                at += 1
            fields.setdefault(name, []).append(value)
        return fields

    return message()


def number(fields, name, default=None):
    return int(fields[name][0]) if name in fields else default


def window(fields):
    return number(fields, "kernel_size"), number(fields, "stride", 1), number(fields, "pad", 0)


def pooled_size(size, kernel, stride, pad):
    """Pooling rounds up, but no window may start in the padding at the end."""
    out = math.ceil((size + 2 * pad - kernel) / stride) + 1
    return out - 1 if pad and (out - 1) * stride >= size + pad else out


def layers_of(net):
    """Returns (name, multiply-adds per image, True if it reads the data) for layers with weights, and per-image shapes of all blobs."""
    shapes, result = {}, []
    for layer in net["layer"]:
        kind, name = layer["type"][0], layer["name"][0]
        bottoms, tops = layer.get("bottom", []), layer.get("top", [])
        if kind in ("DummyData", "Input"):
            declared = layer.get("dummy_data_param", layer.get("input_param"))[0]["shape"]
            for top, shape in zip(tops, declared):
                shapes[top] = tuple(int(d) for d in shape["dim"][1:])
            continue
        shape = shapes[bottoms[0]]
        reads_data = bottoms[0] == "data"
        if kind == "Convolution":
            options = layer["convolution_param"][0]
            kernel, stride, pad = window(options)
            outputs, group = number(options, "num_output"), number(options, "group", 1)
            shape_out = (outputs, *((n + 2 * pad - kernel) // stride + 1 for n in shape[1:]))
            result.append((name, math.prod(shape_out) * shape[0] // group * kernel * kernel, reads_data))
        elif kind == "InnerProduct":
            shape_out = (number(layer["inner_product_param"][0], "num_output"),)
            result.append((name, shape_out[0] * math.prod(shape), reads_data))
        elif kind == "Pooling":
            options = layer["pooling_param"][0]
            if "global_pooling" in options:
                shape_out = (shape[0], 1, 1)
            else:
                shape_out = (shape[0], *(pooled_size(n, *window(options)) for n in shape[1:]))
        elif kind == "Concat":
            shape_out = (sum(shapes[b][0] for b in bottoms), *shape[1:])
        else:
            shape_out = shape
        for top in tops:
            shapes[top] = shape_out
    return result, shapes


def batch_size(net):
    declared = next(layer for layer in net["layer"] if layer["type"][0] in ("DummyData", "Input"))
    return int(declared.get("dummy_data_param", declared.get("input_param"))[0]["shape"][0]["dim"][0])


def multiply_adds(net):
    return sum(count for _, count, _ in layers_of(net)[0])


def training_flop(net):
    return sum(2 * count * (2 if reads_data else 3) for _, count, reads_data in layers_of(net)[0])


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            net = parse(file.read())
        print(f"{path}: {multiply_adds(net):,} multiply-adds, {training_flop(net):,} FLOP to train, per image")


if __name__ == "__main__":
    main()

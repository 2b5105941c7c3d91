#!/usr/bin/env python3
"""Compares the kernels of convolutions: oneDNN as Cortado is built with it, Cortado's own, and the oneDNN inside PyTorch.

  benchmarks/peer_environment.sh                                  once: PyTorch into build/peer-venv
  benchmarks/kernel_table.py [--build build/cpu-release] [--peer-python build/peer-venv/bin/python] [--case PART]

For the shapes of `conformance_test --speed=Conv`, channels-last, prints a table of 10^9 operations per second of forward (with
bias and ReLU) and of both gradients, in fp32 and bfloat16. PyTorch's forward has its weights in oneDNN's own order, as
torch.compile has. One process at a time; each figure is the best of several runs.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = {"float": "fp32", "bfloat16": "bf16"}
PASSES = {"Conv": "forward", "ConvGradData": "data gradient", "ConvGradWeights": "weight gradient"}
LINE = re.compile(r"(Conv\w*)\((\S+)\) +(\S+) +(\S+) +channels-last +[\d.]+ +[\d.]+ +([\d.]+)")
PEER = """
import json, sys, time
import torch

torch.set_num_threads(int(sys.argv[2]))
mkldnn = torch.ops.mkldnn
print(json.dumps({"library": torch.__config__.show()}))


def best(run):
    run()
    fastest, begin = float("inf"), time.perf_counter()
    for _ in range(40):
        start = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - start)
        if time.perf_counter() - begin > 0.4:
            break
    return fastest


for shape in json.loads(sys.argv[1]):
    dims, outputs, kernel, stride, group = shape
    for name, dtype in (("float", torch.float32), ("bfloat16", torch.bfloat16)):
        x = torch.randn(dims, dtype=dtype).to(memory_format=torch.channels_last)
        w = torch.randn(outputs, dims[1] // group, kernel, kernel, dtype=dtype).to(memory_format=torch.channels_last)
        b = torch.randn(outputs, dtype=dtype)
        geometry = [kernel // 2] * 2, [stride] * 2, [1] * 2
        packed = mkldnn._reorder_convolution_weight(w, *geometry, group, dims)
        with torch.no_grad():
            y = mkldnn._convolution_pointwise(x, packed, b, *geometry, group, "relu", [], "")
            seconds = {"Conv": best(lambda: mkldnn._convolution_pointwise(x, packed, b, *geometry, group, "relu", [], ""))}
            for gradient, mask in (("ConvGradData", (True, False, False)), ("ConvGradWeights", (False, True, False))):
                seconds[gradient] = best(lambda: torch.ops.aten.convolution_backward(
                    y, x, w, None, geometry[1], geometry[0], geometry[2], False, [0, 0], group, mask))
        flops = 2 * y.numel() * w[0].numel()
        print(json.dumps({"shape": shape, "type": name, "rates": {k: flops / s * 1e-9 for k, s in seconds.items()}}), flush=True)
"""


def shape_of(text):
    dims, *numbers = text.split(",")
    return ([int(number) for number in dims.split("x")], *map(int, numbers))


def title(shape):
    dims, outputs, kernel, stride, group = shape
    name = f"{kernel}x{kernel}" + (f"/{stride}" if stride > 1 else "")
    if group > 1:
        name += " depthwise" if group == dims[1] else f" in {group} groups"
    return f"{name}, {dims[1]} to {outputs}, {dims[2]}x{dims[3]}, batch {dims[0]}"


def ours(args):
    """{(pass, shape's text, type): {kernel: rate}}, and the device's description."""
    found = {}
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    done = subprocess.run([ROOT / args.build / "bin/conformance_test", f"--speed={args.case}"], env=environment, text=True,
                          capture_output=True, check=True)
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match and match[4] in TYPES and match[1] in PASSES:
            found.setdefault((match[1], match[2], match[4]), {})[match[3]] = float(match[5])
    return found, done.stdout.splitlines()[0]


def peers(args, shapes):
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    done = subprocess.run([ROOT / args.peer_python, "-c", PEER, json.dumps([shape_of(shape) for shape in shapes]), str(args.threads)],
                          env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    head, *answers = map(json.loads, done.stdout.splitlines())
    library = re.search(r"MKL-DNN v[\d.]+|oneDNN v[\d.]+", head["library"])
    rates = {}
    for shape, both in zip(shapes, zip(answers[::2], answers[1::2])):
        for answer in both:
            for name, rate in answer["rates"].items():
                rates[name, shape, answer["type"]] = rate
    return rates, library[0] if library else "PyTorch's"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cpu-release", help="build folder")
    parser.add_argument("--peer-python", default="build/peer-venv/bin/python", help="a Python with PyTorch")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--case", default="Conv", help="part of a case's name")
    args = parser.parse_args()
    mine, device = ours(args)
    shapes = list(dict.fromkeys(shape for _, shape, _ in mine))
    theirs, library = peers(args, shapes)
    print(f"{device}; {library} in PyTorch\n")
    print("| convolution | type | pass | oneDNN | our kernel | | PyTorch's |\n|---|---|---|--:|--:|---|--:|")
    for (kind, shape, dtype), rates in mine.items():
        vendor = max((rate for kernel, rate in rates.items() if "onednn" in kernel), default=None)
        own = {kernel: rate for kernel, rate in rates.items() if "onednn" not in kernel}
        best = max(own, key=own.get, default=None)
        cells = [f"{vendor:.0f}" if vendor else "", f"{own[best]:.0f}" if best else "", best or "", f"{theirs[kind, shape, dtype]:.0f}"]
        print(f"| {title(shape_of(shape))} | {TYPES[dtype]} | {PASSES[kind]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

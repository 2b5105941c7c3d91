#!/usr/bin/env python3
"""Measures the memory of inference by type: resident bytes above those of an idle process; prints JSON.

  benchmarks/inference_memory.py [--model bvlc_alexnet] [--batch 1] [--rounds 3] [--build build/cpu-release]

Each process makes a net of phase TEST from models/<model>/deploy.prototxt, reads a file of random weights and answers
once. `resident` is its memory after the answer, `peak` the highest until then, both less that of a process that has
only loaded the package and made a small net. `seconds` runs from making the net to the answer, with the file in the
page cache. The figures are medians; the types take turns.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = ("fp32", "bf16", "fp16", "int8")
SMALL = """layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
           layer { name: "conv" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 8 kernel_size: 3 } }"""


def bytes_of(field):
    """VmRSS or VmHWM of this process."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field + ":"))


def answer(folder, precision, batch):
    """Runs in a process of its own."""
    import caffe
    import numpy as np
    small = folder / "small.prototxt"
    small.write_text(SMALL)
    caffe.Net(small, caffe.TEST, keep_all=False).forward()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    idle, start = bytes_of("VmRSS"), time.perf_counter()
    net = caffe.Net(folder / "net.prototxt", caffe.TEST, weights=folder / "net.caffemodel", keep_all=False, precision=precision,
                    calibration=folder / "net.json" if precision == "int8" else None)
    net.blobs["data"].reshape(batch, *net.blobs["data"].shape[1:])
    net.blobs["data"].data[...] = np.random.default_rng(1).uniform(-100, 100, net.blobs["data"].shape)
    net.forward()
    seconds = time.perf_counter() - start
    held = getattr(net, "weight_bytes", None)
    print(json.dumps({"resident": bytes_of("VmRSS") - idle, "peak": bytes_of("VmHWM") - idle, "seconds": seconds,
                      "weights": held, "idle": idle}))


def prepare(folder, model):
    """Writes the net with a batch of 1, weights and ranges."""
    import caffe
    import numpy as np
    from caffe.calibration import calibrate
    text = (ROOT / "models" / model / "deploy.prototxt").read_text().replace("dim: 10 ", "dim: 1 ", 1)
    (folder / "net.prototxt").write_text(text)
    caffe.set_random_seed(1)
    net = caffe.Net(folder / "net.prototxt", caffe.TEST)
    data = np.random.default_rng(1)

    def feed(net):
        net.blobs["data"].data[...] = data.uniform(-100, 100, net.blobs["data"].shape)

    calibrate(net, iterations=32, method="min-max", feed=feed).save(folder / "net.json")
    net.save(folder / "net.caffemodel")


def run(*arguments):
    return subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bvlc_alexnet")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=ROOT / "build" / "cpu-release", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, help="where the weights are written and kept")
    parser.add_argument("--part", choices=("prepare", *TYPES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["GLOG_minloglevel"] = "2"
    sys.path.insert(0, str(options.build / "python"))
    if options.part == "prepare":
        return prepare(options.folder, options.model)
    if options.part:
        return answer(options.folder, options.part, options.batch)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        if not (folder / "net.caffemodel").exists():
            run("--part=prepare", "--folder", folder, "--model", options.model, "--build", options.build)
        rounds = [{part: json.loads(run("--part", part, "--folder", folder, "--batch", options.batch, "--build", options.build))
                   for part in TYPES} for _ in range(options.rounds)]
    figures = {}
    for part in TYPES:
        of_type = [one[part] for one in rounds]
        figures[part] = {f"{name}_mib": round(statistics.median(one[name] for one in of_type) / 2**20, 1)
                         for name in ("resident", "peak", "idle")}
        figures[part]["seconds"] = round(statistics.median(one["seconds"] for one in of_type), 3)
        if of_type[0]["weights"] is not None:
            figures[part]["weights_mib"] = round(of_type[0]["weights"] / 2**20, 2)
    print(json.dumps({"model": options.model, "batch": options.batch, "figures": figures}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

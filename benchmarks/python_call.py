#!/usr/bin/env python3
"""Measures the overhead of net.forward() in Python over Net::Forward in C++, for LeNet with a batch of 1; prints JSON.

  benchmarks/python_call.py [--rounds N] [--build build/cpu-release]

Both run on one thread, in turns, so that other load affects both; a round is one second of each. `overhead` compares
the medians over rounds of the rounds' medians. Use the interpreter for which the package was built.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NET = ROOT / "examples" / "mnist" / "lenet.prototxt"


def python_round(net, seconds=1.0):
    """The median time of one call, in microseconds."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        net.forward()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--build", default=ROOT / "build" / "cpu-release", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", GLOG_minloglevel="2")
    sys.path.insert(0, str(options.build / "python"))
    import caffe
    net = caffe.Net(NET, caffe.TEST)
    net.blobs["data"].reshape(1, 1, 28, 28)
    rounds = []
    for _ in range(options.rounds):
        native = json.loads(subprocess.run([options.build / "bin" / "forward_call", NET, "1"], check=True,
                                           capture_output=True, text=True).stdout)["median_us"]
        rounds.append((native, python_round(net)))
    native, python = (statistics.median(column) for column in zip(*rounds))
    print(json.dumps({"cpp_us": round(native, 2), "python_us": round(python, 2),
                      "overhead": round(python / native - 1, 4),
                      "rounds": [[round(time, 2) for time in pair] for pair in rounds]}, indent=1))


if __name__ == "__main__":
    main()

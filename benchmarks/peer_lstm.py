#!/usr/bin/env python3
"""Times forward and backward of an LSTM in Cortado and in PyTorch, in turns on one thread.

  benchmarks/peer_environment.sh
  benchmarks/peer_lstm.py [--rounds N]     milliseconds, medians
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
NET = "benchmarks/nets/lstm.prototxt"
# The same sizes as NET; the best of several calls after warm-up.
PEER = """
import time, torch
torch.set_num_threads(1)
lstm, linear = torch.nn.LSTM(64, 128), torch.nn.Linear(128, 10)
x, y = torch.randn(200, 16, 64), torch.ones(200 * 16, dtype=torch.long)
times = []
for _ in range(12):
    start = time.perf_counter()
    torch.nn.functional.cross_entropy(linear(lstm(x)[0]).view(-1, 10), y).backward()
    times.append(time.perf_counter() - start)
print(sorted(times[2:])[5] * 1e3)
"""


def ours(build):
    report = subprocess.run([ROOT / build / "bin" / "caffe", "time", NET, "-iterations=10", "--json"], cwd=ROOT, check=True,
                            capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    report = json.loads(report)
    return report["forward_backward_ms"]


def peers(python):
    return float(subprocess.run([python, "-c", PEER], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cpu-release", help="build folder")
    parser.add_argument("--python", default="build/peer-venv/bin/python", help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rounds = [(ours(args.build), peers(ROOT / args.python)) for _ in range(args.rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*rounds))
    print(json.dumps({"net": NET, "cortado_ms": round(mine, 2), "pytorch_ms": round(theirs, 2),
                      "ratio": round(theirs / mine, 2)}, indent=2))


if __name__ == "__main__":
    main()

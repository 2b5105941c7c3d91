#!/usr/bin/env python3
"""Training speed of the benchmark nets, beside this machine's own matrix product rate.

  benchmarks/step_time.py [--nets lenet,alexnet,googlenet,resnet50] [--rounds 3] [--out FILE.json]

Each round measures the matrix product rate and then every net (caffe time, DummyData), so that a
machine that slows down slows all of them; medians over the rounds are reported. The share is
FLOP of the plan (forward and backward) over time over the rate: 1 would mean that the whole step
ran as fast as a large matrix product.
"""
import argparse
import json
import pathlib
import platform
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = {"lenet": 64, "alexnet": 32, "googlenet": 16, "resnet50": 16}
ITERATIONS = {"lenet": 200, "alexnet": 5, "googlenet": 5, "resnet50": 3}


def output_of(*command):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, text=True, capture_output=True, check=True)
    return done.stdout + done.stderr


def plan_flop(caffe, net):
    plan = json.loads(output_of(caffe, "plan", f"--model=benchmarks/nets/{net}.prototxt", "--json"))
    return sum(step["flops"] for step in plan["steps"])


def step_ms(caffe, net):
    text = output_of(caffe, "time", f"--model=benchmarks/nets/{net}.prototxt", f"--iterations={ITERATIONS[net]}")
    times = [float(t) for t in re.findall(r"forward-backward time: (\S+) ms", text)]
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cpu-release", help="build folder")
    parser.add_argument("--nets", default=",".join(BATCH))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="write the JSON here as well")
    args = parser.parse_args()
    programs = ROOT / args.build / "bin"
    caffe, nets = programs / "caffe", args.nets.split(",")
    rates, times = [], {net: [] for net in nets}
    for _ in range(args.rounds):
        rates.append(float(output_of(programs / "gemm_rate")))
        for net in nets:
            times[net].append(step_ms(caffe, net))
    rate = statistics.median(rates)
    cpu = output_of(caffe, "device_query").split("Device: ")[-1].strip()
    result = {"machine": cpu, "system": platform.platform(), "gemm_gflops": rate, "gemm_rounds": rates, "nets": {}}
    for net in nets:
        ms, flop = statistics.median(times[net]), plan_flop(caffe, net)
        result["nets"][net] = {
            "batch": BATCH[net], "step_ms": round(ms, 2), "step_ms_rounds": times[net],
            "images_per_second": round(1000 * BATCH[net] / ms, 1), "gflop_per_step": round(flop / 1e9, 2),
            "gflops": round(flop / ms / 1e6, 1), "share_of_gemm": round(flop / ms / 1e6 / rate, 3)}
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

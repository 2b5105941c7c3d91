#!/usr/bin/env python3
"""Compares the peak memory of training with the plan's figure.

  benchmarks/peak_memory.py [--solver FILE]     (default: ResNet-50 at batch 16, 2 iterations)
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cpu-release", help="build folder")
    parser.add_argument("--solver", default="benchmarks/nets/resnet50_solver.prototxt")
    args = parser.parse_args()
    caffe = ROOT / args.build / "bin" / "caffe"
    plan = subprocess.run([caffe, "plan", f"--solver={args.solver}", "--json"], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    subprocess.run([caffe, "train", f"--solver={args.solver}"], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    planned = json.loads(plan)["memory"]["total"]
    measured = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(json.dumps({"solver": args.solver, "planned_bytes": int(planned), "measured_bytes": measured,
                      "measured_over_planned": round(measured / planned, 4)}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())

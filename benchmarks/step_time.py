#!/usr/bin/env python3
"""Measures the throughput of training, in images/s and as a share of this machine's matrix product rate.

  benchmarks/step_time.py [NET...] [--rounds 3] [--iterations 10] [--build build/cpu-release] [--output FILE]

NET is lenet, alexnet, googlenet or resnet50 (all), or a prototxt with data from DummyData or Input. Rounds alternate
between the matrix product and each net, so both see the same machine load. Prints JSON.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

import net_flops

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
NETS = ("lenet", "alexnet", "googlenet", "resnet50")
STEP = re.compile(r"Iteration: \d+ forward-backward time: ([\d.e+]+) ms")


def run(*command):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed with status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def step_times_ms(log):
    """Times of the iterations that `caffe time` logged."""
    times = [float(text) for text in STEP.findall(log)]
    if not times:
        raise ValueError("no 'forward-backward time' line in the log of caffe time")
    return times


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def report(net, times, gemm_gflops):
    batch, flop = net_flops.batch_size(net), net_flops.training_flop(net)
    images = batch / statistics.median(times) * 1000
    gflops = images * flop / 1e9
    return {"batch": batch, "step_ms": round(statistics.median(times), 3), "step_ms_best": round(min(times), 3),
            "images_per_s": round(images, 1), "flop_per_image": flop, "gflops": round(gflops, 1),
            "share_of_gemm": round(gflops / gemm_gflops, 3), "steps": len(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=NETS, metavar="NET")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10, help="steps per round; LeNet takes 20 times as many")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--output", type=pathlib.Path, help="a file for the JSON, besides standard output")
    options = parser.parse_args()

    binaries = options.build.resolve() / "bin"
    paths = {pathlib.Path(n).stem: pathlib.Path(n).resolve() if n.endswith(".prototxt")
             else HERE / "nets" / f"{n}.prototxt" for n in options.nets}
    times, gemm = {name: [] for name in paths}, []
    for round_number in range(options.rounds):
        for name, path in paths.items():
            print(f"round {round_number + 1} of {options.rounds}: {name}", file=sys.stderr)
            gemm.append(json.loads(run(binaries / "gemm_rate"))["gflops"])
            iterations = options.iterations * (20 if name == "lenet" else 1)
            times[name] += step_times_ms(run(binaries / "caffe", "time", f"--model={path}", f"--iterations={iterations}"))

    rate = statistics.median(gemm)
    result = {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "threads": os.environ.get("OMP_NUM_THREADS", "all"),
                    "load_before": round(os.getloadavg()[1], 2)},
        "gemm": {"gflops": rate, "lowest": min(gemm), "highest": max(gemm)},
        "nets": {name: report(net_flops.parse(paths[name].read_text(encoding="utf-8")), measured, rate)
                 for name, measured in times.items()},
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

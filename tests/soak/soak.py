#!/usr/bin/env python3
"""Trains for hours with everything that occurs in a long run, and fails if its resources keep growing.

  tests/soak/soak.py --hours 8 [--binaries build/cpu-release/bin] [--folder DIR] [--workers N]

The net's images differ in size (with one worker), so that it is reshaped from batch to batch; some records are broken
(skip_broken); there are snapshots, test phases and, from outside, SIGHUP snapshots. At even intervals, /proc gives
resident and anonymous memory, descriptors, threads. After a warm-up of a quarter of the time

  memory       may grow by 16 MiB and 5 %, comparing the medians of the first and the last quarter of the remaining time
  descriptors  by 2 (a snapshot may be open)
  threads      not at all

and the run must make progress in any five intervals. At the end SIGTERM ends it with status 0 and a snapshot, from
which another run continues. Prints a table of up to 40 samples. Exit status 1 means that one of these conditions fails.
Runs on demand, not in continuous integration; tests/smoke/test_soak.py runs it for 20 seconds.
"""
import argparse
import dataclasses
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import lmdb

ROOT = pathlib.Path(__file__).resolve().parents[2]

NET = """
name: "soak"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN } transform_param { scale: 0.0039 }
  data_param { source: "%(folder)s/train" batch_size: %(workers)d backend: LMDB shuffle: true skip_broken: true parser_threads: 2 } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST } transform_param { scale: 0.0039 }
  data_param { source: "%(folder)s/train" batch_size: %(workers)d backend: LMDB skip_broken: true } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { global_pooling: true } }
layer { name: "drop" type: "Dropout" bottom: "pool" top: "pool" }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""

SOLVER = """
net: "%(folder)s/net.prototxt" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 max_iter: 2000000000 random_seed: 5
display: 20 snapshot: 500 test_interval: 200 test_iter: 5 snapshot_prefix: "%(folder)s/soak" solver_mode: CPU
"""


def varint(number):
    bytes_ = bytearray()
    while number > 127:
        bytes_.append(number & 127 | 128)
        number >>= 7
    return bytes(bytes_ + bytes([number]))


def datum(channels, height, width, pixels, label):
    """A Datum in protobuf's wire format, so that the script needs no package."""
    fields = [(1, channels), (2, height), (3, width)]
    head = b"".join(bytes([number << 3]) + varint(value) for number, value in fields)
    return head + bytes([4 << 3 | 2]) + varint(len(pixels)) + pixels + bytes([5 << 3]) + varint(label)


def write_database(path, sizes, records=2000):
    """Images of these sizes; every fiftieth record is not an image."""
    chance = random.Random(3)
    with lmdb.open(str(path), map_size=1 << 28) as environment, environment.begin(write=True) as transaction:
        for number in range(records):
            height, width = chance.choice(sizes)
            record = datum(3, height, width, chance.randbytes(3 * height * width), number % 10)
            transaction.put(b"%08d" % number, b"no image" if number % 50 == 7 else record)


@dataclasses.dataclass
class Sample:
    seconds: float
    iteration: int
    resident: float  # MiB
    anonymous: float
    descriptors: int
    threads: int


class Run:
    """A training run that is observed from outside."""

    def __init__(self, caffe, folder, workers):
        self.log = folder / "log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([caffe, "train", f"--solver={folder}/solver.prototxt", f"-workers={workers}"],
                                            stdout=subprocess.DEVNULL, stderr=log)
        self.begin, self.read, self.iteration, self.failures = time.time(), 0, 0, []

    def read_log(self):
        with open(self.log) as log:
            log.seek(self.read)
            text = log.read()
        self.read += len(text)
        found = re.findall(r"Iteration (\d+)", text)
        if found:
            self.iteration = int(found[-1])
        self.failures += [line for line in text.splitlines() if line.startswith(("E", "F")) or "No progress" in line]

    def sample(self):
        self.read_log()
        proc = pathlib.Path("/proc") / str(self.process.pid)
        status = dict(re.findall(r"^(\w+):\s+(\d+)", (proc / "status").read_text(), re.M))
        return Sample(time.time() - self.begin, self.iteration, int(status["VmRSS"]) / 1024, int(status["RssAnon"]) / 1024,
                      len(os.listdir(proc / "fd")), int(status["Threads"]))


def remove_old_snapshots(folder, keep=3):
    states = sorted(folder.glob("soak_iter_*.solverstate"), key=lambda one: one.stat().st_mtime)
    for state in states[:-keep]:
        state.unlink(missing_ok=True)
        state.with_suffix(".caffemodel").unlink(missing_ok=True)


def growth(samples, value):
    """The difference between the medians of the last and the first quarter, after the warm-up."""
    settled = samples[len(samples) // 4:]
    part = max(1, len(settled) // 4)
    return (statistics.median(value(one) for one in settled[:part]), statistics.median(value(one) for one in settled[-part:]))


def problems(samples):
    """Everything that has grown beyond its limit."""
    found = []
    for name, allowed, share in (("resident", 16, 0.05), ("anonymous", 16, 0.05), ("descriptors", 2, 0), ("threads", 0, 0)):
        before, after = growth(samples, lambda one, name=name: getattr(one, name))
        if after > before * (1 + share) + allowed:
            found.append(f"{name} grew from {before:.1f} to {after:.1f}, more than {allowed} and {share:.0%}")
    for one, other in zip(samples, samples[5:]):
        if other.iteration <= one.iteration:
            found.append(f"no progress from {one.seconds:.0f} s to {other.seconds:.0f} s, at iteration {one.iteration}")
    return found


def print_table(samples, rows=40):
    print(f"{'seconds':>9} {'iteration':>11} {'resident':>9} {'anonymous':>10} {'descriptors':>12} {'threads':>8}")
    step = max(1, len(samples) // rows)
    for one in samples[::step]:
        print(f"{one.seconds:9.0f} {one.iteration:11d} {one.resident:9.1f} {one.anonymous:10.1f} {one.descriptors:12d} "
              f"{one.threads:8d}")


def soak(caffe, folder, seconds, workers):
    """Returns the samples and the problems."""
    # Several workers share a batch, whose images must have the same size.
    sizes = [(height, width) for height in (12, 16, 20, 24) for width in (12, 18, 24)]
    write_database(folder / "train", sizes if workers == 1 else sizes[:1])
    (folder / "net.prototxt").write_text(NET % {"folder": folder, "workers": workers})
    (folder / "solver.prototxt").write_text(SOLVER % {"folder": folder})
    interval = min(30.0, seconds / 20)
    run, samples, hung_up = Run(caffe, folder, workers), [], 0
    try:
        while time.time() - run.begin < seconds and run.process.poll() is None:
            time.sleep(interval)
            if run.process.poll() is not None:
                break
            samples.append(run.sample())
            remove_old_snapshots(folder)
            run.process.send_signal(signal.SIGHUP)
            hung_up += 1
        wrong = problems(samples) if len(samples) >= 8 else ["the run ended before there was anything to compare"]
        ended = run.process.poll()
        run.process.terminate()
        status = run.process.wait(120) if ended is None else ended
    finally:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
    run.read_log()
    text = run.log.read_text()
    for what in ("Snapshotting", "Test net output", "takes its place"):
        if what not in text:
            wrong.append(f"the log has no '{what}'")
    if ended is not None or status != 0:
        wrong.append(f"status {status}{' before its end' if ended is not None else ''}: {text[-500:]}")
    wrong += run.failures
    return samples, wrong + goes_on(caffe, folder)


def goes_on(caffe, folder):
    """Returns whether the last snapshot is complete."""
    states = sorted(folder.glob("soak_iter_*.solverstate"), key=lambda one: one.stat().st_mtime)
    if not states:
        return ["there is no snapshot"]
    iteration = int(states[-1].stem.split("_")[-1])
    done = subprocess.run([caffe, "train", f"--solver={folder}/solver.prototxt", f"--snapshot={states[-1]}",
                           f"-set=max_iter={iteration + 5}"], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"the last snapshot does not go on: {done.stderr[-500:]}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build" / "cpu-release" / "bin")
    parser.add_argument("--folder", type=pathlib.Path, help="where the run works; by default one that is removed")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        samples, wrong = soak(options.binaries / "caffe", folder.resolve(), options.hours * 3600, options.workers)
    print_table(samples)
    for problem in wrong:
        print(f"FAILED: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

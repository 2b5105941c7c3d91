#!/usr/bin/env python3
"""Compares the prediction of `caffe plan -ranks` with the time that `caffe train -ranks` takes.

  benchmarks/scaling_check.py [NET...] [--ranks 1,2,4] [--batch N] [--rounds 5] [--seconds 4] [--namespaces]
                              [--unbound] [--set KEY=VALUE]... [--output FILE]

NET: lenet, cifar, alexnet, googlenet or resnet50 (lenet cifar alexnet). All ranks share this machine and compute with
one thread each; rank r is bound to processor r, modulo their number, as launchers do, unless --unbound. --batch is per
rank. Each round predicts the steps from newly timed kernels, and then trains for about --seconds. Prints the medians of
both, their ratio, and the load of the machine; then JSON.

--namespaces puts each process into its own network namespace, as in ranks_time.py: packets then cross a virtual cable
and a bridge, which cost more than the loopback for which the model measures the processor.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from ranks_time import ROOT, check_nets, finish, machines, milliseconds, write
from step_time import processor

BATCH = {"lenet": 64, "cifar": 100, "alexnet": 32, "googlenet": 16, "resnet50": 8}
CIFAR = ROOT / "examples" / "cifar10" / "cifar10_full_train_test.prototxt"
# With fewer steps the log would have no rate; with more a run would take minutes.
FEWEST_STEPS, MOST_STEPS = 12, 2000


def definition(net, batch):
    """The text of a net with constant data."""
    if net != "cifar":
        text = (ROOT / "benchmarks" / "nets" / f"{net}.prototxt").read_text()
        own = re.search(r"shape \{ dim: (\d+) dim: \d+ dim: \d+", text).group(1)
        return re.sub(rf"shape \{{ dim: {own}\b", f"shape {{ dim: {batch}", text)
    text = CIFAR.read_text()
    layers = text[text.index('layer {\n  name: "conv1"'):]
    return (f'name: "CIFAR10_full" layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{ '
            f'data_filler {{ type: "constant" value: 0.5 }} data_filler {{ type: "constant" }} '
            f'shape {{ dim: {batch} dim: 3 dim: 32 dim: 32 }} shape {{ dim: {batch} }} }} }}\n{layers}')


def write_solver(folder, net, batch):
    (folder / "net.prototxt").write_text(definition(net, batch))
    solver = folder / "solver.prototxt"
    solver.write_text(f'net: "{folder / "net.prototxt"}" base_lr: 1e-6 lr_policy: "fixed" momentum: 0.9 random_seed: 1 '
                      'solver_mode: CPU snapshot_after_train: false\n')
    return solver


class Check:
    def __init__(self, folder, net, options):
        self.folder, self.options = folder, options
        self.caffe = options.build / "bin" / "caffe"
        self.solver = write_solver(folder, net, options.batch or BATCH[net])
        self.settings = [word for one in options.set for word in ("--set", one)]

    def predict(self, number):
        """Predicted milliseconds per step by number of ranks, and the network's cost."""
        cache = self.folder / f"cache{number}"
        done = subprocess.run([self.caffe, "plan", self.solver, f"-ranks={','.join(map(str, self.options.ranks))}",
                               f"-ranks_per_machine={max(self.options.ranks)}", "-json", *self.settings], text=True,
                              check=False, capture_output=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)})
        if done.returncode:
            sys.exit(f"caffe plan failed with status {done.returncode}\n{done.stderr[-3000:]}")
        rows = json.loads(done.stdout)["scaling"]
        return {int(row["ranks"]): row for row in rows}

    def train(self, ranks, steps):
        """Measured milliseconds per step with that many ranks."""
        run = [self.caffe, "train", self.solver, "--set", f"max_iter={steps + 1}", "--set", f"display={steps // 3}",
               *self.settings]
        with machines(ranks, ranks if self.options.namespaces else 0) as (places, store, _):
            return milliseconds(finish([self.start([*place, *self.binding(rank), *run, f"-ranks={ranks}"] +
                                                   ([f"-rank={rank}", f"-store={store}"] if ranks > 1 else []))
                                        for rank, place in enumerate(places)]))

    def binding(self, rank):
        processors = sorted(os.sched_getaffinity(0))
        return [] if self.options.unbound else ["taskset", "-c", processors[rank % len(processors)]]

    @staticmethod
    def start(command):
        return subprocess.Popen([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**os.environ, "OMP_NUM_THREADS": "1"})

    def run(self):
        predicted = {ranks: [] for ranks in self.options.ranks}
        measured = {ranks: [] for ranks in self.options.ranks}
        loads, row = [], {}
        for number in range(self.options.rounds):
            rows = self.predict(number)
            for ranks in self.options.ranks:
                row = rows[ranks]
                predicted[ranks].append(row["step_ms"])
                steps = round(1000 * self.options.seconds / row["step_ms"])
                measured[ranks].append(self.train(ranks, min(max(steps, FEWEST_STEPS), MOST_STEPS)))
            loads.append(os.getloadavg()[0])
        return {"load": statistics.median(loads), "network": row["network"],
                "ranks": {ranks: {"predicted_ms": predicted[ranks], "measured_ms": measured[ranks]}
                          for ranks in self.options.ranks}}


def show(net, result):
    for ranks, both in result["ranks"].items():
        predicted, measured = statistics.median(both["predicted_ms"]), statistics.median(both["measured_ms"])
        both["ratio"] = predicted / measured
        print(f"{net:10} {ranks:3} ranks  predicted {predicted:9.2f} ms  measured {measured:9.2f} ms  ratio "
              f"{both['ratio']:5.2f}  load {result['load']:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=["lenet", "cifar", "alexnet"])
    parser.add_argument("--ranks", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--unbound", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--build", default=ROOT / "build" / "cpu-release", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    check_nets(options.nets, BATCH)
    result = {"processor": processor(), "namespaces": options.namespaces, "set": options.set, "nets": {}}
    for net in options.nets:
        with tempfile.TemporaryDirectory() as folder:
            result["nets"][net] = Check(pathlib.Path(folder), net, options).run()
        show(net, result["nets"][net])
    write(result, options.output)


if __name__ == "__main__":
    main()

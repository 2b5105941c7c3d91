#!/usr/bin/env python3
"""Compares processes with threads: the same step in one process, in workers and in ranks.

  benchmarks/ranks_time.py [NET...] [--rounds 5] [--steps 12] [--batch N] [--ranks 2] [--namespaces] [--machines M]
                           [--rate 1gbit] [--only NAME]... [--reduce_type BFLOAT16]... [--set KEY=VALUE]...
                           [--output FILE]

NET: alexnet, resnet50, googlenet or lenet (alexnet). All variants train with the same total batch, in turns:

  threads   caffe train with one thread per rank
  workers   caffe train -workers RANKS
  ranks     RANKS processes of one thread each, connected by TCP
  ranks-T   the same with reduce_type: T, for each --reduce_type
  split     ranks with -parallel auto: InnerProduct layers whose gradients cost more than their activations are split
  apart     ranks with a host name each, which do not know which of them share a machine (with --machines)

--namespaces puts each process into its own network namespace (needs root): packets cross a virtual cable instead of the
loopback. --machines M makes M namespaces, each with a host name and an equal share of the ranks; --rate limits what each
sends and receives, in units of tc. --only measures these variants alone.

Prints the median time of a step, the ratio of throughput to `threads`, the share of the time spent waiting for reductions,
and the most MB per step that a machine sent or received in a run; then JSON.
"""
import argparse
import contextlib
import functools
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile

from step_time import processor

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = {"alexnet": 64, "resnet50": 16, "googlenet": 32, "lenet": 64}
RATE = re.compile(r"Iteration \d+ \(([\d.e+]+) iter/s")
WAITED = re.compile(r"([\d.]+)% of ([\d.e+]+) ms waited")


@contextlib.contextmanager
def machines(ranks, count, rate=None, are_apart=False):
    """Command prefixes that start a program as each rank, the address of the first, and a function that reads the bytes on the
    cables. `count` is the number of machines, which are network namespaces; 0: this machine alone."""
    if not count:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        yield [[]] * ranks, f"127.0.0.1:{port}", lambda: 0
        return
    names = [f"caffe-bench-{os.getpid()}-{i}" for i in range(count)]
    switch = f"caffe-bench-{os.getpid()}-switch"

    def ip(*arguments):
        return subprocess.run(["ip", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout

    def limit(name, link):
        if rate:
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", link, "root", "tbf", "rate", rate, "burst", "1mb",
                            "latency", "50ms"], check=True)

    def most_bytes():
        """The most bytes that a machine has sent or received."""
        links = [json.loads(ip("-n", name, "-s", "-j", "link", "show", "eth0"))[0]["stats64"] for name in names]
        return max(link[way]["bytes"] for link in links for way in ("tx", "rx"))

    def words(rank):
        name = names[rank * count // ranks]
        host = f"{name}-{rank}" if are_apart else name
        return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host]

    try:
        for name in [*names, switch]:
            ip("netns", "add", name)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for i, name in enumerate(names):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{i}", "netns", switch)
            ip("-n", name, "addr", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", switch, "link", "set", f"port{i}", "master", "bridge", "up")
            limit(name, "eth0")
            limit(switch, f"port{i}")
        yield [words(rank) for rank in range(ranks)], "10.78.0.1:29500", most_bytes
    finally:
        for name in [*names, switch]:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def write_solver(folder, net, batch, steps):
    """Writes a solver for the net with this batch size."""
    text = (ROOT / "benchmarks" / "nets" / f"{net}.prototxt").read_text()
    own = re.search(r"shape \{ dim: (\d+) dim: \d+ dim: \d+", text).group(1)
    text = re.sub(rf"shape \{{ dim: {own}\b", f"shape {{ dim: {batch}", text)
    path = folder / f"{net}_{batch}.prototxt"
    path.write_text(text)
    solver = folder / f"solver_{batch}.prototxt"
    solver.write_text(f'net: "{path}" base_lr: 1e-6 lr_policy: "fixed" momentum: 0.9 random_seed: 1 solver_mode: CPU '
                      f'display: {steps // 2} max_iter: {steps + 1} snapshot_after_train: false\n')
    return solver


def finish(processes):
    """Returns the output of rank 0."""
    said = [one.communicate()[1] for one in processes]
    for one, text in zip(processes, said):
        if one.returncode:
            sys.exit(f"caffe train failed with status {one.returncode}\n{text[-3000:]}")
    return said[0]


class Variants:
    def __init__(self, caffe, folder, net, options):
        self.caffe, self.options = caffe, options
        batch = options.batch or BATCH[net]
        self.whole = write_solver(folder, net, batch, options.steps)
        self.part = write_solver(folder, net, batch // options.ranks, options.steps)
        self.megabytes = {}

    def start(self, solver, threads, *arguments, before=()):
        settings = [word for one in self.options.set for word in ("--set", one)]
        return subprocess.Popen([*before, self.caffe, "train", str(solver), *arguments, *settings], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**os.environ, "OMP_NUM_THREADS": str(threads)})

    def threads(self):
        return finish([self.start(self.whole, self.options.ranks)])

    def workers(self):
        return finish([self.start(self.part, self.options.ranks, f"-workers={self.options.ranks}")])

    def ranks(self, name, *arguments, are_apart=False):
        count = self.options.ranks
        with machines(self.options.ranks, self.options.machines, self.options.rate, are_apart) as (places, store, most_bytes):
            said = finish([self.start(self.part, 1, f"-ranks={count}", f"-rank={rank}", f"-store={store}", *arguments,
                                      before=place) for rank, place in enumerate(places)])
            self.megabytes[name] = most_bytes() / 1e6 / (self.options.steps + 1)
        return said

    def all(self):
        """The functions that measure each variant, by name."""
        by_type = {f"ranks-{one}": f"--set=net_param.reduce_type={one}" for one in self.options.reduce_type}
        known = {"threads": self.threads, "workers": self.workers, "ranks": functools.partial(self.ranks, "ranks"),
                 "split": functools.partial(self.ranks, "split", "-parallel=auto"),
                 **{name: functools.partial(self.ranks, name, setting) for name, setting in by_type.items()}}
        if self.options.machines:
            known["apart"] = functools.partial(self.ranks, "apart", are_apart=True)
        return {name: run for name, run in known.items() if not self.options.only or name in self.options.only}


def milliseconds(said):
    """Milliseconds per step in the fastest half of the run, without the first iterations, which are slow."""
    return 1000 / max(float(rate) for rate in RATE.findall(said)[1:])


def measure(caffe, net, options):
    with tempfile.TemporaryDirectory() as folder:
        variants = Variants(caffe, pathlib.Path(folder), net, options)
        times, waited = {name: [] for name in variants.all()}, {name: [] for name in variants.all()}
        for _ in range(options.rounds):
            for name, run in variants.all().items():
                said = run()
                times[name].append(milliseconds(said))
                waited[name] += [float(share) for share, _ in WAITED.findall(said)]
    result = {}
    for name, values in times.items():
        one = result[name] = {"ms": statistics.median(values), "all_ms": values}
        line = f"{net:10} {name:14} {one['ms']:9.1f} ms"
        if "threads" in times:
            one["throughput"] = statistics.median(a / b for a, b in zip(times["threads"], values))
            line += f" {one['throughput']:6.2f} x"
        if waited[name]:
            one["waited_percent"] = statistics.median(waited[name])
            line += f" {one['waited_percent']:6.1f} % waited"
        if variants.megabytes.get(name):
            one["megabytes"] = variants.megabytes[name]
            line += f" {one['megabytes']:8.2f} MB"
        print(line, flush=True)
    return result


def check_nets(nets, known):
    unknown = [net for net in nets if net not in known]
    if unknown:
        sys.exit(f"unknown net {unknown[0]}; use {', '.join(known)}")


def write(result, file):
    """Prints JSON, and writes it to the file if one is given."""
    text = json.dumps(result, indent=1)
    print(text)
    if file:
        file.write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=["alexnet"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--machines", type=int, default=0)
    parser.add_argument("--rate")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--reduce_type", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--build", default=ROOT / "build" / "cpu-release", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    check_nets(options.nets, BATCH)
    if options.namespaces:
        options.machines = options.ranks
    if options.rate and not options.machines:
        sys.exit("--rate limits the cables of machines; give --machines")
    result = {"processor": processor(), "ranks": options.ranks, "machines": options.machines, "rate": options.rate,
              "set": options.set,
              "nets": {net: measure(options.build / "bin" / "caffe", net, options) for net in options.nets}}
    write(result, options.output)


if __name__ == "__main__":
    main()

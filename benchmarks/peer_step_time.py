#!/usr/bin/env python3
"""Compares speed and memory of training the same nets in Cortado and in PyTorch.

  benchmarks/peer_environment.sh                        once: PyTorch into build/peer-venv
  benchmarks/peer_step_time.py [NET...] [--variants V,...] [--rounds 5] [--steps 3] [--batch N] [--memory-limit MIB]
                               [--output FILE]

NET: resnet50, googlenet, alexnet, vgg16, mobilenet_v2, lenet (all). Both frameworks build it from the same prototxt. First a pass
from the same weights compares loss and gradients; a difference ends the program. Then each variant trains in its own
process, and the processes take turns, --steps at a time. Prints a table, then JSON.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from peer import definition
from step_time import processor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
NETS = {
    "resnet50": ("benchmarks/nets/resnet50.prototxt", 16),
    "googlenet": ("benchmarks/nets/googlenet.prototxt", 16),
    "alexnet": ("benchmarks/nets/alexnet.prototxt", 32),
    "vgg16": ("models/vgg16/train_val.prototxt", 8),
    "mobilenet_v2": ("models/mobilenet_v2/train_val.prototxt", 16),
    "lenet": ("benchmarks/nets/lenet.prototxt", 64),
}
VARIANTS = {
    "cortado-fp32": ("cortado", "FP32"),
    "torch-fp32": ("torch", "fp32"),
    "torch-compile-fp32": ("torch", "fp32", "--compile"),
    "cortado-bf16": ("cortado", "BF16"),
    "torch-bf16": ("torch", "bf16"),
    "torch-compile-bf16": ("torch", "bf16", "--compile"),
}
LOSS_TOLERANCE = 1e-4  # relative
GRADIENT_FACTOR, GRADIENT_TOLERANCE = 3, 1e-4  # allowed multiple of PyTorch's own error in float, and absolute allowance for small nets


class Frameworks:
    """Starts the processes of both frameworks."""

    def __init__(self, torch_python, package, threads):
        self.torch_python, self.package, self.threads = torch_python, package, threads

    def check(self):
        if not list((self.package / "caffe").glob("_caffe*.so")):
            sys.exit(f"package caffe is not built in {self.package}; build the preset cpu-release, or give --build")
        if not self.torch_python.exists():
            sys.exit(f"there is no {self.torch_python}; run benchmarks/peer_environment.sh, or give --peer-python")

    def command(self, framework, folder, *arguments):
        python = sys.executable if framework == "cortado" else str(self.torch_python)
        return [python, str(HERE / "peer" / f"{framework}_worker.py"), str(folder), *arguments]

    def environment(self, framework):
        """`caffe train` sets OMP_WAIT_POLICY itself; PyTorch runs with its defaults."""
        own = ({"PYTHONPATH": str(self.package), "OMP_WAIT_POLICY": "passive"} if framework == "cortado" else
               {"TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build" / "peer-inductor")})
        return {**os.environ, "OMP_NUM_THREADS": str(self.threads), "PYTHONDONTWRITEBYTECODE": "1", **own}

    def run(self, framework, folder, *arguments):
        """Runs a process to its end; returns the last message that it printed."""
        done = subprocess.run(self.command(framework, folder, *arguments), env=self.environment(framework), text=True,
                              capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{framework} failed with status {done.returncode}\n{done.stderr[-3000:]}")
        return json.loads(done.stdout.splitlines()[-1])


class Worker:
    """A process that trains one net in one variant on request."""

    def __init__(self, frameworks, folder, name, memory_limit=None):
        framework, *arguments = VARIANTS[name]
        if framework == "cortado" and memory_limit:
            arguments.append(str(memory_limit))
        self.name = name
        self.replies = []
        self._process = subprocess.Popen(frameworks.command(framework, folder, *arguments), text=True,
                                         env=frameworks.environment(framework), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE)
        self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended with status {self._process.wait()}")
        return json.loads(line)

    def steps(self, count):
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        self.replies.append(self._answer())

    def finish(self):
        self._process.stdin.close()
        self._process.wait()


def write_net(folder, net):
    """Writes definitions for both frameworks, with and without dropout, and one batch."""
    for name, one in (("net", net), ("export", definition.without_dropout(net))):
        steps = definition.steps(one)
        (folder / f"{name}.prototxt").write_text(str(one), encoding="utf-8")
        (folder / ("steps.json" if name == "net" else "export.json")).write_text(json.dumps(steps), encoding="utf-8")
    shapes = {layer.top[0]: tuple(layer.input_param.shape[0].dim) for layer in net.layer if layer.type == "Input"}
    (images, image_shape), (labels, label_shape) = shapes.items()
    random = np.random.default_rng(1)
    np.savez(folder / "inputs.npz", **{images: random.standard_normal(image_shape, dtype=np.float32),
                                       labels: random.integers(0, 10, label_shape).astype(np.float32)})


def compare(frameworks, folder):
    """Compares loss and gradients of both frameworks in float with PyTorch's in double.

    Deep nets amplify rounding errors, so PyTorch's own error is the reference for Cortado's. Writes weights.npz, which
    PyTorch starts from.
    """
    ours = frameworks.run("cortado", folder, "FP32", "--export")
    theirs = frameworks.run("torch", folder, "fp32", "--compare")
    (folder / "gradients.npz").unlink()
    result = {"loss_cortado": ours["loss"], "loss_torch": theirs["loss"], "loss_double": theirs["exact_loss"],
              "gradients": len(theirs["cortado"])}
    for name in ("cortado", "torch"):
        distances = theirs[name].values()
        result[f"gradient_error_{name}"] = {"median": statistics.median(distances), "worst": max(distances)}
    is_same = abs(ours["loss"] - theirs["exact_loss"]) <= LOSS_TOLERANCE * abs(theirs["exact_loss"]) and all(
        result["gradient_error_cortado"][kind] <= GRADIENT_FACTOR * result["gradient_error_torch"][kind] + GRADIENT_TOLERANCE
        for kind in ("median", "worst"))
    if not is_same:
        sys.exit(f"the two nets are not the same: {json.dumps(result)}")
    return result


def summary(replies, batch):
    def all_of(key):
        return [value for reply in replies for value in reply[key]]

    last = replies[-1]
    return {"gradient_ms": round(statistics.median(all_of("gradient_ms")), 1),
            "gradient_ms_best": round(min(all_of("gradient_ms")), 1),
            "gradient_cpu_ms": round(statistics.median(all_of("gradient_cpu_ms")), 1),
            "step_ms": round(statistics.median(all_of("step_ms")), 1),
            "step_ms_best": round(min(all_of("step_ms")), 1),
            "images_per_s": round(batch / statistics.median(all_of("gradient_ms")) * 1000, 1),
            "steps": len(all_of("step_ms")), "peak_bytes": last["peak_bytes"], "steps_bytes": last["steps_bytes"],
            "above_idle_bytes": last["steps_bytes"] - last["idle_bytes"]}


def measure(frameworks, name, options):
    path, batch = NETS[name]
    batch = options.batch or batch
    with tempfile.TemporaryDirectory(prefix="peer-") as scratch:
        folder = pathlib.Path(scratch)
        write_net(folder, definition.training_net(ROOT / path, batch))
        agreement = compare(frameworks, folder)
        print(f"{name}: {json.dumps(agreement)}", file=sys.stderr)
        workers = []
        for variant in options.variants:
            print(f"{name}: starting {variant}", file=sys.stderr)
            workers.append(Worker(frameworks, folder, variant, options.memory_limit))
        for round_number in range(options.rounds):
            print(f"{name}: round {round_number + 1} of {options.rounds}", file=sys.stderr)
            for worker in workers:
                worker.steps(options.steps)
        for worker in workers:
            worker.finish()
    return {"batch": batch, "agreement": agreement,
            "variants": {worker.name: summary(worker.replies, batch) for worker in workers}}


def table(name, result):
    """Forward and backward (ms, median and best), processor time, the step with its update, memory."""
    yield (f"{name}, batch {result['batch']:<8} {'fwd+bwd ms':>11} {'best':>9} {'cpu ms':>9} {'step ms':>9} "
           f"{'images/s':>9} {'peak MiB':>9} {'above idle':>10}")
    for variant, r in result["variants"].items():
        yield (f"  {variant:<20} {r['gradient_ms']:>11.1f} {r['gradient_ms_best']:>9.1f} {r['gradient_cpu_ms']:>9.1f} "
               f"{r['step_ms']:>9.1f} {r['images_per_s']:>9.1f} {r['peak_bytes'] / 2**20:>9.0f} "
               f"{r['above_idle_bytes'] / 2**20:>10.0f}")


def versions(frameworks):
    code = "import torch; print(torch.__version__)"
    done = subprocess.run([frameworks.torch_python, "-c", code], capture_output=True, text=True, check=True)
    return {"processor": processor(), "cores": os.cpu_count(), "threads": frameworks.threads,
            "load_before": round(os.getloadavg()[1], 2), "torch": done.stdout.strip()}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="of " + ", ".join(VARIANTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="steps of each variant in a round")
    parser.add_argument("--batch", type=int, help="instead of each net's own")
    parser.add_argument("--memory-limit", type=int, metavar="MIB", help="Cortado's memory_limit (docs/memory.md)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--peer-python", type=pathlib.Path, default=ROOT / "build" / "peer-venv" / "bin" / "python")
    parser.add_argument("--output", type=pathlib.Path, help="a file for the JSON, besides standard output")
    options = parser.parse_args()
    options.variants = options.variants.split(",")
    for given, known in ((options.nets, NETS), (options.variants, VARIANTS)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"{unknown[0]} is none of {', '.join(known)}")
    return options


def main():
    options = parse_arguments()
    frameworks = Frameworks(options.peer_python, options.build.resolve() / "python", options.threads)
    frameworks.check()
    result = {"machine": versions(frameworks), "nets": {}}
    for name in options.nets or NETS:
        result["nets"][name] = measure(frameworks, name, options)
    print(f"{result['machine']['processor']}, {options.threads} threads, PyTorch {result['machine']['torch']}")
    for name, measured in result["nets"].items():
        print("\n".join(table(name, measured)))
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

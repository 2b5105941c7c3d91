#!/usr/bin/env python3
"""Measures the accuracy that the examples reach, by arithmetic type, or with large batches.

  benchmarks/accuracy.py RECIPE [--variants NAME...] [--seeds N...] [--jobs 2] [--build build/cpu-release] [--output FILE]

RECIPE is one of these, each job on one thread:
  lenet, mnist_rows_lstm, mnist_vit       after examples/mnist/create_mnist.sh
  cifar10_quick                           after examples/cifar10/create_cifar10.sh
  cifar10_six                             8 epochs of examples/large_batch, with its databases
  lenet_4096, cifar10_quick_4096          twice the number of epochs, with batches of 4,096
Prints JSON: the test accuracies by variant, one per seed, null if the loss became NaN or infinite.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ACCURACY = re.compile(r"Test net output #\d+: accuracy = ([\d.e+-]+)")
DIVERGED = re.compile(r"the loss of iteration \d+ is not a number")
SKIPPED = re.compile(r"step skipped \((\d+) so far\)")

LENET = """net: "examples/mnist/lenet_train_test.prototxt" test_iter: 100 test_interval: 10000
base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75 max_iter: 10000"""
# Both stages of the example in one: the rate falls to a tenth at iteration 4,000.
CIFAR = """net: "examples/cifar10/cifar10_quick_train_test.prototxt" test_iter: 100 test_interval: 5000
base_lr: 0.001 momentum: 0.9 weight_decay: 0.004 lr_policy: "multistep" stepvalue: 4000 gamma: 0.1 max_iter: 5000"""
# One cycle of the rate with AdamW, for 5 and for 3 epochs.
LSTM = """net: "benchmarks/nets/mnist_rows_lstm.prototxt" type: "AdamW" test_interval: 3000
base_lr: 0.003 momentum: 0.9 momentum2: 0.999 lr_policy: "onecycle" max_iter: 3000"""
VIT = """net: "benchmarks/nets/mnist_vit.prototxt" type: "AdamW" test_interval: 1407
base_lr: 0.002 momentum: 0.9 momentum2: 0.999 weight_decay: 0.05 lr_policy: "onecycle" max_iter: 1407"""
SIX = """net: "examples/large_batch/train_test.prototxt" test_interval: 3125
base_lr: 0.1 momentum: 0.9 weight_decay: 0.0005 lr_policy: "onecycle" rise: 0.25 max_iter: 3125"""


def large_batch(net, images, epochs, rate, decay, test_iter=100):
    iterations = epochs * images // 4096
    return (f'net: "{net}" test_iter: {test_iter} test_interval: {iterations} base_lr: {rate} momentum: 0.9 '
            f'weight_decay: {decay} lr_policy: "poly" power: 2 max_iter: {iterations} rampup_interval: {iterations // 20} '
            f'rampup_lr: {rate / 64}')


LENET_NET, CIFAR_NET = "examples/mnist/lenet_train_test.prototxt", "examples/cifar10/cifar10_quick_train_test.prototxt"
RECIPES = {
    "lenet": (LENET, None),
    "cifar10_quick": (CIFAR, None),
    "mnist_rows_lstm": (LSTM, None),
    "mnist_vit": (VIT, None),
    "cifar10_six": (SIX, None),
    # The rate for batch 64 (0.01) or 100 (0.001), times the growth of the batch.
    "lenet_4096": (large_batch(LENET_NET, 60000, 21, 0.64, 0.0005), 4096),
    "cifar10_quick_4096": (large_batch(CIFAR_NET, 50000, 20, 0.041, 0.004), 4096),
}
# Lines added to the solver, and lines added before the net.
VARIANTS = {
    "FLOAT": ("", ""),
    "BFLOAT16": ("precision: BF16", ""),
    "FLOAT16": ("precision: FP16", ""),
    "mixed": ("", "default_forward_type: FLOAT16 default_backward_type: FLOAT16 default_forward_math: FLOAT "
                  "default_backward_math: FLOAT global_grad_scale: 100"),
    "SGD, scaled rate": ("", ""),
    "LARC clip": ('larc: true larc_policy: "clip" larc_eta: 0.02', ""),
    "LARC scale": ("larc: true larc_eta: 0.02 base_lr: 4", ""),
}
BY_TYPE, BY_BATCH = ["FLOAT", "BFLOAT16", "FLOAT16", "mixed"], ["SGD, scaled rate", "LARC clip", "LARC scale"]


def train(recipe, variant, seed, build, folder):
    """Trains once; returns (accuracy or None, skipped steps, seconds)."""
    solver, batch = RECIPES[recipe]
    solver_lines, net_lines = VARIANTS[variant]
    net_file = re.search(r'net: "([^"]+)"', solver).group(1)
    stem = folder / f"{variant.replace(' ', '_').replace(',', '')}_{seed}"
    if net_lines or batch:  # a copy elsewhere, which cannot include the files of the net
        net = subprocess.run([build / "bin" / "caffe", "expand", net_file], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        if batch:  # the first batch_size is that of the training data
            net = re.sub(r"batch_size: \d+", f"batch_size: {batch}", net, count=1)
            net = re.sub(r"(data_param \{)", r"\1 shuffle: true", net, count=1)
        stem.with_suffix(".net").write_text(f"{net_lines}\n{net}", encoding="utf-8")
        solver = solver.replace(net_file, str(stem.with_suffix(".net")))
    if "base_lr" in solver_lines:
        solver = re.sub(r"base_lr: \S+", "", solver)
    stem.with_suffix(".solver").write_text(
        f'{solver} {solver_lines} random_seed: {seed} snapshot_after_train: false solver_mode: CPU\n', encoding="utf-8")
    start = time.monotonic()
    done = subprocess.run([build / "bin" / "caffe", "train", f"--solver={stem.with_suffix('.solver')}"], cwd=ROOT,
                          capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    diverged = done.returncode == 1 and DIVERGED.search(done.stderr)
    if done.returncode and not diverged:
        raise RuntimeError(f"{variant}, seed {seed}: status {done.returncode}\n{done.stderr[-1500:]}")
    skipped = SKIPPED.findall(done.stderr)
    accuracy = None if diverged else float(ACCURACY.findall(done.stderr)[-1])
    return accuracy, int(skipped[-1]) if skipped else 0, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", choices=RECIPES)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--output", type=pathlib.Path, help="a file for the JSON, besides standard output")
    options = parser.parse_args()
    variants = options.variants or (BY_BATCH if RECIPES[options.recipe][1] else BY_TYPE)

    result = {"recipe": options.recipe, "seeds": options.seeds, "variants": {}}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {(variant, seed): pool.submit(train, options.recipe, variant, seed, options.build.resolve(),
                                             pathlib.Path(folder))
                for variant in variants for seed in options.seeds}
        for (variant, seed), run in runs.items():
            accuracy, skipped, seconds = run.result()
            print(f"{variant}, seed {seed}: {'diverged' if accuracy is None else accuracy} "
                  f"({seconds:.0f} s, {skipped} steps skipped)", file=sys.stderr)
            entry = result["variants"].setdefault(variant, {"accuracy": [], "skipped_steps": []})
            entry["accuracy"].append(accuracy)
            entry["skipped_steps"].append(skipped)
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

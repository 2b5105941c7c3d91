#!/usr/bin/env python3
"""Times an epoch of LeNet on MNIST from NumPy arrays: caffe.fit and loops in PyTorch, in turns.

  benchmarks/peer_environment.sh
  benchmarks/peer_fit.py FOLDER_WITH_MNIST [--rounds N]      the second epoch, medians; JSON

  cortado         caffe.fit
  cortado-steps   as many steps of the same solver on one batch: the difference is the overhead of fit()
  torch           batches by index from tensors in memory: the fastest loop
  torch-loader    DataLoader(TensorDataset(...), shuffle=True): the usual loop

All variants use batches of 64, a smaller last one, SGD with momentum 0.9 and weight decay, and each
runs in its own process. Accuracy is on the 10,000 test images after two epochs. `seconds` is
wall-clock time, `processor_seconds` the time of all threads of the process; with --threads 1 the
latter is more reliable on a shared machine.
"""
import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NET = """
name: "LeNet"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 64 dim: 1 dim: 28 dim: 28 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 64 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""
FIELDS = ("seconds", "processor_seconds")
VARIANTS = ("cortado", "cortado-steps", "torch", "torch-loader")


def now():
    return time.perf_counter(), time.process_time()


def since(begin):
    return [end - start for start, end in zip(begin, now())]


def mnist(folder, part):
    import numpy as np

    def content(kind):
        path = pathlib.Path(folder) / f"{part}-{kind}-ubyte"
        return path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())

    images = np.frombuffer(content("images-idx3"), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    labels = np.frombuffer(content("labels-idx1"), np.uint8, offset=8)
    return images.astype(np.float32) / 256, labels.astype(np.int64)


def ours(folder, only_steps):
    import caffe
    from caffe.proto import caffe_pb2
    from google.protobuf import text_format
    (x, y), (x_test, y_test) = mnist(folder, "train"), mnist(folder, "t10k")
    epochs = []
    run = caffe.fit(text_format.Parse(NET, caffe_pb2.NetParameter()), x, y, epochs=2, seed=1,
                    callbacks=lambda _: epochs.append(now() if not epochs else since(epochs[0])),
                    solver={"type": "SGD", "base_lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4})
    if not only_steps:
        return *epochs[1], run.evaluate(x_test, y_test)["accuracy"]
    solver = caffe.get_solver(run.solver.param, keep_all=False)
    solver.net.blobs["data"].data[...], solver.net.blobs["label"].data[...] = x[:64], y[:64]
    solver.step(100)
    begin = now()
    solver.step(-(-len(x) // 64))
    return *since(begin), None


def theirs(folder, with_loader):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(1)
    (x, y), (x_test, y_test) = ([torch.from_numpy(part) for part in mnist(folder, name)] for name in ("train", "t10k"))
    model = nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=5e-4)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    for _ in range(2):
        begin, total = now(), 0.0
        for images, labels in loader if with_loader else ((x[i], y[i]) for i in torch.randperm(len(x)).split(64)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)  # the history's mean
        times = since(begin)
    with torch.no_grad():
        return *times, (model(x_test).argmax(1) == y_test).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="with MNIST's four files, as they are or with .gz")
    parser.add_argument("--python", default=str(ROOT / "build/peer-venv/bin/python"), help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of the processor; all by default")
    parser.add_argument("--variant", choices=VARIANTS, help="run this one, here, once")
    args = parser.parse_args()
    if args.variant:
        run = ours if args.variant.startswith("cortado") else theirs
        print(json.dumps(dict(zip((*FIELDS, "accuracy"), run(args.folder, "-" in args.variant)))))
        return
    environment = {**os.environ, **({"OMP_NUM_THREADS": str(args.threads)} if args.threads else {})}
    results = {variant: [] for variant in VARIANTS}
    for _ in range(args.rounds):
        for variant, found in results.items():
            python = sys.executable if variant.startswith("cortado") else args.python
            done = subprocess.run([python, __file__, args.folder, "--variant", variant], check=True, stdout=subprocess.PIPE,
                                  env=environment, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    for variant, found in results.items():
        row = {"variant": variant}
        for field in FIELDS:
            times = sorted(one[field] for one in found)
            row[field] = {"median": round(statistics.median(times), 2), "lowest": round(times[0], 2), "highest": round(times[-1], 2)}
        if found[0]["accuracy"] is not None:
            row["accuracy"] = round(statistics.median(one["accuracy"] for one in found), 4)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Training steps of benchmarks/nets/lstm.prototxt in PyTorch, with cuDNN's LSTM; scripts/caffe-gpu-questions runs it.

  benchmarks/gpu/torch_lstm.py [--gpu 0] [--iterations 50]

Prints one line of JSON: median milliseconds of forward and backward with an update, in float and bfloat16.
"""
import argparse
import contextlib
import json

import torch
from torch import nn
from torch_step import BLOCK, measure, percentile

STEPS, BATCH, INPUTS, UNITS, CLASSES = 200, 16, 64, 128, 10


class Training:
    def __init__(self, device, dtype):
        self.lstm, self.linear = nn.LSTM(INPUTS, UNITS).to(device), nn.Linear(UNITS, CLASSES).to(device)
        self.inputs = torch.randn(STEPS, BATCH, INPUTS, device=device)
        self.labels = torch.ones(STEPS * BATCH, dtype=torch.long, device=device)
        parameters = [*self.lstm.parameters(), *self.linear.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
        self.autocast = contextlib.nullcontext() if dtype is None else torch.autocast(device.type, dtype)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            scores = self.linear(self.lstm(self.inputs)[0]).view(-1, CLASSES)
            loss = nn.functional.cross_entropy(scores, self.labels)
        loss.backward()
        self.optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=5 * BLOCK)
    parser.add_argument("--cpu", action="store_true", help="to try the program where there is no GPU")
    options = parser.parse_args()
    device = torch.device("cpu") if options.cpu else torch.device("cuda", options.gpu)
    wait = (lambda: None) if options.cpu else torch.cuda.synchronize
    result = {}
    for name, dtype in (("fp32", None), ("bf16", torch.bfloat16)):
        times = measure(Training(device, dtype).step, wait, options.iterations)
        result[f"{name}_p50_ms"] = percentile(times, 0.5)
    print(json.dumps({"net": "lstm", "torch": torch.__version__, **result}))


if __name__ == "__main__":
    main()

"""PyTorch's process of peer_step_time.py.

  torch_worker.py FOLDER fp32|bf16 [--compile]    serves steps (worker.serve)
  torch_worker.py FOLDER fp32 --compare           one pass with Cortado's weights; prints losses and distances

FOLDER holds steps.json (export.json), inputs.npz, weights.npz and, to compare, gradients.npz.
"""
import contextlib
import json
import os
import pathlib
import sys

import numpy as np
import torch

import worker
from torch_net import TorchNet

ROUNDED_PASSES = 4


def load(folder, file):
    steps = json.loads((folder / file).read_text(encoding="utf-8"))
    with np.load(folder / "weights.npz") as weights:
        net = TorchNet(steps, weights).to(memory_format=torch.channels_last).train()
    inputs = np.load(folder / "inputs.npz")
    images, labels = (torch.from_numpy(inputs[name]) for name in net.input_names())
    return net, images.to(memory_format=torch.channels_last), labels.long()


def gradients(net, images, labels):
    """The loss, and the gradients by Caffe's name."""
    loss = net(images, labels)
    loss.backward()
    return float(loss.detach()), {key: parameter.grad.double() for key, parameter in net.parameter_of.items()}


def distances(found, exact):
    """Relative distances, in the Euclidean norm, of each gradient that is more than rounding noise."""
    norms = {key: float(value.norm()) for key, value in exact.items()}
    largest = max(norms.values())
    return {key: float((found[key].reshape(exact[key].shape) - exact[key]).norm()) / norm
            for key, norm in norms.items() if norm > 1e-5 * largest}


def rounded_otherwise(images):
    """The images with their last bits changed at random, within rounding error of the true ones."""
    return images * (1 + (2 * torch.rand_like(images) - 1) * torch.finfo(images.dtype).eps)


def compare(folder):
    """Distances of Cortado's and PyTorch's gradients, both in float, from PyTorch's in double.

    Rounding turns a few ReLUs on or off and moves a few maxima. A single such event changes every gradient below it by more than
    all other rounding errors: in VGG-16 0 to 5 of 25 million, at random. So PyTorch's distance is the largest of several
    passes, each on images with other last bits.
    """
    net, images, labels = load(folder, "export.json")
    exact_loss, exact = gradients(net.double(), images.double(), labels)
    passes = []
    for number in range(ROUNDED_PASSES):
        net, images, labels = load(folder, "export.json")
        passes.append(gradients(net, rounded_otherwise(images) if number else images, labels))
    found = [distances(single, exact) for _, single in passes]
    with np.load(folder / "gradients.npz") as file:
        cortado = {key: torch.from_numpy(file[key]).double() for key in exact}
    worker.say(loss=passes[0][0], exact_loss=exact_loss, cortado=distances(cortado, exact),
               torch={key: max(one[key] for one in found) for key in found[0]})


def serve(folder, is_bfloat16, is_compiled):
    if is_compiled:  # loads the compiler, whose memory does not belong to the net
        torch.compile(lambda x: x + 1)(torch.ones(1))
    idle = worker.memory_bytes("VmRSS")
    net, images, labels = load(folder, "steps.json")
    call, clock = torch.compile(net) if is_compiled else net, worker.Clock()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9, weight_decay=1e-4, fused=True)

    def step():
        clock.begin()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if is_bfloat16 else contextlib.nullcontext():
            loss = call(images, labels)
        loss.backward()
        clock.gradients_ready()
        optimizer.step()
        clock.end()

    worker.serve(step, clock, idle)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if "--compare" in sys.argv:
        compare(folder)
    else:
        serve(folder, sys.argv[2] == "bf16", "--compile" in sys.argv)


if __name__ == "__main__":
    main()

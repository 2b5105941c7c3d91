#!/usr/bin/env python3
"""Trains ResNet-20 or the ViT of examples/short_nets in PyTorch on CIFAR-10, with the same numbers, and prints its accuracy.

    peer_images.py resnet20|vit TRAIN TEST [--epochs N] [--seed 1] [--threads 2] [--bf16]

TRAIN and TEST are folders of images with a folder for each class. Needs PyTorch, NumPy and Pillow. Batches of 128, images
padded by 4 mean pixels and cut, half of them mirrored; the rate of one cycle. Weights begin with the same distribution.
"""
import argparse
import contextlib
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))
from peer.torch_sequences import Transformer  # noqa: E402

MEAN, SCALE = (125, 123, 113), 0.016  # red first
BATCH, PAD, SIZE = 128, 4, 32


def read(folder):
    """(pixels less their mean, items x 3 x 32 x 32, float; labels)"""
    files = [(file, label) for label, kind in enumerate(sorted(path for path in folder.iterdir() if path.is_dir()))
             for file in sorted(kind.iterdir())]
    pixels = np.stack([np.asarray(Image.open(file).convert("RGB")) for file, _ in files])
    values = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - torch.tensor(MEAN).view(1, 3, 1, 1)) * SCALE
    return values.contiguous(), torch.tensor([label for _, label in files])


def augmented(images, draw):
    padded = functional.pad(images, (PAD,) * 4)
    places = torch.from_numpy(draw.integers(0, 2 * PAD + 1, (2, len(images), 1)))
    rows, columns = (place + torch.arange(SIZE) for place in places)
    columns = torch.where(torch.from_numpy(draw.random((len(images), 1)) < 0.5), columns, columns.flip(1))
    items = torch.arange(len(images)).view(-1, 1, 1)
    return padded.permute(0, 2, 3, 1)[items, rows.unsqueeze(2), columns.unsqueeze(1)].permute(0, 3, 1, 2).contiguous()


class Residual(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.halves = width != channels
        self.convolutions = nn.ModuleList([nn.Conv2d(channels, width, 3, 2 if self.halves else 1, 1, bias=False),
                                           nn.Conv2d(width, width, 3, 1, 1, bias=False)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, x):
        y = functional.relu(self.norms[0](self.convolutions[0](x)))
        y = self.norms[1](self.convolutions[1](y))
        if self.halves:
            x = functional.avg_pool2d(x, 2)
            x = torch.cat([x, torch.zeros_like(x)], 1)
        return functional.relu(x + y)


def groups(net, bias):
    """All parameters; the last layer's bias has twice the rate and no decay."""
    return [{"params": [value for value in net.parameters() if value is not bias]}, {"params": [bias], "weight_decay": 0, "scale": 2}]


def resnet20():
    blocks = [Residual(channels, width) for channels, width in ((16, 16),) * 3 + ((16, 32), (32, 32), (32, 32), (32, 64), (64, 64), (64, 64))]
    net = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for weights in (module.weight for module in net.modules() if isinstance(module, (nn.Conv2d, nn.Linear))):
        nn.init.normal_(weights, std=(2 / weights[0].numel()) ** 0.5)
    nn.init.zeros_(net[-1].bias)
    return net, torch.optim.SGD(groups(net, net[-1].bias), 0.1, 0.9, weight_decay=1e-4), 0.1


class ViT(Transformer):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 128, 4, 4), 64, 6, 128, 4, False, 10)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                bound = (3 / module.weight[0].numel()) ** 0.5
                nn.init.uniform_(module.weight, -bound, bound)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.scores.weight, std=(2 / 128) ** 0.5)

    def forward(self, x):
        return self.scores(self.norm(self.blocks(self.first(x).flatten(2).transpose(1, 2) + self.positions)).mean(1))


def vit():
    net = ViT()
    return net, torch.optim.AdamW(groups(net, net.scores.bias), 1e-3, (0.9, 0.999), 1e-8, 0.05), 1e-3


RECIPES = {"resnet20": resnet20, "vit": vit}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("net", choices=RECIPES)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    draw = np.random.default_rng(options.seed)
    narrow = torch.autocast("cpu", torch.bfloat16) if options.bf16 else contextlib.nullcontext()
    images, labels = read(options.train)
    kept_images, kept_labels = read(options.test)
    net, optimizer, high = RECIPES[options.net]()
    steps = len(images) // BATCH
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, [high * group.get("scale", 1) for group in optimizer.param_groups],
                                                options.epochs * steps, cycle_momentum=False)
    begin = time.monotonic()
    for epoch in range(options.epochs):
        net.train()
        order = torch.from_numpy(draw.permutation(len(images)))
        total = 0.0
        for step in range(steps):
            chosen = order[step * BATCH:(step + 1) * BATCH]
            optimizer.zero_grad()
            with narrow:
                scores = net(augmented(images[chosen], draw))
            loss = functional.cross_entropy(scores.float(), labels[chosen])
            loss.backward()
            optimizer.step()
            rates.step()
            total += loss.item()
        net.eval()
        with torch.no_grad(), narrow:
            right = sum((net(kept_images[first:first + 500]).argmax(1) == kept_labels[first:first + 500]).sum().item()
                        for first in range(0, len(kept_images), 500))
        print(f"epoch {epoch + 1}: loss {total / steps:.4f}, accuracy {right / len(kept_images):.4f}, "
              f"{(time.monotonic() - begin) / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()

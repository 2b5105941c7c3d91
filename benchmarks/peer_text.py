#!/usr/bin/env python3
"""Trains the net of examples/text in PyTorch, with the same numbers, and prints its bits per character.

    peer_text.py FOLDER [--iterations 3000] [--seed 1] [--threads 2]      FOLDER: bible and bible_val, as examples/text/README.md makes them

Needs PyTorch and NumPy. Weights begin with the same distribution, and sequences are drawn at random, not in an order in which
each is read once per epoch; so the figures differ as those of two seeds do.
"""
import argparse
import math
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from peer.torch_sequences import Transformer  # noqa: E402

LENGTH, BATCH, RATE, RISE = 128, 32, 1e-3, 100


def make_net(kinds):
    net = Transformer(torch.nn.Embedding(kinds, 128), LENGTH, 4, 128, 4, True, kinds)
    for module in net.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            torch.nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                torch.nn.init.zeros_(module.bias)
    return net


def rate(iteration, iterations):
    """The cosine policy, with a quadratic rise."""
    cosine = RATE * 0.5 * (1 + math.cos(math.pi * iteration / iterations))
    return RATE * (iteration / RISE) ** 2 if iteration < RISE else cosine


def batch_at(text, starts):
    rows = torch.from_numpy(np.stack([text[start:start + LENGTH + 1] for start in starts]).astype(np.int64))
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def bits(net, text):
    """Bits per character over all whole sequences of the text."""
    starts = range(0, len(text) - LENGTH, LENGTH)
    total = 0.0
    for first in range(0, len(starts), BATCH):
        part = starts[first:first + BATCH]
        total += net(*batch_at(text, part)).item() * len(part)
    return total / len(starts) / math.log(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--iterations", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    draw = np.random.default_rng(options.seed)
    text, kept = (np.fromfile(options.folder / name / "tokens.bin", np.uint8) for name in ("bible", "bible_val"))
    net = make_net(int(max(text.max(), kept.max())) + 1)
    optimizer = torch.optim.AdamW(net.parameters(), RATE, (0.9, 0.99), 1e-8, 0.01)
    for iteration in range(options.iterations):
        for group in optimizer.param_groups:
            group["lr"] = rate(iteration, options.iterations)
        optimizer.zero_grad()
        loss = net(*batch_at(text, draw.integers(0, len(text) - LENGTH, BATCH)))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        if iteration % 100 == 0:
            print(f"iteration {iteration}: {loss.item() / math.log(2):.4f} bits", flush=True)
    print(f"{bits(net, kept):.4f} bits per character of the text that was kept back", flush=True)


if __name__ == "__main__":
    main()

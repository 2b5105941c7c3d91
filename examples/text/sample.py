#!/usr/bin/env python3
"""Writes text with the net of this folder.

    sample.py WEIGHTS [--start "In the beginning"] [--characters 400] [--temperature 0.8] [--seed 1]
"""
import argparse
from pathlib import Path

import numpy as np

import caffe
from caffe.text import open_tokenizer

FOLDER = Path(__file__).parent
LENGTH = 128  # that the net reads


def foretell(net, numbers):
    """The scores of the character after these."""
    known = numbers[-LENGTH:]
    net.blobs["tokens"].data[...] = 0
    net.blobs["tokens"].data[0, :len(known)] = known
    net.forward()
    return net.blobs["scores"].data[0, len(known) - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("weights")
    parser.add_argument("--start", default="In the beginning")
    parser.add_argument("--characters", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tokenizer, draw = open_tokenizer(FOLDER), np.random.default_rng(options.seed)
    net = caffe.Net(str(FOLDER / "deploy.prototxt"), caffe.TEST, weights=options.weights)
    numbers = list(tokenizer.encode(options.start))
    for _ in range(options.characters):
        chances = np.exp((scores := foretell(net, numbers).astype(float) / options.temperature) - scores.max())
        numbers.append(draw.choice(len(chances), p=chances / chances.sum()))
    print(tokenizer.decode(numbers))


if __name__ == "__main__":
    main()

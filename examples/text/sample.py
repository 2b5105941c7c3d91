#!/usr/bin/env python3
"""Writes text with the net of this folder.

    sample.py WEIGHTS [--tokenizer FOLDER] [--start "In the beginning"] [--characters 400] [--temperature 0.8] [--seed 1]
"""
import argparse
from pathlib import Path

import numpy as np

import caffe
from caffe.text import open_tokenizer

FOLDER = Path(__file__).parent
LENGTH = 128  # places that the net knows


class Reader:
    """The net that has read the first characters of a text, whose keys and values stay in it."""

    def __init__(self, weights):
        self.net = caffe.Net(str(FOLDER / "generate.prototxt"), caffe.TEST, weights=weights)
        self.known = self.place = 0  # characters of the text that it has read, and the place of the next one

    def predict(self, numbers):
        """The scores of the character after these; reads the new ones."""
        new = numbers[self.known:]
        if self.place + len(new) > LENGTH:  # it knows no more places, so it reads the last ones again, from place 0 on
            new, self.place = numbers[-LENGTH // 2:], 0
        blobs = self.net.blobs
        for name, values in (("tokens", new), ("place", range(self.place, self.place + len(new)))):
            blobs[name].reshape(1, len(new))
            blobs[name].data[...] = values
        blobs["cont"].data[...] = self.place > 0
        self.net.forward()
        self.known, self.place = len(numbers), self.place + len(new)
        return blobs["scores"].data[0, -1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("weights")
    parser.add_argument("--start", default="In the beginning")
    parser.add_argument("--tokenizer", default=FOLDER, help="folder with the text's characters.json (default: this one)")
    parser.add_argument("--characters", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.start:
        parser.error("--start is empty; give at least one character")
    tokenizer, draw = open_tokenizer(options.tokenizer), np.random.default_rng(options.seed)
    reader = Reader(options.weights)
    numbers = list(tokenizer.encode(options.start))
    for _ in range(options.characters):
        chances = np.exp((scores := reader.predict(numbers).astype(float) / options.temperature) - scores.max())
        numbers.append(draw.choice(len(chances), p=chances / chances.sum()))
    print(tokenizer.decode(numbers))


if __name__ == "__main__":
    main()

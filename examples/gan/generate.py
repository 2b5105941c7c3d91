#!/usr/bin/env python3
"""Generates digits with the net of this folder, and scores them.

    examples/gan/generate.py WEIGHTS [--sheet digits.png] [--seed 1]      from the root; needs NumPy and Pillow
    examples/gan/generate.py WEIGHTS --score                              what LeNet says about 10,000 of them
    examples/gan/generate.py --score-real                                 what it says about MNIST's test images
"""
import argparse
from pathlib import Path

import numpy as np

import caffe

FOLDER = Path(__file__).parent
MNIST = FOLDER.parent / "mnist"


def in_parts(net, top, size=500, **inputs):
    """The top for all inputs, of which the net sees `size` items at a time."""
    found = []
    for start in range(0, len(next(iter(inputs.values()))), size):
        parts = {name: values[start:start + size] for name, values in inputs.items()}
        for name, values in parts.items():
            net.blobs[name].reshape(*values.shape)
        found.append(net.forward(**parts)[top].copy())
    return np.concatenate(found)


def generate(weights, count, seed):
    """Images, count x 1 x 28 x 28, from -1 to 1."""
    net = caffe.Net(str(FOLDER / "deploy.prototxt"), caffe.TEST, weights=weights)
    noise = np.random.default_rng(seed).standard_normal((count, 64))
    return in_parts(net, "image", noise=noise)


def save_sheet(images, file, columns=16):
    """The images side by side, in rows."""
    from PIL import Image

    tiles = images.reshape(-1, columns, 28, 28).transpose(0, 2, 1, 3).reshape(-1, columns * 28)
    Image.fromarray(np.clip((tiles + 1) * 127.5, 0, 255).astype(np.uint8)).save(file)


def lenets_answers(images):
    """Probabilities of the ten classes for images from -1 to 1."""
    net = caffe.Net(str(MNIST / "lenet.prototxt"), caffe.TEST, weights=str(MNIST / "lenet.caffemodel"))
    return in_parts(net, "prob", data=(images + 1) / 2)


def real_answers():
    """Probabilities of the ten classes for MNIST's test images."""
    net = caffe.Net(str(MNIST / "lenet_train_test.prototxt"), caffe.TEST, weights=str(MNIST / "lenet.caffemodel"))
    scores = []
    for _ in range(100):
        net.forward()
        scores.append(net.blobs["ip2"].data.copy())
    powers = np.exp(np.concatenate(scores))
    return powers / powers.sum(1, keepdims=True)


def report(answers):
    """A line of figures: those of the Inception score (Salimans et al. 2016), with LeNet in place of Inception."""
    def entropy(chances):
        return -(chances * np.log(np.maximum(chances, 1e-12))).sum(-1)

    together = answers.mean(0)
    counts = np.bincount(answers.argmax(1), minlength=10)
    return (f"score {np.exp(entropy(together) - entropy(answers).mean()):.2f} of 10; {(answers.max(1) > 0.9).mean():.3f} of {len(answers)} "
            f"are one digit with a probability above 0.9; of each digit {' '.join(map(str, counts))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("weights", nargs="?")
    parser.add_argument("--sheet", metavar="FILE", help="a picture of 160 digits")
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--score-real", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.weights and not options.score_real:
        parser.error("give the generator's weights, or --score-real")
    if options.sheet:
        save_sheet(generate(options.weights, 160, options.seed), options.sheet)
    if options.score:
        print(report(lenets_answers(generate(options.weights, 10000, options.seed))))
    if options.score_real:
        print(report(real_answers()))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Paints one picture in the style of another.

    transfer.py CONTENT STYLE RESULT.png [--iterations 300] [--from-noise]      needs NumPy and Pillow

Pictures are made 128 x 128 pixels large. With --from-noise, the picture begins as noise, not as a copy of CONTENT.
"""
import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import caffe

FOLDER = Path(__file__).parent
WEIGHTS = FOLDER.parent / "recipes/cifar10/snapshots/cifar10_best.caffemodel"
MEAN, SCALE = np.array([113.9, 122.9, 125.3])[:, None, None], 0.015625  # as the net was trained: blue, green, red


def read_picture(file, shape):
    image = Image.open(file).convert("RGB").resize(shape[:1:-1], Image.LANCZOS)
    return (np.asarray(image, np.float32).transpose(2, 0, 1)[::-1] - MEAN) * SCALE


def write_picture(pixels, file):
    pixels = np.clip(pixels[0] / SCALE + MEAN, 0, 255)[::-1].transpose(1, 2, 0)
    Image.fromarray(pixels.astype(np.uint8)).save(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("content")
    parser.add_argument("style")
    parser.add_argument("result")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--from-noise", action="store_true")
    options = parser.parse_args()
    solver = caffe.get_solver(str(FOLDER / "solver.prototxt"), net=str(FOLDER / "train_val.prototxt"), max_iter=options.iterations)
    net = solver.net
    net.copy_from(str(WEIGHTS))
    picture = net.params["picture"][0]
    for name in ("content", "style"):
        net.blobs[name].data[...] = read_picture(getattr(options, name), picture.data.shape)
    picture.data[...] = net.blobs["content"].data
    if options.from_noise:
        picture.data[...] = np.random.default_rng(1).normal(0, 0.5, picture.data.shape)
    for iteration in range(options.iterations):
        solver.step(1)
        if iteration % 50 == 0 or iteration == options.iterations - 1:
            parts = ", ".join(f"{name} {float(net.blobs[name].data):.4g}" for name in ("style1", "style2", "style3", "content3"))
            print(f"{iteration}: loss {solver.loss:.4g} ({parts})", flush=True)
    write_picture(picture.data, options.result)


if __name__ == "__main__":
    main()

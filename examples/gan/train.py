#!/usr/bin/env python3
"""Trains the generator and the critic of this folder in turn.

    examples/gan/train.py [--iterations 6000]      from the root, after examples/mnist/create_mnist.sh; needs NumPy and Pillow

Writes examples/gan/snapshots/generator.caffemodel, and a sheet of digits every 1,000 iterations.
"""
import argparse
from pathlib import Path

import caffe
from generate import save_sheet

FOLDER = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--iterations", type=int, default=6000)
    options = parser.parse_args()
    critic, generator = (caffe.get_solver(str(FOLDER / "solver.prototxt"), net=str(FOLDER / f"{name}.prototxt"),
                                           max_iter=options.iterations)
                         for name in ("critic", "generator"))
    (FOLDER / "snapshots").mkdir(exist_ok=True)
    generator.net.forward()
    for iteration in range(1, options.iterations + 1):
        critic.net.blobs["fake"].data[...] = generator.net.blobs["image"].data  # those of the generator's last step
        critic.step(1)
        for name, blobs in critic.net.params.items():
            for source, target in zip(blobs, generator.net.params[name]):
                target.data[...] = source.data
        generator.step(1)
        if iteration % 100 == 0:
            print(f"{iteration}: loss of the critic {critic.loss:.3f}, of the generator {generator.loss:.3f}", flush=True)
        if iteration % 1000 == 0 or iteration == options.iterations:
            generator.net.save(str(FOLDER / "snapshots/generator.caffemodel"))
            save_sheet(generator.net.blobs["image"].data, FOLDER / f"snapshots/{iteration}.png")


if __name__ == "__main__":
    main()

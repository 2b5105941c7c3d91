#!/usr/bin/env python3
"""Writes down spoken digits with the net of this folder.

    read_digits.py WEIGHTS said.wav...      recordings of one channel and 8000 samples a second
    read_digits.py WEIGHTS --test           the share of digits_test.h5 whose every digit is right, and the rate of wrong digits
"""
import argparse
import sys
import wave

import numpy as np

import caffe
from make_digits import FOLDER, RATE, STEPS, features, inputs


def read(net, filled, cont):
    """The digits of N recordings, a list for each."""
    net.blobs["features"].reshape(*filled.shape)
    net.blobs["cont"].reshape(*cont.shape)
    said = net.forward(features=filled, cont=cont)["said"]
    return [[int(digit) for digit in row if digit >= 0] for row in said]


def edits(found, truth):
    """How many digits are inserted, left out or replaced (Levenshtein's distance)."""
    row = list(range(len(truth) + 1))
    for count, digit in enumerate(found, 1):
        before, row[0] = row[0], count
        for place, right in enumerate(truth, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (digit != right))
    return row[-1]


def recording(name):
    """The samples of a WAV file, between -1 and 1."""
    with wave.open(name) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            sys.exit(f"{name}: has {file.getnchannels()} channels of {8 * file.getsampwidth()} bits and {file.getframerate()} samples a "
                     f"second; needs 1 channel of 16 bits and {RATE}")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("weights")
    parser.add_argument("files", nargs="*", metavar="said.wav")
    parser.add_argument("--test", action="store_true")
    options = parser.parse_intermixed_args()
    net = caffe.Net(str(FOLDER / "deploy.prototxt"), caffe.TEST, weights=options.weights)
    if options.test:
        import h5py
        with h5py.File(FOLDER / "digits_test.h5") as file:
            found = read(net, file["features"][...], file["cont"][...])
            truth = [[int(digit) for digit in row if digit >= 0] for row in file["labels"]]
        wrong = [edits(*pair) for pair in zip(found, truth)]
        print(f"{np.mean(np.array(wrong) == 0):.3f} of {len(truth)} recordings are right; "
              f"{sum(wrong) / sum(map(len, truth)):.4f} of the digits are wrong")
    for name in options.files:
        steps = features(recording(name))
        if len(steps) > STEPS:
            sys.exit(f"{name}: has {len(steps)} steps; the net reads {STEPS}, {STEPS * 0.03:g} seconds")
        print("".join(map(str, read(net, *inputs([steps]))[0])))


if __name__ == "__main__":
    main()

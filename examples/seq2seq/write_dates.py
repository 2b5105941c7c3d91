#!/usr/bin/env python3
"""Writes dates as YYYY-MM-DD with the net of this folder.

    write_dates.py WEIGHTS "the 3rd of March 1984"...      the dates as they are written
    write_dates.py WEIGHTS --test                          the share of dates_test.h5 whose every character is right
"""
import argparse

import numpy as np

import caffe
from make_dates import CHARACTERS, FOLDER, LENGTH, START, WRITTEN, numbers


def write(net, source):
    """The answers to N dates (N x WRITTEN numbers), a character at a time: N x LENGTH numbers."""
    answer = np.zeros((len(source), LENGTH), int)
    before = np.full((len(source), LENGTH), START, np.float32)
    for name, data in (("source", source), ("seen", source > 0), ("before", before)):
        net.blobs[name].reshape(*data.shape)
        net.blobs[name].data[...] = data
    for place in range(LENGTH):
        net.blobs["before"].data[:, 1:] = answer[:, :-1]
        answer[:, place] = net.forward()["prob"][:, place].argmax(-1)
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("weights")
    parser.add_argument("dates", nargs="*")
    parser.add_argument("--test", action="store_true")
    options = parser.parse_intermixed_args()
    net = caffe.Net(str(FOLDER / "deploy.prototxt"), caffe.TEST, weights=options.weights)
    if options.test:
        import h5py
        with h5py.File(FOLDER / "dates_test.h5") as file:
            right = (write(net, file["source"][...]) == file["answer"][...]).all(1)
        print(f"{right.mean():.3f} of {len(right)} dates are right")
    for date in options.dates:
        answer = write(net, numbers(date.lower(), WRITTEN)[None])[0]
        print("".join(CHARACTERS[number] for number in answer))


if __name__ == "__main__":
    main()

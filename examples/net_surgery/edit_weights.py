#!/usr/bin/env python3
"""Writes filters into a convolution and runs it: a blur, and edges in both directions. Run in the repository's root.

  examples/net_surgery/edit_weights.py [NEW.caffemodel]
"""
import sys

import caffe
import numpy as np


def blur(size=5, sigma=1.0):
    """A Gaussian with sum 1."""
    line = np.exp(-(np.arange(size) - size // 2) ** 2 / (2 * sigma ** 2))
    return np.outer(line, line) / line.sum() ** 2


def edge(size=5):
    """Positive if the right side is brighter than the left."""
    return blur(size) * (np.arange(size) - size // 2)


def main():
    net = caffe.Net("examples/net_surgery/conv.prototxt", caffe.TEST)
    weights, bias = net.params["conv"]
    weights.data[:, 0] = [blur(), edge(), edge().T]
    bias.data[0] = 0.5  # a constant on top of the blurred image

    image = np.zeros((100, 100), np.float32)
    image[25:75, 25:75] = 1  # a white square
    result = net.forward(data=image[None, None])["conv"][0]
    left, right, top = result[:, 48, 23], result[:, 48, 73], result[:, 23, 48]
    for name, k in (("blur", 0), ("edge across", 1), ("edge down", 2)):
        print(f"{name:12} left {left[k]:5.2f}  right {right[k]:5.2f}  top {top[k]:5.2f}  centre {result[k, 48, 48]:5.2f}")
    if len(sys.argv) > 1:
        net.save(sys.argv[1])


if __name__ == "__main__":
    main()

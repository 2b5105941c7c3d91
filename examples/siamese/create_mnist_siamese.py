#!/usr/bin/env python3
"""Makes examples/siamese/mnist_siamese_{train,test}_lmdb: pairs of digits, labelled by whether the digits are equal.

  examples/siamese/create_mnist_siamese.py [FOLDER] [--seed 0]

FOLDER holds MNIST's four idx files, gzipped or not (data/mnist); run from the root of the repository. Each image is
paired with a random one; a record is a Datum of two channels with label 1 for equal digits, else 0. Existing databases
are kept. Needs python3-lmdb, NumPy and protobuf.
"""
import argparse
import gzip
import pathlib
import sys

import lmdb
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.proto import caffe_pb2  # noqa: E402


def read_idx(folder, name):
    """The array in an idx file: two zeros, the type (8: bytes), the number of axes, their extents, the values."""
    plain, packed = folder / name, folder / f"{name}.gz"
    content = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{folder / name} is not an idx file of bytes")
    axes = content[3]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(np.frombuffer(content, ">i4", axes, 4))


def pairs(images, labels, random):
    others = random.randint(0, len(images), len(images))
    for one, other in enumerate(others):
        pixels = np.stack([images[one], images[other]])
        yield caffe_pb2.Datum(channels=2, height=pixels.shape[1], width=pixels.shape[2], data=pixels.tobytes(),
                              label=int(labels[one] == labels[other]))


def write(path, records):
    if path.exists():
        print(f"{path} exists")
        return
    # Written under a temporary name until it is complete.
    partial = path.with_name(path.name + ".partial")
    with lmdb.open(str(partial), map_size=1 << 40) as database, database.begin(write=True) as transaction:
        for number, record in enumerate(records):
            transaction.put(b"%08d" % number, record.SerializeToString(), append=True)
    partial.rename(path)
    print(f"Made {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("data/mnist"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.RandomState(options.seed)
    for part, name in (("train", "train"), ("test", "t10k")):
        images, labels = (read_idx(options.folder, f"{name}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
        write(pathlib.Path("examples/siamese") / f"mnist_siamese_{part}_lmdb", pairs(images, labels, random))


if __name__ == "__main__":
    main()

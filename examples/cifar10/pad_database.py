#!/usr/bin/env python3
"""Gives the images of an LMDB a black border, so that cut-outs of the old size move about.

  examples/cifar10/pad_database.py FROM TO [PIXELS]

FROM holds Datums of raw pixels, as convert_imageset writes them; PIXELS is the width of the border (4).
Needs python3-lmdb, NumPy and protobuf.
"""
import pathlib
import sys

import lmdb
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.proto import caffe_pb2  # noqa: E402


def pad(datum, border):
    if datum.encoded or not datum.data:
        raise ValueError("an image is not raw pixels; make the database without --encoded")
    pixels = np.frombuffer(datum.data, np.uint8).reshape(datum.channels, datum.height, datum.width)
    pixels = np.pad(pixels, ((0, 0), (border, border), (border, border)))
    return caffe_pb2.Datum(channels=pixels.shape[0], height=pixels.shape[1], width=pixels.shape[2],
                           data=pixels.tobytes(), label=datum.label)


def main(source, target, border=4):
    if pathlib.Path(target).exists():
        print(f"{target} exists")
        return
    # Under another name until it is whole.
    partial = f"{target}.partial"
    with lmdb.open(source, readonly=True, lock=False) as old, lmdb.open(partial, map_size=1 << 40) as new:
        with old.begin() as reading, new.begin(write=True) as writing:
            for key, value in reading.cursor():
                writing.put(key, pad(caffe_pb2.Datum.FromString(value), border).SerializeToString(), append=True)
    pathlib.Path(partial).rename(target)
    print(f"Made {target}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))

#!/usr/bin/env python3
"""Makes the databases of DetectNet from KITTI's photographs and boxes.

  models/kitti_detectnet/create_databases.py KITTI [--classes Car Pedestrian] [--test 1110] [--output FOLDER]

KITTI holds image_2/*.png and label_2/*.txt, as its object detection set does. Makes kitti_{train,test}_{images,labels}_lmdb
next to this script, or in FOLDER; the last --test photographs by name are for testing. Classes are numbered from 1 in the
order given, others are left out. Needs python3-lmdb, python3-pil, NumPy and protobuf.
"""
import argparse
import io
import pathlib
import sys

import lmdb
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.proto import caffe_pb2  # noqa: E402

WIDTH, HEIGHT = 1248, 384  # pixels, of the net's input
ROW = 16  # numbers: x, y, width, height, an angle, the class, and some that nothing reads


def boxes_of(path, classes):
    """Rows of the label database from a file of KITTI's: class, three numbers, then left, top, right and bottom."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words and words[0] in classes:
            left, top, right, bottom = map(float, words[4:8])
            rows.append([left, top, right - left, bottom - top, 0, 1 + classes.index(words[0])])
    return np.array(rows, np.float32).reshape(-1, 6)


def image_datum(path):
    """The photograph as a PNG of WIDTH x HEIGHT, black to the right and below of it."""
    with Image.open(path) as photograph:
        if photograph.width > WIDTH or photograph.height > HEIGHT:
            raise ValueError(f"{path} has {photograph.width} x {photograph.height} pixels; the net has room for {WIDTH} x {HEIGHT}")
        whole = Image.new("RGB", (WIDTH, HEIGHT))
        whole.paste(photograph)
    file = io.BytesIO()
    whole.save(file, "PNG")
    return caffe_pb2.Datum(channels=3, height=HEIGHT, width=WIDTH, data=file.getvalue(), encoded=True)


def label_datum(boxes, most):
    """A header, the boxes, and empty rows up to `most` boxes, as all of a batch must have one shape."""
    values = np.zeros((1 + most, ROW), np.float32)
    values[0, :2] = len(boxes), ROW
    values[1:1 + len(boxes), :boxes.shape[1]] = boxes
    return caffe_pb2.Datum(channels=1, height=1 + most, width=ROW, float_data=values.ravel())


def write(target, records):
    # Under another name until it is whole.
    partial = f"{target}.partial"
    with lmdb.open(partial, map_size=1 << 40) as database, database.begin(write=True) as transaction:
        for name, record in records:
            transaction.put(name.encode(), record.SerializeToString(), append=True)
    pathlib.Path(partial).rename(target)
    print(f"Made {target}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kitti", type=pathlib.Path, metavar="KITTI")
    parser.add_argument("--classes", nargs="+", default=["Car", "Pedestrian"])
    parser.add_argument("--test", type=int, default=1110)
    parser.add_argument("--output", type=pathlib.Path, default=HERE)
    options = parser.parse_args()
    images = sorted((options.kitti / "image_2").glob("*.png"))
    if not 0 < options.test < len(images):
        parser.error(f"{options.kitti}/image_2 has {len(images)} photographs; --test {options.test} leaves none of one kind")
    boxes = {path.stem: boxes_of(options.kitti / "label_2" / f"{path.stem}.txt", options.classes) for path in images}
    most = max(map(len, boxes.values()))
    for part, paths in (("train", images[:-options.test]), ("test", images[-options.test:])):
        for what, records in (("images", ((path.stem, image_datum(path)) for path in paths)),
                              ("labels", ((path.stem, label_datum(boxes[path.stem], most)) for path in paths))):
            target = options.output / f"kitti_{part}_{what}_lmdb"
            if target.exists():
                print(f"{target} exists")
            else:
                write(target, records)


if __name__ == "__main__":
    main()

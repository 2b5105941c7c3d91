"""Runs the examples of docs/layers: nets that read only files made here."""
import contextlib
import os
import pathlib
import tempfile

import numpy as np

DOUBLE = """
import caffe


class Double(caffe.Layer):
    def setup(self, bottom, top): pass
    def reshape(self, bottom, top): top[0].reshape(*bottom[0].data.shape)
    def forward(self, bottom, top): top[0].data[...] = 2 * bottom[0].data
    def backward(self, top, propagate_down, bottom): bottom[0].diff[...] = 2 * top[0].diff
"""


def _database(name, records):
    import lmdb
    environment = lmdb.open(name, map_size=1 << 24)
    with environment.begin(write=True) as transaction:
        for number, record in enumerate(records):
            transaction.put(b"%08d" % number, record.SerializeToString())
    environment.close()


def files():
    """Writes the input files of the data layers' examples into the current folder."""
    import h5py
    from PIL import Image

    from caffe.proto import caffe_pb2
    from caffe.text import import_text
    pixels = np.random.default_rng(1).integers(0, 256, (4, 3, 8, 8), dtype=np.uint8)
    datums = [caffe_pb2.Datum(channels=3, height=8, width=8, data=one.tobytes(), label=number % 2) for number, one in enumerate(pixels)]
    _database("images_lmdb", datums)
    box = caffe_pb2.NormalizedBBox(xmin=0.25, ymin=0.25, xmax=0.75, ymax=0.75, label=1)
    group = caffe_pb2.AnnotationGroup(group_label=1, annotation=[caffe_pb2.Annotation(instance_id=0, bbox=box)])
    _database("boxes_lmdb", [caffe_pb2.AnnotatedDatum(datum=datum, type=caffe_pb2.AnnotatedDatum.BBOX, annotation_group=[group])
                             for datum in datums])
    for number, one in enumerate(pixels):
        Image.fromarray(one.transpose(1, 2, 0)).save(f"{number}.png")
        Image.fromarray(one[0] % 2).save(f"{number}_label.png")
    pathlib.Path("images.txt").write_text("".join(f"{number}.png {number % 2}\n" for number in range(4)), encoding="utf-8")
    pathlib.Path("pairs.txt").write_text("".join(f"{number}.png {number}_label.png\n" for number in range(4)), encoding="utf-8")
    pathlib.Path("windows.txt").write_text("".join(
        f"# {number}\n{number}.png\n3\n8\n8\n2\n1 0.9 1 1 6 6\n0 0.1 0 0 3 3\n" for number in range(4)), encoding="utf-8")
    with h5py.File("rows.h5", "w") as file:
        file["x"], file["label"] = np.float32(pixels[:, :, 0, 0]), np.arange(4, dtype=np.float32)
    pathlib.Path("files.txt").write_text("rows.h5\n", encoding="utf-8")
    pathlib.Path("play.txt").write_text("so foul and fair a day I have not seen\n" * 9, encoding="utf-8")
    import_text(["play.txt"], "play")
    pathlib.Path("double_layer.py").write_text(DOUBLE, encoding="utf-8")


@contextlib.contextmanager
def folder():
    """A temporary current folder with these files."""
    import sys
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as path:
        os.chdir(path)
        sys.path.insert(0, path)
        try:
            files()
            yield
        finally:
            sys.path.remove(path)
            os.chdir(before)


def run(layer, example):
    """Runs forward and backward in such a folder; returns (name, shape) of each blob and parameter.

    Inputs are numbers between 0 and 1 from a fixed seed. Raises ValueError if the example has no layer of the type, fails,
    or gives numbers that are not finite.
    """
    import caffe
    pathlib.Path("example.prototxt").write_text(f"force_backward: true\n{example}", encoding="utf-8")
    try:
        net = caffe.Net("example.prototxt", caffe.TRAIN)
        random = np.random.default_rng(1)
        for name in net.inputs:
            net.blobs[name].data[...] = random.random(net.blobs[name].data.shape)
        for one in net.layers:
            if one.type == "MemoryData":
                net.set_input_arrays(random.random((2, 3, 4, 4), dtype=np.float32), np.zeros(2, np.float32))
        net.forward()
        net.backward()
    except (RuntimeError, ValueError, OSError) as error:
        raise ValueError(f"the example of {layer}: {error}") from error
    if layer not in [one.type for one in net.layers]:
        raise ValueError(f"the example of {layer} has no such layer")
    for name, blob in net.blobs.items():
        if not np.isfinite(blob.data).all():
            raise ValueError(f"the example of {layer}: '{name}' is not finite")
    shapes = [(f"`{name}`", tuple(blob.data.shape)) for name, blob in net.blobs.items()]
    return shapes + [(f"parameter {index} of `{name}`", tuple(blob.data.shape))
                     for name, blobs in net.params.items() for index, blob in enumerate(blobs)]

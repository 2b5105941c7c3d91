"""The weights in the repository reach the accuracy that docs/models.md gives, on images that they have not seen."""
import gzip
import io
import os
import pathlib
import tarfile

import caffe
import numpy as np
import pytest
from caffe.calibration import calibrate

from built_package import ROOT


def data(name):
    folder = pathlib.Path(os.environ.get("CAFFE_TEST_DATA", "")) / name
    if "CAFFE_TEST_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(f"no real data: CAFFE_TEST_DATA names no folder with {name}/ in it")
    return folder


def mnist():
    """All 10,000 images of the test set, as the net takes them, and their labels."""
    images, labels = (np.frombuffer(gzip.decompress((data("mnist") / f"t10k-{name}.gz").read_bytes()), np.uint8)
                      for name in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    return images[16:].reshape(-1, 1, 28, 28) / 256, labels[8:]


def cifar(preprocess):
    """The first 2,000 images of the test set, blue first."""
    pillow = pytest.importorskip("PIL.Image")
    lines = [line.split() for line in (data("cifar10") / "test.txt").read_text().splitlines()[:2000]]
    with tarfile.open(data("cifar10") / "test.tar.gz") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    pixels = np.stack([np.asarray(pillow.open(io.BytesIO(files[name])).convert("RGB")) for name, _ in lines])
    return preprocess(pixels[..., ::-1].transpose(0, 3, 1, 2).astype(np.float32)), np.array([int(label) for _, label in lines])


def less_the_mean_image(pixels):
    blob = caffe.proto.caffe_pb2.BlobProto.FromString((ROOT / "examples/cifar10/cifar10_mean.binaryproto").read_bytes())
    return pixels - caffe.io.blobproto_to_array(blob)


def less_the_mean_colour(pixels):
    return pixels - np.array([113, 123, 125], np.float32).reshape(3, 1, 1)


NETS = [
    ("examples/mnist/lenet.prototxt", "examples/mnist/lenet.caffemodel", mnist, 0.99),
    ("examples/cifar10/cifar10_quick.prototxt", "examples/cifar10/cifar10_quick.caffemodel",
     lambda: cifar(less_the_mean_image), 0.74),
    ("examples/cifar10/cifar10_full.prototxt", "examples/cifar10/cifar10_full.caffemodel",
     lambda: cifar(less_the_mean_image), 0.774),
    ("models/cifar10_resnet20/deploy.prototxt", "models/cifar10_resnet20/cifar10_resnet20.caffemodel",
     lambda: cifar(less_the_mean_colour), 0.832),
]


@pytest.mark.parametrize("net, weights, load, accuracy", NETS)
def test_accuracy(net, weights, load, accuracy):
    images, labels = load()
    trained = caffe.Net(str(ROOT / net), caffe.TEST, weights=str(ROOT / weights))
    scores = trained.forward_all(**{trained.inputs[0]: images})[trained.outputs[0]]
    share = (scores.reshape(len(images), -1).argmax(axis=1) == labels).mean()
    tolerance = 2 * (accuracy * (1 - accuracy) / len(images)) ** 0.5
    assert abs(share - accuracy) < max(tolerance, 0.002), share


@pytest.mark.parametrize("net, weights, load, accuracy", NETS)
def test_accuracy_in_8_bits(net, weights, load, accuracy, tmp_path):
    del accuracy  # only the loss counts
    images, labels = load()
    files = {"weights": str(ROOT / weights), "calibration": str(tmp_path / "net.json")}
    exact = caffe.Net(str(ROOT / net), caffe.TEST, weights=files["weights"])
    size = exact.blobs[exact.inputs[0]].shape[0]
    count = max(200 // size, 4)
    batches = iter(np.split(images[:count * size], count))

    def feed(one):
        one.blobs[one.inputs[0]].data[...] = next(batches)

    calibrate(exact, count, feed=feed).save(files["calibration"])
    quantised = caffe.Net(str(ROOT / net), caffe.TEST, precision="int8", keep_all=False, **files)
    correct = [(one.forward_all(**{one.inputs[0]: images})[one.outputs[0]].reshape(len(images), -1).argmax(axis=1) == labels).mean()
               for one in (exact, quantised)]
    print(f"{net}: {correct[0]:.4f} in float, {correct[1]:.4f} in int8")
    assert correct[1] >= correct[0] - 0.005

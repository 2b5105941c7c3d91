"""The weights in the repository reach the accuracy given in docs/models.md, on images that were not used for training."""
import gzip
import io
import os
import pathlib
import tarfile

import caffe
import numpy as np
import pytest
from caffe.calibration import calibrate
from google.protobuf import text_format

from built_package import ROOT


def data(name):
    folder = pathlib.Path(os.environ.get("CAFFE_TEST_DATA", "")) / name
    if "CAFFE_TEST_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(f"no real data: CAFFE_TEST_DATA names no folder with {name}/ in it")
    return folder


def mnist(part="t10k"):
    """All 10,000 images of the test set, or the 60,000 of part "train", in the net's input format, and their labels."""
    images, labels = (np.frombuffer(gzip.decompress((data("mnist") / f"{part}-{name}.gz").read_bytes()), np.uint8)
                      for name in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    return images[16:].reshape(-1, 1, 28, 28) / 256, labels[8:]


def cifar(preprocess, part="test", count=2000):
    """The first images of the test set, or of part "train", with blue as the first channel."""
    pillow = pytest.importorskip("PIL.Image")
    lines = [line.split() for line in (data("cifar10") / f"{part}.txt").read_text().splitlines()[:count]]
    with tarfile.open(data("cifar10") / f"{part}.tar.gz") as archive:
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
     lambda: cifar(less_the_mean_colour), 0.880),
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
    del accuracy  # only the lost accuracy counts
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


# Train nets, their weights, training images, test images; iterations, batch and learning rate of training for 8 bits.
TRAINED_ON = [
    ("examples/mnist/lenet_train_test.prototxt", "examples/mnist/lenet.caffemodel", lambda: mnist("train"), mnist, 400, 64, 1e-3),
    ("examples/cifar10/cifar10_full_train_test.prototxt", "examples/cifar10/cifar10_full.caffemodel",
     lambda: cifar(less_the_mean_image, "train", 30000), lambda: cifar(less_the_mean_image, count=10000), 300, 100, 1e-5),
    ("models/cifar10_resnet20/train_val.prototxt", "models/cifar10_resnet20/cifar10_resnet20.caffemodel",
     lambda: cifar(less_the_mean_colour, "train", 38400), lambda: cifar(less_the_mean_colour, count=10000), 300, 128, 1e-6),
]


def with_inputs(file, batch, shape, folder):
    """The net with inputs instead of its data layers."""
    net = text_format.Parse((ROOT / file).read_text(), caffe.proto.caffe_pb2.NetParameter())
    kept = [layer for layer in net.layer if layer.type != "Data"]
    del net.layer[:]
    for blob, dims in (("data", (batch, *shape)), ("label", (batch,))):
        net.layer.add(name=blob, type="Input", top=[blob]).input_param.shape.add(dim=dims)
    net.layer.extend(kept)
    path = folder / f"batch{batch}.prototxt"
    path.write_text(text_format.MessageToString(net))
    return path


def accuracy(net, images, labels, batch):
    shares = []
    for first in range(0, len(images), batch):
        net.blobs["data"].data[...], net.blobs["label"].data[...] = images[first:first + batch], labels[first:first + batch]
        shares.append(net.forward()["accuracy"].item())
    return float(np.mean(shares))


def train_for_8_bits(net_file, weights, ranges, images, labels, iterations, batch, rate):
    """The weights after this many iterations on the images; every second colour image of a batch is mirrored."""
    solver_file = net_file.with_suffix(".solver")
    solver_file.write_text(f'net: "{net_file}" base_lr: {rate} lr_policy: "poly" power: 1 max_iter: {iterations} momentum: 0.9 '
                           'weight_decay: 0.0001 random_seed: 1 snapshot: 0 snapshot_after_train: false')
    solver = caffe.get_solver(str(solver_file), keep_all=False, precision="fake_int8", calibration=str(ranges))
    solver.net.copy_from(weights)
    order = np.random.default_rng(1)
    for _ in range(iterations):
        chosen = order.integers(len(images), size=batch)
        pixels = images[chosen].copy()
        if pixels.shape[1] == 3:
            pixels[::2] = pixels[::2, ..., ::-1]
        solver.net.blobs["data"].data[...], solver.net.blobs["label"].data[...] = pixels, labels[chosen]
        solver.step(1)
    trained = net_file.with_suffix(".caffemodel")
    solver.net.save(str(trained))
    return str(trained)


@pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ, reason="slow: runs with CAFFE_SLOW_TESTS=1")
@pytest.mark.parametrize("net, weights, load_training, load, iterations, batch, rate", TRAINED_ON)
def test_training_for_8_bits(net, weights, load_training, load, iterations, batch, rate, tmp_path):
    training, training_labels = load_training()
    images, labels = load()
    weights, ranges = str(ROOT / weights), tmp_path / "net.json"
    test_net = str(with_inputs(net, 100, images.shape[1:], tmp_path))
    exact = caffe.Net(test_net, caffe.TEST, weights=weights)
    batches = iter(np.split(training[:1000], 10))

    def feed(one):
        one.blobs["data"].data[...] = next(batches)

    calibrate(exact, 10, feed=feed).save(ranges)
    train_net = with_inputs(net, batch, images.shape[1:], tmp_path)
    trained = train_for_8_bits(train_net, weights, ranges, training, training_labels, iterations, batch, rate)
    shares = {}
    for name, file, precision in (("float", weights, "fp32"), ("int8", weights, "int8"), ("trained, fake", trained, "fake_int8"),
                                  ("trained, int8", trained, "int8")):
        options = {} if precision == "fp32" else {"calibration": ranges}
        one = caffe.Net(test_net, caffe.TEST, weights=file, precision=precision, keep_all=False, **options)
        shares[name] = accuracy(one, images, labels, 100)
    print(f"{net}: {iterations} iterations of {batch}, {len(images)} test images: " +
          ", ".join(f"{name} {share:.4f}" for name, share in shares.items()))
    assert shares["trained, int8"] >= shares["float"] - 0.002
    assert abs(shares["trained, int8"] - shares["trained, fake"]) < 0.002

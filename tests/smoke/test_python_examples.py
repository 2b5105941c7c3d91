"""The examples that import caffe."""
import importlib.util
import re

import caffe
import numpy as np
import pytest
from google.protobuf import text_format

from caffe.proto import caffe_pb2
from programs import PACKAGE, ROOT

if not list((PACKAGE / "caffe").glob("_caffe*.so")):
    pytest.skip(f"package caffe is not built in {PACKAGE}", allow_module_level=True)


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_linear_regression(workplace):
    line = re.search(r"^y = .*", workplace.run_python("examples/python_layer/train.py"), re.MULTILINE).group()
    assert [float(text) for text in re.findall(r"(-?\d\.\d+)", line)] == pytest.approx([2, -1, 0.5, 3], abs=0.05)


LOSSES = """
force_backward: true
layer { name: 'i' type: 'Input' top: 'a' top: 'b' input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 3 } } }
layer { name: 'loss' type: '%s' bottom: 'a' bottom: 'b' top: 'loss' loss_weight: 0.5 %s }
"""


def test_the_loss_is_that_of_euclidean_loss(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples/python_layer"))
    random, found = np.random.default_rng(1), []
    a, b = random.standard_normal((2, 4, 3))
    for words in (("EuclideanLoss", ""), ("Python", "python_param { module: 'pyloss' layer: 'EuclideanLossLayer' }")):
        net = caffe.Net(text_format.Parse(LOSSES % words, caffe_pb2.NetParameter()), caffe.TRAIN)
        loss = float(net.forward(a=a, b=b)["loss"])
        found.append([loss, *net.backward()["a"].flat, *net.blobs["b"].diff.flat])
    assert found[0] == pytest.approx(found[1], rel=1e-5) and any(found[0][1:])
    wrong = LOSSES.replace("dim: 4 dim: 3", "dim: 4 dim: 2", 1) % ("Python", "python_param { module: 'pyloss' layer: 'EuclideanLossLayer' }")
    with pytest.raises(ValueError, match="must be equal"):
        caffe.Net(text_format.Parse(wrong, caffe_pb2.NetParameter()), caffe.TRAIN)


def test_filters_find_edges(workplace):
    lines = workplace.run_python("examples/net_surgery/edit_weights.py", "new.caffemodel").splitlines()
    found = {line[:12].strip(): dict(re.findall(r"(\w+) +(-?[\d.]+)(?:  |$)", line[12:])) for line in lines}
    assert float(found["blur"]["centre"]) == pytest.approx(1.5)
    across, down = found["edge across"], found["edge down"]
    assert float(across["left"]) > 0.3 > -0.3 > float(across["right"]) and float(across["top"]) == 0
    assert float(down["top"]) > 0.3 and float(down["left"]) == 0
    assert (workplace.root / "new.caffemodel").stat().st_size > 75 * 4


def test_lenet_at_every_place(workplace):
    folder = workplace.root
    old = caffe.Net(str(folder / "examples/mnist/lenet.prototxt"), caffe.TEST)
    old.save(str(folder / "old.caffemodel"))
    text = workplace.run_python("examples/net_surgery/fully_convolutional.py", "examples/mnist/lenet.prototxt",
                                "old.caffemodel", "new.prototxt", "new.caffemodel", "--input_size=56,56")
    assert "prob: 64x10 is now 1x10x8x8" in text
    new = caffe.Net(str(folder / "new.prototxt"), caffe.TEST, weights=str(folder / "new.caffemodel"))
    image = np.random.default_rng(1).random((1, 1, 56, 56), np.float32)
    everywhere = new.forward(data=image)["prob"][0]
    # Each step in the answer is four pixels: two poolings.
    places = [(0, 0), (3, 5), (7, 7)]
    old.blobs["data"].reshape(len(places), 1, 28, 28)
    windows = np.stack([image[0, :, 4 * y:4 * y + 28, 4 * x:4 * x + 28] for y, x in places])
    assert old.forward(data=windows)["prob"] == pytest.approx(
        np.stack([everywhere[:, y, x] for y, x in places]), rel=1e-4)


def test_what_surgery_refuses():
    surgery = module(ROOT / "examples/net_surgery/fully_convolutional.py")
    text = """layer { name: 'i' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 4 dim: 5 } } }
              layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 2 %s } }"""
    net = caffe.Net(text_format.Parse(text % "", caffe_pb2.NetParameter()), caffe.TEST)
    options = surgery.convolutional(net).layer[1].convolution_param
    assert (options.kernel_h, options.kernel_w, options.num_output) == (4, 5, 2)
    net = caffe.Net(text_format.Parse(text % "axis: 2", caffe_pb2.NetParameter()), caffe.TEST)
    with pytest.raises(ValueError, match="layer ip"):
        surgery.convolutional(net)

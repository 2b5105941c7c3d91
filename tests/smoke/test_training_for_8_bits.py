"""caffe train -precision fake_int8: from the command line to a net in 8 bits."""
import re
import subprocess

import pytest
from programs import BINARIES

import caffe
from caffe.calibration import calibrate

NET = """name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 32 dim: 3 dim: 9 dim: 8 } data_filler { type: "gaussian" std: 1 }
  shape { dim: 32 } data_filler { type: "constant" value: 3 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param {
  num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "ip" type: "InnerProduct" bottom: "conv1" top: "ip" inner_product_param {
  num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
"""


@pytest.fixture
def files(tmp_path):
    """(folder, weights, calibration)."""
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(
        'net: "net.prototxt" base_lr: 0.05 lr_policy: "fixed" max_iter: 20 display: 10 random_seed: 3 test_iter: 2 '
        'test_interval: 20 snapshot_prefix: "small"')
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST)
    net.save(str(tmp_path / "start.caffemodel"))
    calibrate(net, 2, method="min-max").save(str(tmp_path / "net.json"))
    return tmp_path


def run(folder, *arguments):
    done = subprocess.run([BINARIES / "caffe", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_from_the_command_line_to_8_bits(files):
    status, log = run(files, "train", "solver.prototxt", "--weights=start.caffemodel", "--precision=fake_int8",
                      "--calibration=net.json")
    assert status == 0, log
    losses = [float(loss) for loss in re.findall(r"loss = ([\d.e-]+)", log)]
    assert losses[-1] < losses[0] / 2
    for precision in ("fake_int8", "int8"):
        status, log = run(files, "test", "net.prototxt", "--weights=small_iter_20.caffemodel", f"--precision={precision}",
                          "--calibration=net.json", "--iterations=2")
        assert status == 0 and "accuracy = 1" in log, log


def test_the_calibration_is_asked_for(files):
    status, log = run(files, "train", "solver.prototxt", "--precision=fake_int8")
    assert status == 1
    assert "has precision FAKE_INT8, which needs the ranges of the net's blobs" in log


def test_resumed_training_goes_on_alike(files):
    common = ("train", "solver.prototxt", "--precision=fake_int8", "--calibration=net.json")
    assert run(files, *common, "--set=snapshot=10")[0] == 0
    whole = (files / "small_iter_20.caffemodel").read_bytes()
    (files / "small_iter_20.caffemodel").unlink()
    assert run(files, *common, "--snapshot=small_iter_10.solverstate")[0] == 0
    assert (files / "small_iter_20.caffemodel").read_bytes() == whole

"""Nets for inference give the exact floats of their weights, although they hold them in 16 bits."""
import os
import shutil
import subprocess
import sys

import caffe
import numpy as np
import pytest
from caffe.calibration import calibrate

NET = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 8 dim: 9 dim: 9 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "y"
  inner_product_param { num_output: 100 weight_filler { type: "gaussian" std: 0.1 } } }"""
CONV, PRODUCT, BIASES = 16 * 8 * 9, 100 * 16 * 49, 116


@pytest.fixture
def files(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    for seed in (1, 2):
        caffe.set_random_seed(seed)
        caffe.Net(tmp_path / "net.prototxt", caffe.TEST).save(tmp_path / f"{seed}.caffemodel")
    return tmp_path


def made(files, precision="bf16", weights="1.caffemodel", keep_all=False):
    net = caffe.Net(files / "net.prototxt", caffe.TEST, weights=files / weights, precision=precision, keep_all=keep_all)
    net.blobs["x"].data[...] = np.linspace(-1, 1, net.blobs["x"].data.size).reshape(net.blobs["x"].shape)
    return net


def in_file(files, name, weights="1.caffemodel"):
    """The numbers of a layer in the file."""
    net = caffe.proto.caffe_pb2.NetParameter.FromString((files / weights).read_bytes())
    return np.array(next(layer for layer in net.layer if layer.name == name).blobs[0].data, np.float32)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("keep_all", [False, True])
def test_readers_get_the_numbers_of_the_file(files, precision, keep_all):
    net = made(files, precision, keep_all=keep_all)
    before = net.forward()["y"].copy()
    for name in ("conv", "ip"):
        np.testing.assert_array_equal(net.params[name][0].data.ravel(), in_file(files, name))
    np.testing.assert_array_equal(net.forward()["y"], before)


def test_bytes(files):
    net = made(files)
    net.forward()
    assert net.weight_bytes < 2 * PRODUCT + 8 * CONV + 4 * BIASES
    kept = net.params["ip"][0].data
    assert net.weight_bytes > 6 * PRODUCT
    del net
    np.testing.assert_array_equal(kept.ravel(), in_file(files, "ip"))


def test_kept_weights_need_no_file(files):
    shutil.copy(files / "1.caffemodel", files / "gone.caffemodel")
    net = caffe.Net(files / "net.prototxt", caffe.TEST, weights=files / "gone.caffemodel", precision="bf16", keep_all=False,
                    keep_weights=True)
    net.forward()
    assert net.weight_bytes > 6 * PRODUCT
    (files / "gone.caffemodel").write_bytes(b"overwritten")
    np.testing.assert_array_equal(net.params["ip"][0].data.ravel(), in_file(files, "ip"))


def test_writes_reach_the_next_run(files):
    net = made(files)
    before = net.forward()["y"].copy()
    net.params["ip"][0].data[3] *= 2
    after = net.forward()["y"]
    assert (after != before).sum() == 1 and after[0, 3] != before[0, 3]


def test_weights_may_be_copied_again_and_saved(files):
    net = made(files)
    net.forward()
    net.copy_from(files / "2.caffemodel")
    np.testing.assert_array_equal(net.forward()["y"], made(files, weights="2.caffemodel").forward()["y"])
    net.save(files / "3.caffemodel")
    np.testing.assert_array_equal(in_file(files, "ip", "3.caffemodel"), in_file(files, "ip", "2.caffemodel"))


def test_a_deleted_file_is_read_and_an_overwritten_one_is_an_error(files):
    net, other = made(files), made(files, weights="2.caffemodel")
    expected = in_file(files, "ip")
    results = net.forward()["y"].copy(), other.forward()["y"].copy()
    (files / "1.caffemodel").unlink()
    np.testing.assert_array_equal(net.params["ip"][0].data.ravel(), expected)
    (files / "more.caffemodel").write_bytes((files / "2.caffemodel").read_bytes() + b"\x0a\x01x")
    shutil.copyfile(files / "more.caffemodel", files / "2.caffemodel")
    np.testing.assert_array_equal(other.forward()["y"], results[1])
    with pytest.raises(caffe.IoError, match="2.caffemodel: was changed while a net reads its weights from it"):
        other.params["ip"][0].data


IP = """layer {{ name: "{0}" type: "InnerProduct" bottom: "{1}" top: "{0}" param {{ name: "{2}" }}
  inner_product_param {{ num_output: 512 bias_term: false weight_filler {{ type: "gaussian" std: 0.1 }} }} }}"""
INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 512 } } }'
EMBED = """layer { name: "e" type: "Embed" bottom: "i" top: "e" param { name: "w" }
  embed_param { num_output: 512 input_dim: 512 bias_term: false } }"""


def bytes_after_a_run(folder, text):
    (folder / "net.prototxt").write_text(text)
    caffe.Net(folder / "net.prototxt", caffe.TEST).save(folder / "net.caffemodel")
    net = caffe.Net(folder / "net.prototxt", caffe.TEST, weights=folder / "net.caffemodel", keep_all=False)
    net.forward()
    return net.weight_bytes


def test_weights_that_two_layers_read_exist_once(tmp_path):
    assert bytes_after_a_run(tmp_path, INPUT + IP.format("a", "x", "w") + IP.format("b", "a", "w")) == 4 * 512 * 512


def test_weights_that_are_read_in_two_ways_exist_once(tmp_path):
    index = 'layer { name: "i" type: "Input" top: "i" input_param { shape { dim: 4 } } }'
    assert bytes_after_a_run(tmp_path, INPUT + index + IP.format("a", "x", "w") + EMBED) == 4 * 512 * 512


def test_a_solver_s_test_net_reads_the_weights_in_place(tmp_path):
    loss = 'layer { name: "loss" type: "EuclideanLoss" bottom: "a" bottom: "x" top: "loss" }'
    data = INPUT.replace("Input", "DummyData").replace("input_param", "dummy_data_param")
    (tmp_path / "net.prototxt").write_text(data + IP.format("a", "x", "w") + loss)
    (tmp_path / "solver.prototxt").write_text(
        f'net: "{tmp_path}/net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 2 test_iter: 1 test_interval: 1')
    solver = caffe.get_solver(str(tmp_path / "solver.prototxt"), keep_all=False)
    solver.step(2)
    assert solver.test_nets[0].weight_bytes == 4 * 512 * 512


LARGE = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4096 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 4096 weight_filler { type: "gaussian" std: 0.1 } } }"""
PEAK = """
import os, sys, caffe, numpy as np
os.chdir(sys.argv[2])
def kib(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field + ":"))
caffe.init_log(2)
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
idle = kib("VmRSS")
net = caffe.Net("net.prototxt", caffe.TEST, weights="net.caffemodel", keep_all=False, precision=sys.argv[1],
                calibration="ranges.json" if sys.argv[1] == "int8" else None)
net.blobs["x"].data[...] = np.linspace(-1, 1, 4096)
net.forward()
print(kib("VmHWM") - idle)
"""


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_weights_of_a_product_are_never_in_memory_as_floats(tmp_path, precision):
    """64 MiB of floats become 32 or 16."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this kernel does not reset the peak of memory")
    (tmp_path / "net.prototxt").write_text(LARGE)
    net = caffe.Net(tmp_path / "net.prototxt", caffe.TEST)
    net.save(tmp_path / "net.caffemodel")

    def feed(net):
        net.blobs["x"].data[...] = np.linspace(-1, 1, 4096)

    calibrate(net, feed=feed, iterations=32).save(tmp_path / "ranges.json")
    command = [sys.executable, "-c", PEAK, precision, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": f"{caffe.__path__[0]}/.."}
    peak = int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert peak < 54 << 10

"""`caffe export` and `caffe import`, which start Python."""
import os
import pathlib
import subprocess
import sys

import caffe
import nets

BINARY_DIR = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", nets.ROOT / "build" / "cpu-release"))
NET = """name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }"""


def _caffe(folder, *arguments, python=sys.executable):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([BINARY_DIR / "bin" / "caffe", *arguments], cwd=folder, capture_output=True, text=True,
                          env={**environment, "PYTHON": python})


def test_there_and_back(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    done = _caffe(tmp_path, "export", "--onnx", "net.prototxt", "--output", "net.onnx", "--opset", "17", "--check", "yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "wrote net.onnx: 1 nodes, opset 17"
    done = _caffe(tmp_path, "import", "--onnx", "net.onnx", "--output", "again.prototxt")
    assert done.returncode == 0, done.stderr
    net = caffe.Net(str(tmp_path / "again.prototxt"), caffe.TEST, weights=str(tmp_path / "again.caffemodel"))
    assert [layer.type for layer in net.layers] == ["Input", "Convolution"]


def test_a_chip(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET.replace("num_output: 4", "num_output: 4 stride: 64 pad: 60"))
    arguments = ("export", "--onnx", "net.prototxt", "--output", "net.onnx", "--profile", "ascend310", "--batch", "1")
    done = _caffe(tmp_path, *arguments)
    assert done.returncode == 1
    assert "ascend310 does not take layer 'conv' (Convolution): Conv: strides [64, 64], and the chip takes 63" in done.stderr
    done = _caffe(tmp_path, *arguments, "--allow-unsupported")
    assert done.returncode == 0 and done.stderr.startswith("warning: layer 'conv' (Convolution)")
    assert done.stdout.splitlines()[0] == "input  data 1x3x8x8"
    done = _caffe(tmp_path, "export", "--profiles")
    assert done.returncode == 0 and "rknn2: Rockchip" in done.stdout
    done = _caffe(tmp_path, "export", "net.prototxt")
    assert done.returncode == 1 and "--output is missing; give the file to write" in done.stderr


def test_what_python_says_is_passed_on(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx", "--opset", "3")
    assert done.returncode == 1 and "opset is 3; it must be from 11 to" in done.stderr
    assert not (tmp_path / "net.onnx").exists()


def test_an_interpreter_that_is_not_there(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx", python="no_such_python")
    assert done.returncode == 1
    assert "cannot start no_such_python: No such file or directory" in done.stderr
    assert "name an interpreter of Python 3 in the environment variable PYTHON" in done.stderr

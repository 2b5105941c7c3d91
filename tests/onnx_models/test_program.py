"""`caffe export` and `caffe import`, which start Python."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import caffe
import nets

BINARY_DIR = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", nets.ROOT / "build" / "cpu-release"))
NET = """name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }"""


def _caffe(folder, *arguments, python=sys.executable, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([BINARY_DIR / "bin" / "caffe", *arguments], cwd=folder, capture_output=True, text=True,
                          env={**environment, "PYTHON": python, **variables})


def test_there_and_back(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    done = _caffe(tmp_path, "export", "--onnx", "net.prototxt", "--output", "net.onnx", "--opset", "17", "--check", "yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "wrote net.onnx: 1 node, opset 17"
    done = _caffe(tmp_path, "import", "--onnx", "net.onnx", "--output", "again.prototxt")
    assert done.returncode == 0, done.stderr
    net = caffe.Net(str(tmp_path / "again.prototxt"), caffe.TEST, weights=str(tmp_path / "again.caffemodel"))
    assert [layer.type for layer in net.layers] == ["Input", "Convolution"]


@pytest.mark.parametrize("command", [("export", "net.prototxt", "--output", "net.prototxt"), ("import", "net.onnx", "--output", "net.onnx"),
                                     ("import", "net.caffemodel", "--output", "net.prototxt")])
def test_what_is_read_is_not_written_over(tmp_path, command):
    (tmp_path / "net.prototxt").write_text(NET)
    assert _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx").returncode == 0
    (tmp_path / "net.caffemodel").write_bytes((tmp_path / "net.onnx").read_bytes())
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    done = _caffe(tmp_path, *command)
    assert done.returncode == 1 and "which is read; give another --output" in done.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("command, written", [
    (("export", "net.prototxt", "--check=no"), "out.onnx"), (("export", "net.prototxt", "--profile=sophgo_caffe"), "out.prototxt"),
    (("export", "net.prototxt", "--profile=sophgo_caffe"), "out.caffemodel"), (("import", "net.onnx"), "out.prototxt"),
    (("import", "net.onnx"), "out.caffemodel"), (("calibrate", "train_val.prototxt", "--weights=net.caffemodel", "--iterations=1"), "out.json")])
def test_only_own_files_are_written_over(tmp_path, command, written):
    """Of other content of the user's with the name of the output, nothing is lost."""
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "train_val.prototxt").write_text(DATA + NET[NET.index("\n", NET.index("Input")):])
    caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST).save(str(tmp_path / "net.caffemodel"))
    assert _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx").returncode == 0
    output = "--output=out.prototxt" if written.endswith(".caffemodel") else f"--output={written}"
    (tmp_path / written).write_text("<html>mine</html>")
    done = _caffe(tmp_path, *command, output)
    assert done.returncode == 1 and f"{written}: already exists, and caffe {command[0]} has not written it" in done.stderr, done.stderr
    assert (tmp_path / written).read_text() == "<html>mine</html>"
    (tmp_path / written).unlink()
    for _ in range(2):
        done = _caffe(tmp_path, *command, output)
        assert done.returncode == 0, done.stderr


OLD_NET = """name: "old" input: "data" input_dim: 32 input_dim: 3 input_dim: 8 input_dim: 8
layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }"""
DATA = 'layer { name: "images" type: "DummyData" top: "data" dummy_data_param { shape { dim: 32 dim: 3 dim: 8 dim: 8 } } }'


def test_the_log_is_that_of_other_commands(tmp_path):
    """glog itself warns about lines before its start. The lines here are about old files."""
    (tmp_path / "net.prototxt").write_text(OLD_NET)
    (tmp_path / "train_val.prototxt").write_text(DATA + OLD_NET[OLD_NET.index("layers"):].replace("layers", "layer")
                                                 .replace("CONVOLUTION", '"Convolution"'))
    caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST).save(str(tmp_path / "net.caffemodel"))
    export = ("export", "net.prototxt", "--output", "net.onnx")
    calibrate = ("calibrate", "train_val.prototxt", "--weights", "net.caffemodel", "--iterations", "1", "--output", "net.json")
    for command, line in ((export, "Upgraded net.prototxt"), (calibrate, "Ignoring source layer")):
        shown = _caffe(tmp_path, *command, GLOG_minloglevel="0")
        assert shown.returncode == 0 and "InitGoogleLogging" not in shown.stderr, shown.stderr
        hidden = _caffe(tmp_path, *command, GLOG_minloglevel="1")
        assert hidden.returncode == 0 and line not in hidden.stderr
        assert line in shown.stderr, shown.stderr


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


@pytest.mark.parametrize("module, package", [("numpy", "install (numpy|python3-numpy)"), ("onnx", "pip install (numpy protobuf )?onnx onnxruntime")])
def test_a_missing_package_is_a_line(tmp_path, module, package):
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / f"{module}.py").write_text("raise ImportError")
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx", PYTHONPATH=str(tmp_path / "path"))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("caffe export: ") and re.search(package, done.stderr)


def test_modules_of_the_working_folder_are_not_run(tmp_path):
    """A model's folder may be untrusted."""
    (tmp_path / "net.prototxt").write_text(NET)
    for module in ("numpy", "onnx", "json", "caffe"):
        (tmp_path / f"{module}.py").write_text("open('taken', 'w')")
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx")
    assert done.returncode == 0, done.stderr
    done = _caffe(tmp_path, "import", "net.onnx", "--output", "again.prototxt")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "taken").exists()


@pytest.mark.parametrize("arguments", [
    ("export", "net.prototxt", "--output", "net.onnx", "--tolerance", "x"), ("export", "net.prototxt", "--output", "net.onnx", "--opset", "x"),
    ("import", "net.onnx", "--output", "net.prototxt", "--tolerance", "x"),
    ("calibrate", "net.prototxt", "--weights", "w", "--output", "o", "--percentile", "x"),
    ("calibrate", "net.prototxt", "--weights", "w", "--output", "o", "--iterations", "0"),
])
def test_what_is_no_number_is_refused_before_python_starts(tmp_path, arguments):
    done = _caffe(tmp_path, *arguments, python="no_such_python")
    assert done.returncode == 1 and f"caffe {arguments[0]}: " in done.stderr and arguments[-2].strip("-") in done.stderr


@pytest.mark.parametrize("tolerance", ["nan", "-1"])
def test_tolerances_are_numbers(tmp_path, tolerance):
    (tmp_path / "net.prototxt").write_text(NET)
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx", "--tolerance", tolerance)
    assert done.returncode == 1 and "it must be a number from 0 up" in done.stderr


@pytest.mark.parametrize("write, text", [
    (lambda file: np.save(file, np.zeros((2, 3, 8, 8))), "is not a file of arrays by input; write it with numpy.savez"),
    (lambda file: file.write(b"PK\3\4broken"), "is not a file of arrays by input"),
    (lambda file: file.write(b"text"), "is not a file of arrays by input"),
    (lambda file: file.write(b""), "is not a file of arrays by input"),
    (lambda file: np.savez(file, data=np.array([{}], object)), "is not a file of arrays by input"),
    (lambda file: np.savez(file, data=np.zeros((1, 3, 8, 8))), "input 'data' has shape (1, 3, 8, 8); it must be (2, 3, 8, 8)"),
    (lambda file: np.savez(file, data=np.array(["a"])), "the array for input 'data' is not of numbers"),
    (lambda file: os.remove(file.name), "inputs.npz: No such file or directory"),
])
def test_inputs_that_are_none(tmp_path, write, text):
    (tmp_path / "net.prototxt").write_text(NET)
    with open(tmp_path / "inputs.npz", "wb") as file:
        write(file)
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx", "--inputs", "inputs.npz")
    assert done.returncode == 1 and "Traceback" not in done.stderr and text in done.stderr, done.stderr


def test_files_get_an_extension(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "net")
    assert done.returncode == 0 and "wrote net.onnx: " in done.stdout, done.stderr
    done = _caffe(tmp_path, "export", "net.prototxt", "--output", "chip", "--profile", "sophgo_caffe")
    assert done.returncode == 0 and "wrote chip.prototxt and chip.caffemodel" in done.stdout, done.stderr
    done = _caffe(tmp_path, "import", "net.onnx", "--output", "again")
    assert done.returncode == 0 and "wrote again.prototxt and again.caffemodel" in done.stdout, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"net.prototxt", "net.onnx", "chip.prototxt", "chip.caffemodel",
                                                          "again.prototxt", "again.caffemodel"}


@pytest.mark.parametrize("arguments", [("export", "net.prototxt", "--profile", "sophgo_caffe"), ("import", "net.onnx")])
def test_the_net_does_not_overwrite_its_weights(tmp_path, arguments):
    (tmp_path / "net.prototxt").write_text(NET)
    assert _caffe(tmp_path, "export", "net.prototxt", "--output", "net.onnx").returncode == 0
    done = _caffe(tmp_path, *arguments, "--output", "out.caffemodel")
    assert done.returncode == 1 and "out.caffemodel would be the weights next to the net" in done.stderr
    assert not (tmp_path / "out.caffemodel").exists()


@pytest.mark.parametrize("command", ["export", "import", "calibrate"])
def test_a_place_where_nothing_can_be_written_is_told_first(tmp_path, command):
    arguments = [command, "absent", *(["--weights", "absent"] if command == "calibrate" else [])]
    done = _caffe(tmp_path, *arguments, "--output", "absent/net.out")
    assert done.returncode == 1 and f"caffe {command}: absent/net.out: there is no folder absent; make it first" in done.stderr
    (tmp_path / "folder").mkdir()
    done = _caffe(tmp_path, *arguments, "--output", "folder")
    assert done.returncode == 1 and f"caffe {command}: folder: is a folder; name a file in it" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_net_that_gives_no_number_is_not_called_equal(tmp_path):
    """BatchNorm without its statistics divides by 0."""
    (tmp_path / "net.prototxt").write_text(NET + """
layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "norm" batch_norm_param { eps: 0 } }""")
    arguments = ("export", "net.prototxt", "--output", "net.onnx")
    done = _caffe(tmp_path, *arguments)
    assert done.returncode == 0 and "output norm 2x4x6x6, not compared: the net gives no number but NaN" in done.stdout
    done = _caffe(tmp_path, *arguments, "--check", "yes")
    assert done.returncode == 1 and "output 'norm' of the net is nothing but NaN" in done.stderr


@pytest.mark.parametrize("content", [b"", b"no model", bytes(range(200))])
def test_a_file_that_is_no_model_is_named(tmp_path, content):
    (tmp_path / "net.onnx").write_bytes(content)
    done = _caffe(tmp_path, "import", "net.onnx", "--output", "net")
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "net.onnx" in line] == [done.stderr.strip()], done.stderr


def test_a_preprocessing_that_there_is_not(tmp_path):
    done = _caffe(tmp_path, "import", "net.onnx", "--output", "net", "--preprocessing=nope")
    assert done.returncode == 1 and "--preprocessing: nope not in {torchvision,0..1,-1..1}" in done.stderr
    assert "usage" not in done.stderr

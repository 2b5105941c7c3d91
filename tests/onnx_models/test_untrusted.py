"""Untrusted models: only their own folder is read, and they cannot end, halt or fill the program."""
import os
import subprocess
import sys

import caffe
import caffe.onnx
import nets
import numpy as np
import pytest
from caffe.onnx import sandbox
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


def _model(location=None, **keys):
    """A model that multiplies x (2, 3) by weights, which may be in another file."""
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    if location is not None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **keys}.items():
            tensor.external_data.add(key=key, value=str(value))
    return _graph([helper.make_node("MatMul", ["x", "w"], ["y"], "product")], [tensor])


def _graph(nodes, weights):
    describe = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [describe("x", TensorProto.FLOAT, [2, 3])],
                              [describe("y", TensorProto.FLOAT, [None, None])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture(name="folder")
def make_folder(tmp_path):
    """models/ with weights.bin; a secret outside it, and several ways to reach the secret."""
    folder = tmp_path / "models"
    (folder / "inner").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    (folder / "link").symlink_to("../secret")
    (folder / "way").symlink_to("..")
    os.mkfifo(folder / "fifo")
    return folder


def _import(folder, *arguments, **keys):
    (folder / "net.onnx").write_bytes(_model(*arguments, **keys).SerializeToString())
    return caffe.onnx.import_model(folder / "net.onnx")


def test_weights_beside_the_model(folder):
    result = _import(folder, "weights.bin", offset=0, length=48)
    np.testing.assert_array_equal(result.net.params["product"][0].data, WEIGHTS)


@pytest.mark.parametrize("location, text", [
    ("../secret", "outside of the model's folder"), ("inner/../../secret", "outside of the model's folder"),
    ("link", "outside of the model's folder"), ("way/secret", "outside of the model's folder"),
    ("{}/secret", "weights must be next to the model, with relative names"), ("/etc/passwd", "with relative names"),
    ("", "with relative names"), ("a\0b", "with relative names"), ("inner", "which is not a file"), (".", "which is not a file"),
    ("fifo", "which is not a file"), ("absent", "which is not there"),
])
def test_weights_elsewhere(folder, location, text):
    with pytest.raises(caffe.InvalidArgument, match=text):
        _import(folder, location.format(folder.parent))


@pytest.mark.parametrize("keys", [{"offset": 40}, {"length": 47}, {"length": 1 << 60}, {"offset": -1}, {"length": "x"}])
def test_parts_that_the_file_does_not_have(folder, keys):
    with pytest.raises(caffe.InvalidArgument):
        _import(folder, "weights.bin", **keys)


def test_weights_of_a_model_without_a_file(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(caffe.InvalidArgument, match="weights of the model lie in other files; give the file of the model"):
        caffe.onnx.import_model(_model("weights.bin"))


def test_more_memory_than_there_may_be():
    size = numpy_helper.from_array(np.array([1 << 17, 1 << 17], np.int64), "size")
    nodes = [helper.make_node("ConstantOfShape", ["size"], ["zeros"]), helper.make_node("ReduceSum", ["zeros"], ["sum"]),
             helper.make_node("Add", ["x", "sum"], ["y"])]
    with pytest.raises(caffe.InvalidArgument, match=f"needs more than {sandbox.MEMORY >> 20} MiB of memory"):
        caffe.onnx.import_model(_graph(nodes, [size]))


@pytest.mark.parametrize("program, text", [
    ("import os, signal, sys; sys.stdin.readline(); os.kill(os.getpid(), signal.SIGSEGV)", r"ends onnxruntime \(SIGSEGV\)"),
    ("import sys; sys.stdin.readline(); sys.exit(3)", r"ends onnxruntime \(status 3\)"),
    ("import sys, time; sys.stdin.readline(); time.sleep(999)", "runs for more than 0.5 s"),
])
def test_a_model_that_ends_or_halts_the_process(tmp_path, monkeypatch, program, text):
    (tmp_path / "program.py").write_text(program)
    sandbox.end_workers()
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "_PROGRAM", str(tmp_path / "program.py"))
        if "runs for" in text:
            patch.setattr(sandbox, "SECONDS", 0.5)
        with pytest.raises(caffe.InvalidArgument, match=text):
            caffe.onnx.import_model(_model())
    assert caffe.onnx.import_model(_model()).differences["y"] <= 1e-6


def test_names_that_are_no_texts(tmp_path):
    data = _model().SerializeToString().replace(b"product", b"prod\xffct")
    (tmp_path / "net.onnx").write_bytes(data)
    with pytest.raises(caffe.InvalidArgument, match="is not UTF-8"):
        caffe.onnx.import_model(tmp_path / "net.onnx")


def test_weights_that_do_not_fit():
    slopes = numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    with pytest.raises(caffe.Unsupported, match="slopes|weights have shape"):
        caffe.onnx.import_model(_graph([helper.make_node("PRelu", ["x", "w"], ["y"])], [slopes]))


def test_options_beyond_all_fields():
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[1])
    model = _graph([node], [])
    model.graph.node[0].attribute[0].ints[0] = 1 << 40
    with pytest.raises(caffe.Error):
        caffe.onnx.import_model(model)


def _fuzz(*arguments):
    script = nets.ROOT / "tests" / "fuzz" / "onnx_import.py"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(caffe.__file__))}
    return subprocess.run([sys.executable, script, *map(str, arguments)], text=True, stdout=subprocess.PIPE, timeout=300,
                          env=environment, check=False)


def test_changed_models_end_in_errors_or_nets(tmp_path):
    done = _fuzz("--calls", 150, "--seconds", 60, "--found", tmp_path)
    assert done.returncode == 0 and "InvalidArgument" in done.stdout and " nets" in done.stdout, done.stdout


def test_what_goes_wrong_is_found(tmp_path):
    done = _fuzz("--calls", 30, "--plant", "exception", "--found", tmp_path)
    assert done.returncode == 1 and "KeyError: 'planted'" in done.stdout
    assert (tmp_path / "calls").exists() and (tmp_path / "model.onnx").exists()

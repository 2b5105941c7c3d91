"""Models in files of PyTorch, by `python -m caffe.onnx import`. Most of it needs PyTorch, torchvision and onnxscript, which
scripts/install_dependencies.sh does not install."""
import sys

import caffe
import numpy as np
import pytest
from caffe.onnx import torch_files
from caffe.onnx.__main__ import main

CALL = "torchvision.models:squeezenet1_1(num_classes=10)"


@pytest.mark.parametrize("name, expected", [("net.PT2", True), ("a/b.pth", True), ("w.safetensors", True), ("net.onnx", False), ("pt", False)])
def test_names_of_files(name, expected):
    assert torch_files.is_torch(name) == expected


@pytest.mark.parametrize("call, said", [
    ("numpy", "is not a call"), ("numpy:zeros(open('x'))", "is not a call"), ("numpy:a.b()", "is not a call"), ("numpy:f(**{})", "is not a call"),
    ("a b:f()", "is not a call"), ("nowhere.at.all:f()", "No module named 'nowhere'"), ("numpy:nothing()", "module numpy has no 'nothing'"),
    ("numpy:zeros(shape='x')", "--module=numpy:zeros(shape='x'): ")])
def test_calls_that_are_refused(call, said):
    with pytest.raises(caffe.InvalidArgument) as raised:
        torch_files._called(call)
    assert said in str(raised.value)


def test_calls_take_plain_values():
    assert torch_files._called("numpy:full((2, 3), fill_value=7)").tolist() == [[7, 7, 7], [7, 7, 7]]


def test_without_pytorch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(caffe.Unsupported, match="needs the package torch, .* torch onnxscript"):
        torch_files.to_onnx(str(tmp_path / "net.pt"), "", [], str(tmp_path / "net.onnx"))


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("torchvision", reason="no torchvision: pip install torch torchvision onnxscript safetensors")
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def module(torch):
    torch.manual_seed(1)
    return torch_files._called(CALL).eval()


def written(torch, module, kind, folder):
    """The file, and the words that import needs beside it."""
    shape, call = "--shape=1,3,64,64", f"--module={CALL}"
    if kind == "script":
        torch.jit.trace(module, torch.zeros(1, 3, 64, 64)).save(folder / "net.pt")
        return folder / "net.pt", [shape]
    if kind == "program":
        torch.export.save(torch.export.export(module, (torch.zeros(1, 3, 64, 64),)), folder / "net.pt2")
        return folder / "net.pt2", []
    if kind == "checkpoint":
        torch.save({"epoch": 3, "state_dict": {"module." + name: value for name, value in module.state_dict().items()}}, folder / "net.ckpt")
        return folder / "net.ckpt", [shape, call]
    if kind == "safetensors":
        pytest.importorskip("safetensors.torch").save_file(module.state_dict(), folder / "net.safetensors")
        return folder / "net.safetensors", [shape, call]
    torch.save(module.state_dict(), folder / "net.pth")
    return folder / "net.pth", [shape, call]


@pytest.mark.parametrize("kind", ["script", "program", "weights", "checkpoint", "safetensors"])
def test_files(torch, module, kind, tmp_path):
    file, words = written(torch, module, kind, tmp_path)
    assert main(["import", *words, "--output", str(tmp_path / "out"), str(file)]) == 0
    net = caffe.Net(str(tmp_path / "out.prototxt"), caffe.TEST, weights=str(tmp_path / "out.caffemodel"))
    images = np.random.default_rng(1).normal(size=(1, 3, 64, 64)).astype(np.float32)
    with torch.no_grad():
        expected = module(torch.from_numpy(images)).numpy()
    found = net.forward(**{net.inputs[0]: images})[net.outputs[0]]
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_files_that_are_refused(torch, module, tmp_path, capfd):
    torch.save(module, tmp_path / "whole.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save(module.state_dict(), tmp_path / "weights.pth")
    (tmp_path / "text.pt").write_text("no model")
    for name, words, said in [("whole.pt", [f"--module={CALL}", "--shape=1,3,64,64"], "runs code of the file"),
                              ("list.pt", [f"--module={CALL}", "--shape=1,3,64,64"], "holds no weights by name"),
                              ("text.pt", [f"--module={CALL}", "--shape=1,3,64,64"], "text.pt: "),
                              ("weights.pth", ["--shape=1,3,64,64"], "name the function that makes the module"),
                              ("weights.pth", [f"--module={CALL}"], "give it, as in --shape=1,3,224,224"),
                              ("weights.pth", ["--module=torchvision.models:resnet18", "--shape=1,3,64,64"], "does not fit torchvision.models:resnet18"),
                              ("weights.pth", [f"--module={CALL}", "--shape=1,1,64,64"], "cannot compute inputs of 1x1x64x64"),
                              ("none.pt", ["--shape=1,3,64,64"], "none.pt: no such file")]:
        assert main(["import", *words, "--output", str(tmp_path / "out"), str(tmp_path / name)]) == 1
        assert said in capfd.readouterr().err
    assert not (tmp_path / "out.prototxt").exists()

"""Nets in 8-bit numbers from Python, and the report of calibration about their layers."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import caffe
from caffe.calibration import __main__ as program
from caffe.calibration import calibrate
from caffe.calibration.report import layer_errors

NET = """name: "small"
layer { name: "data" type: "DummyData" top: "data" dummy_data_param {
  shape { dim: 32 dim: 3 dim: 9 dim: 8 } data_filler { type: "gaussian" std: 1 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param {
  num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool1" top: "ip" inner_product_param {
  num_output: 5 weight_filler { type: "xavier" } } }
"""


@pytest.fixture
def files(tmp_path):
    """(net, weights, calibration)."""
    definition, weights, ranges = tmp_path / "net.prototxt", tmp_path / "net.caffemodel", tmp_path / "net.json"
    definition.write_text(NET)
    net = caffe.Net(definition, caffe.TEST)
    net.save(weights)
    calibrate(net, iterations=2, method="min-max").save(ranges)
    return definition, weights, ranges


def _computes_in_8_bits(net):
    if not any("int8" in step.kernel for step in net.plan().steps):
        pytest.skip(next(step.precision_note for step in net.plan().steps if step.precision_note))


@pytest.mark.parametrize("keep_all", [True, False])
def test_agrees_with_float(files, keep_all):
    definition, weights, ranges = files
    caffe.set_random_seed(5)
    exact = caffe.Net(definition, caffe.TEST, weights=weights)
    caffe.set_random_seed(5)
    net = caffe.Net(definition, caffe.TEST, weights=weights, precision="int8", calibration=ranges, keep_all=keep_all)
    _computes_in_8_bits(net)
    want, got = exact.forward()["ip"], net.forward()["ip"]
    assert 0 < np.abs(want - got).max() < 0.05 * np.abs(want).max()


def test_only_a_keep_all_net_shows_its_blobs(files):
    definition, weights, ranges = files
    net = caffe.Net(definition, caffe.TEST, weights=weights, precision="int8", calibration=ranges)
    _computes_in_8_bits(net)
    net.forward()
    assert net.blobs["pool1"].data.dtype == np.float32
    assert net.blobs["pool1"].data.any()


def test_says_what_is_wrong(files, tmp_path):
    definition, weights, ranges = files
    with pytest.raises(caffe.InvalidArgument, match="needs the ranges of the net's blobs"):
        caffe.Net(definition, caffe.TEST, precision="int8")
    with pytest.raises(caffe.InvalidArgument, match="the net's is TRAIN"):
        caffe.Net(definition, caffe.TRAIN, precision="int8", calibration=ranges)
    with pytest.raises(caffe.InvalidArgument, match="use 'fp32', 'fp16', 'bf16', 'fp64', 'int8' or 'fake_int8'"):
        caffe.Net(definition, caffe.TEST, precision="int4")
    with pytest.raises(caffe.IoError, match="missing.json: cannot open: No such file"):
        caffe.Net(definition, caffe.TEST, precision="int8", calibration=tmp_path / "missing.json")


def test_report_has_the_layers_that_the_plan_computes_in_8_bits(files):
    definition, weights, _ = files
    net = caffe.Net(definition, caffe.TEST, weights=weights)
    calibration = calibrate(net, iterations=2, method="min-max")
    try:
        errors, together = layer_errors(net, calibration)
    except caffe.InvalidArgument as error:
        pytest.skip(str(error))
    assert set(errors) == {"conv1", "ip"}
    assert all(0 < error.own < 0.05 and 0 < error.outputs < 0.05 for error in errors.values())
    assert errors["ip"].own == errors["ip"].outputs
    outputs = [error.outputs for error in errors.values()]
    assert outputs == sorted(outputs, reverse=True)
    assert max(outputs) / 2 < together < sum(outputs) + 0.01


def test_report_shows_coarse_ranges(files):
    definition, weights, _ = files
    net = caffe.Net(definition, caffe.TEST, weights=weights)
    calibration = calibrate(net, iterations=2, method="min-max")
    try:
        fine, _ = layer_errors(net, calibration)
    except caffe.InvalidArgument as error:
        pytest.skip(str(error))
    low, high = calibration.ranges["data"]
    calibration.ranges["data"] = (20 * low, 20 * high)
    coarse, _ = layer_errors(net, calibration)
    assert next(iter(coarse)) == "conv1"
    assert coarse["conv1"].own > 5 * fine["conv1"].own
    assert coarse["ip"].own == fine["ip"].own


def test_report_from_the_command_line(files, tmp_path, capsys):
    definition, weights, _ = files
    status = program.main([str(definition), str(weights), "--output", str(tmp_path / "new.json"), "--iterations", "2",
                           "--report"])
    out, err = capsys.readouterr()
    if "no layer would compute in 8 bits" in err:
        pytest.skip(err)
    assert status == 0
    lines = out.splitlines()
    assert lines[1].split() == ["layer", "error", "of", "its", "top", "of", "the", "outputs"]
    assert {line.split()[0] for line in lines[2:4]} == {"conv1", "ip"}
    assert lines[4].startswith("all layers")


IMAGES = """name: "images"
layer { name: "data" type: "ImageData" top: "data" top: "label" image_data_param { source: "list.txt" batch_size: 50 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param {
  num_output: 5 weight_filler { type: "xavier" } } }
"""


@pytest.mark.parametrize("count, iterations, text, is_few", [
    (10, 4, "10 images, read 200 times in all, min-max", True), (40, 2, "40 images, read 100 times in all, min-max", False),
    (100, 2, "100 images, min-max", False)])
def test_images_of_a_list_that_starts_again_are_counted_once(tmp_path, monkeypatch, capsys, count, iterations, text, is_few):
    monkeypatch.chdir(tmp_path)
    for k, image in enumerate(np.random.default_rng(1).integers(0, 256, (count, 6, 6, 3), np.uint8)):
        pathlib.Path(f"{k}.ppm").write_bytes(b"P6 6 6 255\n" + image.tobytes())
    pathlib.Path("list.txt").write_text("".join(f"{k}.ppm 0\n" for k in range(count)))
    pathlib.Path("net.prototxt").write_text(IMAGES)
    caffe.Net("net.prototxt", caffe.TEST).save("net.caffemodel")
    arguments = ["net.prototxt", "net.caffemodel", "--output", "net.json", "--method", "min-max", "--iterations", str(iterations)]
    assert program.main(arguments) == 0
    out, err = capsys.readouterr()
    assert out == f"wrote net.json: 2 blobs, {text}\n"
    assert (f"warning: different images in the data: {count}; give 32 at least" in err) == is_few
    assert json.loads(pathlib.Path("net.json").read_text())["images"] == count


def _product(name, bottom, outputs):
    return (f"layer {{ name: '{name}' type: 'InnerProduct' bottom: '{bottom}' top: '{name}' inner_product_param {{ num_output: {outputs} "
            "axis: 2 weight_filler { type: 'xavier' } } }")


def _heads(name, bottom):
    return (f"layer {{ name: '{name}_r' type: 'Reshape' bottom: '{bottom}' top: '{name}_r' reshape_param {{ shape {{ dim: 0 dim: 16 dim: 4 "
            f"dim: 8 }} }} }} layer {{ name: '{name}' type: 'Permute' bottom: '{name}_r' top: '{name}' permute_param {{ order: 0 order: 2 "
            "order: 1 order: 3 } }")


def _norm(name, bottom):
    return f"layer {{ name: '{name}' type: 'LayerNorm' bottom: '{bottom}' top: '{name}' layer_norm_param {{ axis: 2 }} }}"


def _sum(name, a, b):
    return f"layer {{ name: '{name}' type: 'Eltwise' bottom: '{a}' bottom: '{b}' top: '{name}' }}"


VIT = "\n".join([
    "name: 'vit' layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 8 dim: 3 dim: 16 dim: 16 } } }",
    "layer { name: 'patches' type: 'Convolution' bottom: 'data' top: 'patches' convolution_param { num_output: 32 kernel_size: 4 "
    "stride: 4 weight_filler { type: 'xavier' } } }",
    "layer { name: 'rows' type: 'Reshape' bottom: 'patches' top: 'rows' reshape_param { shape { dim: 0 dim: 32 dim: 16 } } }",
    "layer { name: 'x' type: 'Permute' bottom: 'rows' top: 'x' permute_param { order: 0 order: 2 order: 1 } }",
    _norm("n1", "x"), *[_product(f"{name}_p", "n1", 32) for name in "qkv"], *[_heads(name, f"{name}_p") for name in "qkv"],
    "layer { name: 'scores' type: 'MatMul' bottom: 'q' bottom: 'k' top: 'scores' matmul_param { transpose_b: true } }",
    "layer { name: 'scaled' type: 'Power' bottom: 'scores' top: 'scaled' power_param { scale: 0.35 } }",
    "layer { name: 'p' type: 'Softmax' bottom: 'scaled' top: 'p' softmax_param { axis: 3 } }",
    "layer { name: 'mixed' type: 'MatMul' bottom: 'p' bottom: 'v' top: 'mixed' }",
    "layer { name: 'm' type: 'Permute' bottom: 'mixed' top: 'm' permute_param { order: 0 order: 2 order: 1 order: 3 } }",
    "layer { name: 'joined' type: 'Reshape' bottom: 'm' top: 'joined' reshape_param { shape { dim: 0 dim: 16 dim: 32 } } }",
    _product("o", "joined", 32), _sum("x1", "x", "o"), _norm("n2", "x1"), _product("h", "n2", 64),
    "layer { name: 'g' type: 'GELU' bottom: 'h' top: 'g' }", _product("h2", "g", 32), _sum("x2", "x1", "h2"),
    "layer { name: 'flat' type: 'Flatten' bottom: 'x2' top: 'flat' }",
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'flat' top: 'ip' inner_product_param { num_output: 5 "
    "weight_filler { type: 'xavier' } } }"])


def _vit_outputs(net, seed):
    net.blobs["data"].data[...] = np.random.default_rng(seed).normal(0, 1, net.blobs["data"].shape)
    return net.forward()["ip"].copy()


@pytest.mark.parametrize("keep_all", [True, False])
def test_a_vit_whose_attention_is_written_as_layers(tmp_path, keep_all):
    definition, weights, ranges = tmp_path / "vit.prototxt", tmp_path / "vit.caffemodel", tmp_path / "vit.json"
    definition.write_text(VIT)
    exact = caffe.Net(definition, caffe.TEST)
    exact.save(weights)
    seeds = iter(range(100))
    calibrate(exact, iterations=8, method="min-max", feed=lambda net: _vit_outputs(net, next(seeds))).save(ranges)
    net = caffe.Net(definition, caffe.TEST, weights=weights, precision="int8", calibration=ranges, keep_all=keep_all)
    _computes_in_8_bits(net)
    kernels = {step.layers.split("+")[0]: step.kernel for step in net.plan().steps if step.op.startswith(("Conv", "Gemm", "BatchedGemm"))}
    products = {"patches", "q_p", "k_p", "v_p", "scores", "mixed", "o", "h", "h2", "ip"}
    assert {layer for layer, kernel in kernels.items() if "int8" in kernel} == products
    want = np.concatenate([_vit_outputs(exact, seed) for seed in range(200, 210)])
    got = np.concatenate([_vit_outputs(net, seed) for seed in range(200, 210)])
    error = np.sqrt(np.mean((got - want) ** 2) / np.mean(want ** 2))
    assert 0 < error < 0.03
    assert np.mean(want.argmax(1) == got.argmax(1)) > 0.95


PROGRAM = """
import sys, caffe
caffe.set_random_seed(5)
exact = caffe.Net(sys.argv[1], caffe.TEST, weights=sys.argv[2], keep_all=False)
caffe.set_random_seed(5)
net = caffe.Net(sys.argv[1], caffe.TEST, weights=sys.argv[2], precision="int8", calibration=sys.argv[3], keep_all=False)
print(next(step.precision_note for step in net.plan().steps if step.precision_note))
print((net.forward()["ip"] == exact.forward()["ip"]).all())
"""


def test_other_processors_compute_in_float_and_say_so(files):
    run = subprocess.run([sys.executable, "-c", PROGRAM, *map(str, files)], capture_output=True, text=True, check=True,
                         env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "GLOG_minloglevel": "2",
                              "PYTHONPATH": str(pathlib.Path(caffe.__file__).parents[1])})
    note, is_equal = run.stdout.splitlines()
    assert note.startswith("float instead of int8: this processor has no instructions for products of 8-bit numbers")
    assert is_equal == "True"


TRAINING = NET.replace('top: "data" dummy', 'top: "data" top: "label" dummy').replace(
    'data_filler { type: "gaussian" std: 1 } }', 'data_filler { type: "gaussian" std: 1 } shape { dim: 32 } '
    'data_filler { type: "constant" value: 3 } }') + """
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.mark.parametrize("by", ["file", "arguments"])
def test_training_for_8_bits_meets_the_plan_in_8_bits(files, tmp_path, by):
    definition, weights, ranges = files
    net, solver_file = tmp_path / "train.prototxt", tmp_path / "solver.prototxt"
    net.write_text(TRAINING)
    asked = f'precision: FAKE_INT8 calibration: "{ranges}"' if by == "file" else ""
    solver_file.write_text(f'net: "{net}" base_lr: 0.05 lr_policy: "fixed" max_iter: 30 random_seed: 3 test_iter: 1 '
                           f'test_interval: 1000 {asked}')
    options = {} if asked else {"precision": "fake_int8", "calibration": ranges}
    solver = caffe.get_solver(solver_file, keep_all=False, **options)
    for one in (solver.net, solver.test_nets[0]):
        operations = [step.op for step in one.plan().steps]
        assert sum(op.startswith("FakeQuantizeRows") for op in operations) == 2
        assert sum(op.startswith("FakeQuantize[") for op in operations) == 2
    solver.net.copy_from(weights)
    before = solver.net.forward()["loss"].item()
    solver.step(30)
    after = solver.net.forward()["loss"].item()
    assert after < before / 2
    solver.net.save(tmp_path / "trained.caffemodel")
    outputs = {}
    for precision in ("fp32", "fake_int8", "int8"):
        caffe.set_random_seed(5)
        ranged = {} if precision == "fp32" else {"calibration": ranges}
        one = caffe.Net(definition, caffe.TEST, weights=tmp_path / "trained.caffemodel", precision=precision,
                        keep_all=False, **ranged)
        if precision == "int8":
            _computes_in_8_bits(one)
        outputs[precision] = one.forward()["ip"].copy()
    largest = np.abs(outputs["fp32"]).max()
    from_float = np.abs(outputs["int8"] - outputs["fp32"]).max() / largest
    from_rounded = np.abs(outputs["int8"] - outputs["fake_int8"]).max() / largest
    assert from_rounded < min(0.004, from_float / 2)

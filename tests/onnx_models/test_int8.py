"""Calibration, and 8-bit models made with it."""
import json
import os
import pathlib
import subprocess
import sys

import caffe
import caffe.onnx
import nets
import numpy as np
import pytest
from caffe.calibration import FEWEST_IMAGES, METHODS, Calibration, calibrate
from caffe.calibration.histogram import Histogram
from onnx import numpy_helper

LAYERS = """
layer { name: 'conv1' type: 'Convolution' bottom: 'x0' top: 'conv1' convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: 'bn1' type: 'BatchNorm' bottom: 'conv1' top: 'conv1' }
layer { name: 'scale1' type: 'Scale' bottom: 'conv1' top: 'conv1' scale_param { bias_term: true } }
layer { name: 'relu1' type: 'ReLU' bottom: 'conv1' top: 'conv1' }
layer { name: 'pool1' type: 'Pooling' bottom: 'conv1' top: 'pool1' pooling_param { kernel_size: 2 stride: 2 } }
layer { name: 'conv2' type: 'Convolution' bottom: 'pool1' top: 'conv2' convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: 'sum' type: 'Eltwise' bottom: 'pool1' bottom: 'conv2' top: 'sum' }
layer { name: 'relu2' type: 'ReLU' bottom: 'sum' top: 'sum' }
layer { name: 'conv3' type: 'Convolution' bottom: 'sum' top: 'conv3' convolution_param { num_output: 8 kernel_size: 1 bias_term: false } }
layer { name: 'join' type: 'Concat' bottom: 'sum' bottom: 'conv3' top: 'join' }
layer { name: 'mean' type: 'Pooling' bottom: 'join' top: 'mean' pooling_param { pool: AVE global_pooling: true } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'mean' top: 'ip' inner_product_param { num_output: 10 } }
"""
SHAPE = (4, 3, 16, 16)


@pytest.fixture(scope="module", name="net")
def fixture_net():
    return nets.draw_weights(nets.net_with([SHAPE], LAYERS))


def feeder(seed=3):
    generator = np.random.default_rng(seed)

    def feed(net):
        net.blobs["x0"].data[...] = generator.uniform(-1, 1, SHAPE)
    return feed


@pytest.fixture(scope="module", name="calibration")
def fixture_calibration(net):
    return calibrate(net, 16, feed=feeder())


def data(seed=5):
    return {"x0": np.random.default_rng(seed).uniform(-1, 1, SHAPE).astype(np.float32)}


def test_a_histogram_counts_numbers_of_any_size():
    generator = np.random.default_rng(1)
    histogram, everything = Histogram(), []
    for size in (0.1, 3, 0.5, 100, 1):
        array = generator.normal(0, size, 1000).astype(np.float32)
        array[::10] = 0
        histogram.add(array)
        everything.append(array)
    everything = np.abs(np.concatenate(everything))
    assert histogram.zeros == (everything == 0).sum()
    assert histogram.counts.sum() == (everything != 0).sum()
    edges = np.arange(1, len(histogram.counts) + 1) * histogram.width
    below = [((everything > 0) & (everything <= edge)).sum() for edge in edges[::100]]
    assert np.abs(np.cumsum(histogram.counts)[::100] - below).max() <= 1  # a number at an edge may count on either side


def test_methods_clip_as_they_say():
    generator = np.random.default_rng(1)
    histogram = Histogram()
    histogram.add(np.append(generator.uniform(0, 1, 100_000), 50))
    assert METHODS["min-max"](histogram, None) == 50
    assert METHODS["percentile"](histogram, 99.9) == pytest.approx(1, abs=2 * histogram.width)
    assert METHODS["percentile"](histogram, 100) == 50
    # 255 steps up to 50 would leave 5 steps for nearly all numbers.
    assert 1 <= METHODS["entropy"](histogram, None) < 10
    even = Histogram()
    even.add(generator.uniform(0, 1, 100_000))
    assert METHODS["entropy"](even, None) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_outputs_stay_near(method, net):
    calibration = calibrate(net, 16, method, feed=feeder())
    assert calibration.images == 64
    report = caffe.onnx.export(net, int8=calibration, inputs=data())
    assert report.int8 == ["conv1", "conv2", "conv3", "ip"] and not report.kept_float
    assert report.int8_differences["ip"] < 0.03
    assert max(report.differences.values()) < 1e-5  # in the float version


def test_weights_are_stored_in_8_bits_with_a_scale_for_each_channel(net, calibration):
    graph = caffe.onnx.export(net, int8=calibration).model.graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    stored = {name: array for name, array in weights.items() if array.dtype == np.int8 and array.ndim > 1}
    assert len(stored) == 4 and all(np.abs(array).max() == 127 for array in stored.values())
    assert {array.shape for name, array in weights.items() if name.endswith("weights/scale")} == {(16,), (8,), (10,)}
    assert not any(array.dtype == np.float32 and array.size > 16 for array in weights.values())
    # The normalisation is in the weights, and operators that only pass numbers on keep their scale.
    kinds = [node.op_type for node in graph.node]
    assert "BatchNormalization" not in kinds and "Mul" not in kinds
    assert weights["conv1/scale"] == weights["pool1/scale"]


def test_channels_with_tiny_weights_keep_their_bias():
    net = nets.draw_weights(nets.net_with([SHAPE], LAYERS))
    net.params["scale1"][0].data[3] = 1e-8
    net.params["scale1"][1].data[3] = 1
    net.params["conv2"][0].data[2] = 1e-40
    report = caffe.onnx.export(net, int8=calibrate(net, 16, feed=feeder()), inputs=data())
    assert report.int8_differences["ip"] < 0.03


def test_factors_along_items_are_not_folded():
    layers = ("""layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 } }
              layer { name: 's' type: 'Scale' bottom: 'c' top: 's' scale_param { axis: 0 num_axes: 1 } }
              layer { name: 'd' type: 'Convolution' bottom: 's' top: 'd' convolution_param { num_output: 4 kernel_size: 1 } }""")
    net = nets.draw_weights(nets.net_with([SHAPE], layers))
    report = caffe.onnx.export(net, int8=calibrate(net, 16, feed=feeder()), inputs=data())
    assert report.int8 == ["c", "d"] and report.int8_differences["d"] < 0.05


def test_blobs_may_be_called_like_new_tensors():
    layers = ("""layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 } }
              layer { name: 'c/scale' type: 'Convolution' bottom: 'c' top: 'c/scale' convolution_param { num_output: 4 kernel_size: 1 } }
              layer { name: 'd' type: 'Convolution' bottom: 'c/scale' top: 'd' convolution_param { num_output: 4 kernel_size: 1 } }""")
    net = nets.draw_weights(nets.net_with([SHAPE], layers))
    report = caffe.onnx.export(net, int8=calibrate(net, 16, feed=feeder()), inputs=data())
    assert len(report.int8) == 3 and report.int8_differences["d"] < 0.05


def test_an_input_that_is_overwritten_is_refused():
    layers = ("""layer { name: 'p' type: 'Power' bottom: 'x0' top: 'x0' power_param { shift: 5 } }
              layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 } }""")
    net = nets.draw_weights(nets.net_with([SHAPE], layers))
    with pytest.raises(caffe.InvalidArgument, match="layer 'p' overwrites the input 'x0' in place"):
        caffe.onnx.export(net, int8=calibrate(net, 16, feed=feeder()))


def test_tiny_numbers_are_counted():
    histogram = Histogram()
    histogram.add(np.float32([1e-40, 3e-39, 1e-37]))
    assert histogram.counts.sum() == 3


def test_a_percentile_is_of_the_numbers_that_are_not_zero():
    histogram = Histogram()
    histogram.add(np.append(np.zeros(1_000_000), np.arange(1, 101)))
    assert METHODS["percentile"](histogram, 99) == pytest.approx(99, abs=1)


def test_onnxruntime_computes_in_8_bits(net, calibration, tmp_path):
    import onnx
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    model = caffe.onnx.export(net, int8=calibration).model
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert kinds.count("QLinearConv") == 3 and "QGemm" in kinds and "Conv" not in kinds
    assert {"QLinearAdd", "QLinearConcat"} <= set(kinds)


def test_layers_may_stay_float(net, calibration):
    report = caffe.onnx.export(net, int8=calibration, keep_float=["conv2"], inputs=data())
    assert report.int8 == ["conv1", "conv3", "ip"] and report.kept_float == {"conv2": "as asked"}
    less = {**calibration.ranges}
    del less["sum"]
    report = caffe.onnx.export(net, int8=Calibration("", "", 64, less))
    assert report.kept_float == {"conv3": "blob 'sum' has no range in the calibration"}


def test_sensitive_layers_are_named(net, calibration):
    coarse = Calibration("", "", 64, {**calibration.ranges, "conv1": (-200.0, 200.0)})
    report = caffe.onnx.export(net, int8=coarse, inputs=data(), find_sensitive=True)
    assert next(iter(report.sensitivity)) in ("conv1", "conv2") and set(report.sensitivity) == set(report.int8)
    kept = caffe.onnx.export(net, int8=coarse, inputs=data(), keep_float=["conv1", "pool1", "conv2", "sum"])
    assert kept.int8_differences["ip"] < report.int8_differences["ip"]


MATRICES = """
layer { name: 'q' type: 'InnerProduct' bottom: 'x0' top: 'q' inner_product_param { num_output: 16 axis: 2 } }
layer { name: 'k' type: 'InnerProduct' bottom: 'x0' top: 'k' inner_product_param { num_output: 16 axis: 2 } }
layer { name: 'scores' type: 'MatMul' bottom: 'q' bottom: 'k' top: 'scores' matmul_param { transpose_b: true } }
layer { name: 'p' type: 'Softmax' bottom: 'scores' top: 'p' softmax_param { axis: 2 } }
layer { name: 'mixed' type: 'MatMul' bottom: 'p' bottom: 'q' top: 'mixed' }
layer { name: 'w' type: 'Parameter' top: 'w' parameter_param { shape { dim: 16 dim: 5 } } }
layer { name: 'last' type: 'MatMul' bottom: 'mixed' bottom: 'w' top: 'last' }
"""


def test_products_of_blobs_and_of_parameters(tmp_path):
    import onnx
    import onnxruntime
    shape = (3, 6, 8)
    net = nets.draw_weights(nets.net_with([shape], MATRICES))
    generator = np.random.default_rng(2)

    def feed(one):
        one.blobs["x0"].data[...] = generator.uniform(-1, 1, shape)
    calibration = calibrate(net, 16, feed=feed)
    inputs = {"x0": generator.uniform(-1, 1, shape).astype(np.float32)}
    report = caffe.onnx.export(net, int8=calibration, inputs=inputs)
    assert report.int8 == ["q", "k", "scores", "mixed", "last"] and not report.kept_float
    assert 0 < report.int8_differences["last"] < 0.03
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in report.model.graph.initializer}
    assert any(array.shape == (16, 5) and array.dtype == np.int8 for array in weights.values())
    assert sum(array.shape == (5,) and array.dtype == np.float32 for array in weights.values()) == 1  # a scale for each column
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(report.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert not {"MatMul", "Gemm"} & set(kinds), kinds
    less = {**calibration.ranges}
    del less["p"]
    report = caffe.onnx.export(net, int8=Calibration("", "", 64, less))
    assert report.kept_float == {"mixed": "blob 'p' has no range in the calibration"}


def test_products_inside_of_other_layers_stay_float():
    layers = "layer { name: 'i' type: 'Interp' bottom: 'x0' top: 'i' interp_param { height: 7 width: 9 } } " + LAYERS.replace("x0", "i")
    net = nets.draw_weights(nets.net_with([SHAPE], layers))
    report = caffe.onnx.export(net, int8=calibrate(net, 16, feed=feeder()))
    assert report.int8 == ["conv1", "conv2", "conv3", "ip"] and not report.kept_float


def test_files_go_round(calibration, tmp_path):
    calibration.save(tmp_path / "net.json")
    assert Calibration.load(tmp_path / "net.json") == calibration
    assert os.listdir(tmp_path) == ["net.json"]


@pytest.mark.parametrize("text, message", [
    ("{", "is not a calibration file"),
    ("[" * 100000, "is not a calibration file"),
    ("[]", "its format should be 'cortado calibration 1'"),
    ('{"format": "cortado calibration 1", "ranges": {"a": [1, 2]}}', "two numbers, with 0 between them"),
    ('{"format": "cortado calibration 1", "ranges": {"a": [-1, "x"]}}', "two numbers, with 0 between them"),
    ('{"format": "cortado calibration 1", "ranges": {"a": [false, true]}}', "two numbers, with 0 between them"),
    ('{"format": "cortado calibration 1", "ranges": {}, "images": []}', "its images should be a number"),
])
def test_damaged_files_are_named(text, message, tmp_path):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(caffe.InvalidArgument, match="bad.json: .*" + message):
        Calibration.load(tmp_path / "bad.json")
    with pytest.raises(caffe.IoError, match="gone.json: No such file"):
        Calibration.load(tmp_path / "gone.json")


def test_what_cannot_be_is_refused(net, calibration):
    def expect(message, **options):
        with pytest.raises(caffe.InvalidArgument, match=message):
            caffe.onnx.export(net, **options)
    expect("opset is 11; models of 8-bit numbers need 13", int8=calibration, opset=11)
    expect("the model has no layer 'conv9'", int8=calibration, keep_float=["conv9"])
    expect("give a calibration", keep_float=["conv1"])
    expect("no layer would compute in 8 bits: layer 'conv1': blob 'x0' has no range", int8=Calibration("", "", 64, {}))
    with pytest.raises(caffe.InvalidArgument, match=f"4 images are too few .* {FEWEST_IMAGES} images"):
        calibrate(net, 1, feed=feeder())
    with pytest.raises(caffe.InvalidArgument, match="nobody fills the input 'x0'"):
        calibrate(net)
    with pytest.raises(caffe.InvalidArgument, match="method is 'guess'; it must be one of"):
        calibrate(net, method="guess", feed=feeder())

    def feed_nan(one):
        one.blobs["x0"].data[...] = np.nan
    with pytest.raises(caffe.InvalidArgument, match="blob 'x0' has numbers that are not finite"):
        calibrate(net, feed=feed_nan)


def test_blobs_whose_numbers_no_file_holds_have_no_range(net, tmp_path):
    def feed(one):
        feeder()(one)
        one.blobs["x0"].data[0, 0, 0, 0] = -np.finfo(np.float32).max  # as in windows of a maximum without any pixel
    calibration = calibrate(net, 16, method="min-max", feed=feed)
    assert "x0" not in calibration.ranges
    calibration.save(tmp_path / "net.json")
    assert Calibration.load(tmp_path / "net.json") == calibration


def test_a_chip_that_takes_no_8_bit_numbers_is_named(net, calibration, tmp_path):
    profile = {"title": "A chip", "opset": {"from": 13, "to": 13, "default": 13}, "detection": "raw", "not_verified": [],
               "sources": [{"page": "none", "version": "1", "read": "2026-11-24", "says": "everything"}], "rewrites": [], "absent": {},
               "operators": {kind: {} for kind in ("Add", "BatchNormalization", "Concat", "Conv", "Gemm", "GlobalAveragePool",
                                                   "MaxPool", "Mul", "Relu", "Reshape")}}
    (tmp_path / "chip.json").write_text(json.dumps(profile))
    with pytest.raises(caffe.Unsupported, match="does not take DequantizeLinear and QuantizeLinear"):
        caffe.onnx.export(net, int8=calibration, profile=str(tmp_path / "chip.json"))


def _caffe(folder, *arguments):
    binary = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", nets.ROOT / "build" / "cpu-release")) / "bin" / "caffe"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([binary, *arguments], cwd=folder, capture_output=True, text=True,
                          env={**environment, "PYTHON": sys.executable})


def test_from_the_command_line(net, tmp_path):
    text = LAYERS.replace("bottom: 'x0'", "bottom: 'data'")
    source = ("layer { name: 'data' type: 'DummyData' top: 'data' dummy_data_param { shape { dim: 4 dim: 3 dim: 16 dim: 16 } "
              "data_filler { type: 'uniform' min: -1 max: 1 } } }")
    (tmp_path / "train_val.prototxt").write_text(source + text)
    (tmp_path / "deploy.prototxt").write_text(
        "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 4 dim: 3 dim: 16 dim: 16 } } }" + text)
    net.save(str(tmp_path / "net.caffemodel"))
    done = _caffe(tmp_path, "calibrate", "train_val.prototxt", "--weights=net.caffemodel", "--output=net.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "wrote net.json: 9 blobs, 40 images, entropy\n" and "batch 10 of 10" in done.stderr
    assert "\r" not in done.stderr and "batch 9 of 10" not in done.stderr  # moving lines are only for terminals
    done = _caffe(tmp_path, "export", "deploy.prototxt", "--weights=net.caffemodel", "--output=net.onnx", "--int8=net.json",
                  "--find-sensitive", "--keep-float=conv3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "8 bits: 3 layers" in lines and "float: layer 'conv3': as asked" in lines
    assert sum("alone in 8 bits" in line for line in lines) == 4
    assert (tmp_path / "net.onnx").exists()
    done = _caffe(tmp_path, "calibrate", "deploy.prototxt", "--weights=net.caffemodel", "--output=other.json")
    assert done.returncode == 1 and "nobody fills the input 'data'" in done.stderr

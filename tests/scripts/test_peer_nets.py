"""The nets of benchmarks/peer_step_time.py: prototxts as steps that PyTorch can build."""
import json
import pathlib
import subprocess
import sys

import pytest
from google.protobuf import text_format

from caffe.proto import caffe_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import peer_step_time  # noqa: E402
from peer import definition  # noqa: E402

TORCH = ROOT / "build" / "peer-venv" / "bin" / "python"
DATA = """layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 9 dim: 2 dim: 11 dim: 8 } shape { dim: 9 } } } """
LOSS = """layer { name: "ip" type: "InnerProduct" bottom: "%s" top: "ip" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" loss_weight: 0.3 }"""


def steps_of(text):
    return definition.steps(text_format.Parse(text, caffe_pb2.NetParameter()))


def layer(kind, bottom, top, options="", name=None):
    bottoms = "".join(f'bottom: "{b}" ' for b in bottom.split())
    return f'layer {{ name: "{name or top}" type: "{kind}" {bottoms} top: "{top}" {options} }} '


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "net.prototxt").write_text(text)
        return tmp_path / "net.prototxt"
    return write


def test_data_becomes_inputs_of_the_batch_asked_for(file):
    net = definition.training_net(file(DATA + LOSS % "data"), 4)
    assert [(one.type, one.top[0], list(one.input_param.shape[0].dim)) for one in net.layer[:2]] == [
        ("Input", "data", [4, 2, 11, 8]), ("Input", "label", [4])]


def test_images_of_a_database_are_as_large_as_the_crop(file):
    text = """layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN } transform_param { crop_size: 7 } }
              layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TEST } transform_param { crop_size: 5 } }"""
    net = definition.training_net(file(text + LOSS % "data"), 2)
    assert [list(one.input_param.shape[0].dim) for one in net.layer[:2]] == [[2, 3, 7, 7], [2]]


@pytest.mark.parametrize("name", peer_step_time.NETS)
def test_each_net_has_steps(name):
    path, batch = peer_step_time.NETS[name]
    steps = definition.steps(definition.training_net(ROOT / path, batch))
    assert sum(step["kind"] == "loss" for step in steps) == (3 if name == "googlenet" else 1)
    json.dumps(steps)


def test_norm_and_scale_are_one_step():
    steps = steps_of(DATA + layer("BatchNorm", "data", "data", name="norm", options="batch_norm_param { eps: 0.01 }") +
                     layer("Scale", "data", "data", name="scale", options="scale_param { bias_term: true }") +
                     layer("ReLU", "data", "data", name="relu") + LOSS % "data")
    assert [step["kind"] for step in steps] == ["batch_norm", "relu", "inner_product", "loss"]
    assert steps[0]["weights"] == ["scale.0", "scale.1"] and steps[0]["eps"] == pytest.approx(0.01)
    assert steps[1]["in_place"] and steps[1]["inputs"] == [steps[0]["output"]]


def test_nvcaffes_norm_has_its_own_scale():
    step = steps_of(DATA + layer("BatchNorm", "data", "n", "batch_norm_param { scale_bias: true eps: 1e-7 }"))[0]
    assert step["weights"] == ["n.3", "n.4"] and step["eps"] == 1e-5


def test_a_scale_of_its_own_is_refused():
    with pytest.raises(ValueError, match="layer s: a Scale that is not alone behind a BatchNorm"):
        steps_of(DATA + layer("Scale", "data", "s", "scale_param { bias_term: true }"))


@pytest.mark.parametrize("text, message", [
    (layer("LSTM", "data", "x"), "layer x: type LSTM has no counterpart"),
    (layer("Eltwise", "data data", "x", "eltwise_param { operation: PROD }"), "only SUM"),
    (layer("Pooling", "data", "x", "pooling_param { pool: STOCHASTIC kernel_size: 2 }"), "only MAX or AVE"),
])
def test_what_cannot_be_compared_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        steps_of(DATA + text)


def test_memory_that_is_read_again_is_not_overwritten():
    conv = "convolution_param { num_output: 2 kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 stride: 2 }"
    steps = steps_of(DATA + layer("Convolution", "data", "a", conv) +
                     layer("ReLU", "a", "b") + layer("Eltwise", "a b", "c") + layer("ReLU", "c", "d") +
                     layer("Dropout", "d", "d", name="drop"))
    assert steps[0]["pad"] == [1, 0] and steps[0]["stride"] == [2, 2]
    assert [step["in_place"] for step in steps] == [False, False, False, True, False]
    assert [step["release"] for step in steps] == [["data"], [], ["a", "b"], ["c"], ["d", "d#2"]]


def test_without_dropout_keeps_the_layer():
    net = text_format.Parse(layer("Dropout", "data", "d"), caffe_pb2.NetParameter())
    assert definition.without_dropout(net).layer[0].dropout_param.dropout_ratio == 0
    assert net.layer[0].dropout_param.dropout_ratio == 0.5


# Caffe's window arithmetic, which PyTorch must follow: sizes that do not divide, pads, groups, two losses.
ODD = (DATA + layer("Convolution", "data", "c1", "convolution_param { num_output: 6 kernel_size: 3 stride: 2 pad: 1 dilation: 2 "
                    "weight_filler { type: 'msra' } bias_filler { type: 'uniform' } }") +
       layer("ReLU", "c1", "c1", name="r1") +
       layer("Pooling", "c1", "p1", "pooling_param { kernel_size: 3 stride: 2 pad: 1 }") +
       layer("Pooling", "c1", "p2", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }") +
       layer("LRN", "p2", "n", "lrn_param { local_size: 3 alpha: 0.5 }") +
       layer("Concat", "p1 n", "both") +
       layer("Convolution", "both", "c2", "convolution_param { num_output: 8 kernel_size: 1 group: 2 bias_term: false "
             "weight_filler { type: 'msra' } }") +
       layer("BatchNorm", "c2", "c2", name="norm") +
       layer("Scale", "c2", "c2", "scale_param { bias_term: true filler { type: 'uniform' min: 0.5 max: 1.5 } }", name="scale") +
       layer("Convolution", "both", "c3", "convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: 'msra' } }") +
       layer("Eltwise", "c2 c3", "sum") + layer("ReLU", "sum", "sum", name="r2") + LOSS % "sum" +
       layer("Pooling", "sum", "g", "pooling_param { pool: AVE global_pooling: true }") +
       layer("InnerProduct", "g", "ip2", "inner_product_param { num_output: 10 weight_filler { type: 'xavier' } }") +
       layer("SoftmaxWithLoss", "ip2 label", "loss2"))


def test_pytorch_computes_the_same(file, tmp_path):
    """Loss and gradients of a small net with each kind of layer."""
    built = pathlib.Path(sys.modules["caffe"].__path__[0])
    if not list(built.glob("_caffe*.so")):
        pytest.skip(f"package caffe is not built in {built}")
    if subprocess.run([TORCH, "-c", "import torch"], capture_output=True, check=False).returncode if TORCH.exists() else True:
        pytest.skip(f"no PyTorch in {TORCH}; run benchmarks/peer_environment.sh")
    frameworks = peer_step_time.Frameworks(TORCH, built.parent, threads=1)
    peer_step_time.write_net(tmp_path, definition.training_net(file(ODD), 3))
    result = peer_step_time.compare(frameworks, tmp_path)
    assert result["gradients"] >= 9 and result["gradient_error_cortado"]["worst"] < 1e-4
    for variant, memory_limit in (("torch-bf16", None), ("cortado-bf16", None), ("cortado-fp32", 10)):
        times = peer_step_time.Worker(frameworks, tmp_path, variant, memory_limit)
        times.steps(2)
        times.finish()
        assert peer_step_time.summary(times.replies, 3)["steps"] == 2

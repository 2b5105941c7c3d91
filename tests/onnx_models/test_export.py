"""The results of export() for whole nets, and the nets that it refuses."""
import caffe
import caffe.onnx
import nets
import numpy as np
import onnx
import pytest
from caffe.onnx import storing

SMALL = [(2, 3, 8, 8)], """
    layer { name: 'conv1' type: 'Convolution' bottom: 'x0' top: 'conv1' convolution_param { num_output: 4 kernel_size: 3 } }
    layer { name: 'relu1' type: 'ReLU' bottom: 'conv1' top: 'conv1' }
    layer { name: 'fc' type: 'InnerProduct' bottom: 'conv1' top: 'fc' inner_product_param { num_output: 5 } }"""


def _small():
    return nets.draw_weights(nets.net_with(*SMALL))


def test_names_stay():
    model = caffe.onnx.export(_small()).model
    assert [node.name for node in model.graph.node][:2] == ["conv1:Conv", "relu1:Relu"]
    assert {weight.name for weight in model.graph.initializer} >= {"conv1.0", "conv1.1", "fc.0", "fc.1"}
    assert [output.name for output in model.graph.output] == ["fc"]
    assert "conv1" in {name for node in model.graph.node for name in node.output}
    assert model.producer_name == "cortado" and model.producer_version == caffe.__version__


@pytest.mark.parametrize("opset", nets.OPSETS)
def test_opset(opset):
    assert caffe.onnx.export(_small(), opset=opset).model.opset_import[0].version == opset


@pytest.mark.parametrize("opset", [10, caffe.onnx.newest_opset() + 1])
def test_an_opset_that_there_is_not(opset):
    with pytest.raises(caffe.InvalidArgument, match=f"opset is {opset}; it must be from 11 to"):
        caffe.onnx.export(_small(), opset=opset)


def test_a_net_for_training():
    with pytest.raises(caffe.InvalidArgument, match="phase TRAIN; make it with caffe.TEST"):
        caffe.onnx.export(caffe.Net(_small().definition, caffe.TRAIN))


def test_all_layers_that_cannot_be_expressed_are_named():
    net = nets.net_with([(2, 5), (2, 1), (2, 4)], """
        layer { name: 'a' type: 'BoxAnnotatorOHEM' bottom: 'x0' bottom: 'x1' bottom: 'x1' bottom: 'x2' top: 'l' top: 'w'
                box_annotator_ohem_param { roi_per_img: 1 } }
        layer { name: 'r' type: 'ReLU' bottom: 'x0' top: 'r' }
        layer { name: 'b' type: 'BoxAnnotatorOHEM' bottom: 'r' bottom: 'x1' bottom: 'x1' bottom: 'x2' top: 'm' top: 'v'
                box_annotator_ohem_param { roi_per_img: 1 } }""")
    why = "it prepares training; a net for deployment does without"
    with pytest.raises(caffe.Unsupported, match=rf"layer 'a' \(BoxAnnotatorOHEM\): {why}; layer 'b' \(BoxAnnotatorOHEM\): {why}"):
        caffe.onnx.export(net)


@pytest.mark.parametrize("kind, inputs", [("MultiHeadAttention", [(2, 3, 8)]), ("Attention", [(2, 3, 8)] * 3)])
def test_attention_that_keeps_keys(kind, inputs):
    bottoms = " ".join(f"bottom: 'x{i}'" for i in range(len(inputs) + 1))
    net = nets.net_with([*inputs, (2,)], f"layer {{ name: 'a' type: '{kind}' {bottoms} top: 'y' attention_param {{ causal: true "
                        "cache_length: 4 } }")
    with pytest.raises(caffe.Unsupported, match=rf"layer 'a' \({kind}\): cache_length: keys and values stay from one pass to the next, "
                                                "and a model keeps nothing; export the net without it"):
        caffe.onnx.export(net)


def test_losses_and_labels_are_left_out():
    net = nets.net_with([(4, 3), (4,)], """
        layer { name: 'fc' type: 'InnerProduct' bottom: 'x0' top: 'fc' inner_product_param { num_output: 2 } }
        layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'x1' top: 'loss' }
        layer { name: 'accuracy' type: 'Accuracy' bottom: 'fc' bottom: 'x1' top: 'accuracy' }""")
    report = caffe.onnx.export(net)
    assert (list(report.inputs), list(report.outputs)) == (["x0"], ["fc"])
    assert report.left_out == {"loss": "it is a loss", "accuracy": "it measures"}


def test_an_input_that_is_overwritten_in_place():
    report = caffe.onnx.export(nets.net_with([(2, 3)], "layer { name: 'r' type: 'ReLU' bottom: 'x0' top: 'x0' }"))
    assert list(report.inputs) == ["x0"] and report.blobs == {"x0/output": "x0"}


def test_blobs_with_one_content():
    report = caffe.onnx.export(nets.net_with([(2, 3)], """
        layer { name: 's' type: 'Split' bottom: 'x0' top: 'a' top: 'b' }
        layer { name: 'd' type: 'Dropout' bottom: 'x0' top: 'd' }"""))
    assert set(report.outputs) == {"a", "b", "d"}


def test_the_users_blobs_stay_as_they_are():
    net = _small()
    net.blobs["x0"].data[...] = 3
    caffe.onnx.export(net, check=True)
    assert np.all(net.blobs["x0"].data == 3)


def test_a_net_in_16_bits_becomes_a_model_in_float():
    net = nets.net_of("default_forward_type: FLOAT16 default_backward_type: FLOAT16 "
                      "layer { name: 'x0' type: 'Input' top: 'x0' input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }"
                      + SMALL[1])
    assert caffe.onnx.export(nets.draw_weights(net), check=True).differences["fc"] <= 1e-5


def test_numbers_have_no_axes():
    net = nets.net_with([(2, 3)], "layer { name: 'l' type: 'ReLU6' bottom: 'x0' top: 'y' }")
    assert [list(tensor.dims) for tensor in caffe.onnx.export(net).model.graph.initializer] == [[], []]


def test_the_check_notices_a_wrong_model_and_writes_nothing(tmp_path, monkeypatch):
    from caffe.onnx import registry
    monkeypatch.setitem(registry._WRITERS, "ReLU", lambda layer, graph: graph.op("Abs", layer.bottom))
    with pytest.raises(caffe.onnx.Mismatch, match="outputs of onnxruntime differ from the net's by more than 1e-05 .* fc: 10 of "
                                                "10 numbers do, by up to .* at .* the net has .* the other side .*--inputs "
                                                ".*--check=no"):
        caffe.onnx.export(_small(), tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_inputs_that_the_model_does_not_have():
    with pytest.raises(caffe.InvalidArgument, match="the model has no input y; its inputs: x0"):
        caffe.onnx.export(_small(), inputs={"y": 1})


def test_weights_beyond_the_limit_lie_in_a_second_file(tmp_path, monkeypatch):
    monkeypatch.setattr(storing, "LARGEST_MESSAGE", 1000)
    file = tmp_path / "net.onnx"
    net = nets.draw_weights(nets.net_with([(2, 40)], "layer { name: 'fc' type: 'InnerProduct' bottom: 'x0' top: 'fc' "
                                                     "inner_product_param { num_output: 50 } }"))
    report = caffe.onnx.export(net, file, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    stored = onnx.load(file)
    assert stored == report.model or caffe.onnx.run(stored, {"x0": np.ones((2, 40), np.float32)})["fc"].shape == (2, 50)


def test_a_model_file_and_weights(tmp_path):
    net = _small()
    (tmp_path / "net.prototxt").write_text(str(net.definition))
    net.save(tmp_path / "net.caffemodel")
    report = caffe.onnx.export(tmp_path / "net.prototxt", tmp_path / "net.onnx", tmp_path / "net.caffemodel")
    x = np.random.default_rng(0).uniform(-1, 1, (2, 3, 8, 8)).astype(np.float32)
    got = caffe.onnx.run(onnx.load(tmp_path / "net.onnx"), {"x0": x})["fc"]
    np.testing.assert_allclose(got, net.forward(x0=x)["fc"], rtol=1e-4, atol=1e-5)
    assert report.differences


def test_the_command(tmp_path):
    (tmp_path / "net.prototxt").write_text(str(_small().definition))
    done = nets.run_module("export", tmp_path / "net.prototxt", "-o", tmp_path / "net.onnx", "--opset", 17)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "input  x0 2x3x8x8"
    assert lines[1].startswith("output fc 2x5, largest difference ")
    assert lines[2] == f"wrote {tmp_path}/net.onnx: 3 nodes, opset 17" or "4 nodes" in lines[2]


def test_the_command_says_what_is_wrong(tmp_path):
    done = nets.run_module("export", tmp_path / "absent.prototxt", "-o", tmp_path / "net.onnx")
    assert done.returncode == 1 and done.stderr.startswith("caffe export: ") and "absent.prototxt" in done.stderr

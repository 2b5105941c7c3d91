"""ONNX's recurrent nodes become one layer each."""
import caffe
import caffe.onnx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

STEPS, ITEMS, INPUTS, WIDTH = 4, 2, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
LAYERS = {"LSTM": "LSTM", "GRU": "GRU", "RNN": "GRU"}
RANDOM = np.random.default_rng(6)


def draw(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def recurrent_model(kind, direction="forward", outputs=("y",), inputs=(), weights=(), names=None, **attributes):
    """A model of one node. inputs: further inputs of the model, by name and shape; names: those of the node's inputs from the fourth on."""
    directions = 2 if direction == "bidirectional" else 1
    arrays = {"w": draw(directions, GATES[kind] * WIDTH, INPUTS), "r": draw(directions, GATES[kind] * WIDTH, WIDTH),
              "b": draw(directions, 2 * GATES[kind] * WIDTH), **dict(weights)}
    node = helper.make_node(kind, ["x", "w", "r", *(names or ["b"])], outputs, "n", hidden_size=WIDTH, direction=direction, **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                      for name, shape in [("x", (STEPS, ITEMS, INPUTS)), *inputs]],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def kinds(result):
    return [layer.type for layer in result.net.layers if layer.type not in ("Input", "Split")]


def passes_agree(result):
    """No state goes from a pass to the next, because ONNX's nodes have none."""
    first = {name: array.copy() for name, array in result.net.forward().items()}
    return all((array == first[name]).all() for name, array in result.net.forward().items())


@pytest.mark.parametrize("direction, wanted", [
    ("forward", ["Parameter", "{}", "Reshape"]), ("bidirectional", ["Parameter", "{}", "Reshape", "Permute"]),
    ("reverse", ["Reverse", "Parameter", "{}", "Reverse", "Reshape"])])
@pytest.mark.parametrize("kind", GATES)
def test_outputs(kind, direction, wanted):
    result = caffe.onnx.import_model(recurrent_model(kind, direction))
    assert result.differences["y"] <= 1e-5 and passes_agree(result)
    assert kinds(result) == [one.format(LAYERS[kind]) for one in wanted]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_states_are_inputs_and_outputs(kind, direction):
    states = ["h", "c"][:1 + (kind == "LSTM")]
    shape = (2 if direction == "bidirectional" else 1, ITEMS, WIDTH)
    result = caffe.onnx.import_model(recurrent_model(
        kind, direction, ["y", *(f"{name}_last" for name in states)], [(name, shape) for name in states], names=["b", "", *states]))
    assert set(result.differences) == {"y", *(f"{name}_last" for name in states)}
    assert max(result.differences.values()) <= 1e-5 and passes_agree(result)
    assert LAYERS[kind] in kinds(result)


@pytest.mark.parametrize("kind", GATES)
def test_only_the_last_state_is_read(kind):
    result = caffe.onnx.import_model(recurrent_model(kind, outputs=["", "h"]))
    assert result.differences["h"] <= 1e-5 and list(result.net.outputs) == ["h"] and passes_agree(result)


def test_a_node_without_biases():
    assert caffe.onnx.import_model(recurrent_model("LSTM", names=[""])).differences["y"] <= 1e-5


def test_initial_states_that_are_constants():
    for state, layers in ((np.zeros((1, ITEMS, WIDTH), np.float32), ["Parameter", "GRU", "Reshape"]),
                          (draw(1, ITEMS, WIDTH), ["Parameter", "Parameter", "GRU", "Silence", "Reshape"])):
        result = caffe.onnx.import_model(recurrent_model("GRU", weights={"s": state}, names=["b", "", "s"]))
        assert result.differences["y"] <= 1e-5 and kinds(result) == layers and passes_agree(result)


def test_lengths_that_are_all_steps():
    for length, message in ((STEPS, None), (STEPS - 1, f"sequences shorter than the {STEPS} steps")):
        model = recurrent_model("LSTM", weights={"l": np.full(ITEMS, length, np.int32)}, names=["b", "l"])
        if message is None:
            assert caffe.onnx.import_model(model).differences["y"] <= 1e-5
            continue
        with pytest.raises(caffe.Unsupported, match=message):
            caffe.onnx.import_model(model)


@pytest.mark.parametrize("kind, attributes, message", [
    ("LSTM", {"clip": 2.0}, r"node 'n' \(LSTM\): clip; the layer does not limit its gates"),
    ("LSTM", {"input_forget": 1}, "input_forget"),
    ("RNN", {"activations": ["Relu"]}, "activations relu; the layer has tanh"),
])
def test_what_is_refused(kind, attributes, message):
    with pytest.raises(caffe.Unsupported, match=message):
        caffe.onnx.import_model(recurrent_model(kind, **attributes))


def test_peepholes_are_refused():
    model = recurrent_model("LSTM", weights={"p": draw(1, 3 * WIDTH)}, names=["b", "", "", "", "p"])
    with pytest.raises(caffe.Unsupported, match="peepholes"):
        caffe.onnx.import_model(model)


def test_items_before_steps_are_refused(monkeypatch):
    """onnxruntime does not compute such nodes, so the reader sees only the attribute."""
    from caffe.onnx.nodes import recurrent, registry
    read = registry.reader_of("GRU")

    def as_if(node):
        node.attributes["layout"] = 1
        read(node)
    monkeypatch.setitem(registry._READERS, "GRU", as_if)
    with pytest.raises(caffe.Unsupported, match="layout = 1; items come after steps"):
        caffe.onnx.import_model(recurrent_model("GRU"))
    assert recurrent.gru is read


def exported_module(torch, make, folder):
    """A module of two layers in both directions, which is in m.onnx."""
    torch.manual_seed(1)
    module = getattr(torch.nn, make)(INPUTS, WIDTH, num_layers=2, bidirectional=True).eval()
    torch.onnx.export(module, (torch.zeros(STEPS, ITEMS, INPUTS),), folder / "m.onnx", dynamo=False)
    return module


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_reset_gate_after_the_product(direction):
    result = caffe.onnx.import_model(recurrent_model("GRU", direction, linear_before_reset=1))
    assert result.differences["y"] <= 1e-5 and passes_agree(result)
    assert [layer.recurrent_param.reset_after for layer in result.definition.layer if layer.type == "GRU"] == [True]


@pytest.mark.parametrize("make", ["LSTM", "GRU", "RNN"])
def test_modules_of_pytorch(make, tmp_path):
    torch = pytest.importorskip("torch")
    module = exported_module(torch, make, tmp_path)
    result = caffe.onnx.import_model(tmp_path / "m.onnx")
    assert max(result.differences.values()) <= 1e-5 and kinds(result).count(LAYERS[make]) == 2
    x = draw(STEPS, ITEMS, INPUTS)
    with torch.no_grad():
        wanted = module(torch.from_numpy(x))[0].numpy()
    assert result.net.forward(**{result.net.inputs[0]: x})[result.net.outputs[0]] == pytest.approx(wanted, abs=1e-5)

"""Deploy nets of models/, with the fillers' weights and statistics of their inputs, at four versions of the operators.

Deep nets round: if the model differs by more than 1e-5 from the net, it must be as close to the net in double as the net in
float is. CAFFE_SLOW_TESTS=1 takes all nets; `pytest -s` shows the numbers of docs/onnx.md.
"""
import os

import caffe
import caffe.onnx
import nets
import numpy as np
import pytest
from caffe.onnx.differences import numbers

ALL = sorted((nets.ROOT / "models").rglob("*deploy*.prototxt"))
SMALL = ("cifar10_nv", "cifar10_resnet20")
NETS = ALL if os.environ.get("CAFFE_SLOW_TESTS") else [file for file in ALL if file.parent.name in SMALL]
BATCH = 2


def _name(file):
    return str(file.relative_to(nets.ROOT / "models"))


def _net_of(file):
    """The net, and the inputs that its statistics come from."""
    caffe.set_random_seed(1)
    net = caffe.Net(str(file), caffe.TEST)
    for name in net.inputs:
        net.blobs[name].reshape(min(BATCH, net.blobs[name].shape[0]), *net.blobs[name].shape[1:])
    net.reshape()
    generator = np.random.default_rng(1)
    inputs = {name: generator.uniform(-1, 1, net.blobs[name].shape).astype(np.float32) for name in net.inputs}
    return nets.learn_statistics(net, inputs), inputs


def _outputs_in(kind, net, inputs, names):
    """The net's outputs when it computes in a type."""
    definition = caffe.proto.caffe_pb2.NetParameter()
    definition.CopyFrom(net.definition)
    for field in ("forward_type", "backward_type", "forward_math", "backward_math"):
        setattr(definition, f"default_{field}", kind)
        for layer in definition.layer:
            layer.ClearField(field)
    twin = caffe.Net(definition, caffe.TEST)
    for name, blobs in net.params.items():
        for own, blob in zip(twin.params[name], blobs):
            own.data[...] = blob.data
    for name, array in inputs.items():
        twin.blobs[name].reshape(*array.shape)
    twin.reshape()
    for name, array in inputs.items():
        twin.blobs[name].data[...] = array
    twin.forward()
    return {name: twin.blobs[name].data.copy() for name in names}


def _largest(expected, found):
    return max(numbers(array, one[name]).relative for one in found for name, array in expected.items())


def _missing(rows, others):
    """The share of rows that have no similar row among the others. Boxes whose scores differ by rounding swap places."""
    distances = np.abs(rows[:, None] - others[None]).max(axis=2)
    return float((distances.min(axis=1) > 1e-4).mean())


@pytest.mark.parametrize("file", NETS, ids=_name)
def test_a_deploy_net(file):
    net, inputs = _net_of(file)
    numeric = caffe.onnx.export(net, check=False, detection="raw")
    given = {name: inputs[name] for name in numeric.inputs}
    names = list(numeric.outputs)
    floats = _outputs_in(caffe.proto.caffe_pb2.FLOAT, net, inputs, names)
    models = [caffe.onnx.export(net, opset=opset, check=False, detection="raw").model for opset in nets.OPSETS]
    got = [caffe.onnx.run(model, given) for model in models]
    largest = _largest(floats, got)
    print(f"\n{_name(file)}: {largest:.1e}", end="")
    if largest > 1e-5:
        doubles = _outputs_in(caffe.proto.caffe_pb2.DOUBLE, net, inputs, names)
        rounding, distance = _largest(doubles, [floats]), _largest(doubles, got)
        print(f"; from double: net {rounding:.1e}, model {distance:.1e}", end="")
        assert distance <= 1.5 * rounding
    for name in names:
        assert floats[name].size == 1 or floats[name].std() > 0, f"{name} is one number, so that there is nothing to compare"
    _compare_rows(net, inputs)


def _compare_rows(net, inputs):
    for layer in net.layers:
        if layer.type == "DetectionOutput":
            blob = layer.layer_param.top[0]
            report = caffe.onnx.export(net, check=False)
            got = caffe.onnx.run(report.model, {name: inputs[name] for name in report.inputs})[blob]
            expected = _outputs_in(caffe.proto.caffe_pb2.FLOAT, net, inputs, [blob])[blob]
            assert len(expected[0, 0]) > 10 and _missing(expected[0, 0], got[0, 0]) <= 0.01

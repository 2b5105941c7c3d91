"""Every exported net can be imported again, and computes the same, except for the types named here."""
import caffe.onnx
import nets
import pytest
from test_export_layers import CASES, GOLDENS

# Layers whose operators cannot be expressed as layers one by one: detection, regions, flow, and items chosen by the data.
NO_WAY_BACK = {"Correlation", "Correlation1D", "Downsample", "Filter", "FlowWarp", "Nms", "PSROIPooling", "ROIAlign", "ROIPooling",
               "SpatialTransformer", "Upsample"}


def _there_and_back(net):
    try:
        model = caffe.onnx.export(net, check=False).model
    except caffe.InvalidArgument as error:
        assert "no layer is left" in str(error)  # the net is only a loss
        return
    try:
        assert caffe.onnx.import_model(model).differences
    except caffe.Unsupported:
        assert NO_WAY_BACK & {layer.type for layer in net.layers}


@pytest.mark.parametrize("case", CASES)
def test_layers(case):
    shapes, layers = CASES[case]
    _there_and_back(nets.draw_weights(nets.net_with(shapes, layers)))


@pytest.mark.parametrize("file", [file for file in GOLDENS if nets.is_test_phase(file)], ids=lambda file: file.stem)
def test_recorded_nets(file):
    net, _ = nets.golden_net(file)
    if net is None:
        pytest.skip("needs a file of its own")
    _there_and_back(net)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("opset", nets.OPSETS)
def test_recurrent_layers(kind, opset):
    net = nets.draw_weights(nets.net_with([(5, 2, 3), (5, 2)], f"""
        layer {{ name: 'l' type: '{kind}' bottom: 'x0' bottom: 'x1' top: 'y'
                 recurrent_param {{ num_output: 4 weight_filler {{ type: 'uniform' }} }} }}"""))
    result = caffe.onnx.import_model(caffe.onnx.export(net, opset=opset).model)
    assert result.differences["y"] <= 1e-6
    assert list(result.net.inputs) == ["x0", "x1"]

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


@pytest.mark.parametrize("opset", nets.OPSETS)
def test_a_gpt_with_a_causal_mask(opset):
    """Tokens are an input, so that the importer has to recognize them as indices behind the Embed."""
    filler = "weight_filler { type: 'gaussian' std: 0.3 }"
    net = nets.draw_weights(nets.net_with([(2, 5)], f"""
        layer {{ name: 'positive' type: 'ReLU' bottom: 'x0' top: 'positive' }}
        layer {{ name: 'scaled' type: 'Power' bottom: 'positive' top: 'scaled' power_param {{ scale: 6 }} }}
        layer {{ name: 'e' type: 'Embed' bottom: 'scaled' top: 'e' embed_param {{ input_dim: 7 num_output: 8 {filler} }} }}
        layer {{ name: 'n' type: 'LayerNorm' bottom: 'e' top: 'n' }}
        layer {{ name: 'a' type: 'MultiHeadAttention' bottom: 'n' top: 'a'
                 attention_param {{ num_heads: 4 num_kv_heads: 2 causal: true rotary_base: 100 {filler} }} }}
        layer {{ name: 'r' type: 'Binary' bottom: 'e' bottom: 'a' top: 'r' }}
        layer {{ name: 'm' type: 'LayerNorm' bottom: 'r' top: 'm' }}
        layer {{ name: 'u' type: 'InnerProduct' bottom: 'm' top: 'u' inner_product_param {{ num_output: 16 axis: 2 {filler} }} }}
        layer {{ name: 'g' type: 'GELU' bottom: 'u' top: 'g' }}
        layer {{ name: 'd' type: 'InnerProduct' bottom: 'g' top: 'd' inner_product_param {{ num_output: 8 axis: 2 {filler} }} }}
        layer {{ name: 's' type: 'Binary' bottom: 'r' bottom: 'd' top: 's' }}
        layer {{ name: 'y' type: 'InnerProduct' bottom: 's' top: 'y' inner_product_param {{ num_output: 7 axis: 2 {filler} }} }}"""))
    result = caffe.onnx.import_model(caffe.onnx.export(net, opset=opset).model)
    assert result.differences["y"] <= 1e-4
    assert "Where" in {layer.type for layer in result.net.layers}


@pytest.mark.parametrize("opset", nets.OPSETS)
def test_a_vision_transformer(opset):
    """Patches, positions, two blocks with DropPath and LayerScale, and scores of the mean of all patches."""
    filler = "weight_filler { type: 'gaussian' std: 0.3 }"
    blocks = "".join(f"""
        layer {{ name: 'n{k}' type: 'LayerNorm' bottom: 'x{k}' top: 'n{k}' }}
        layer {{ name: 'a{k}' type: 'MultiHeadAttention' bottom: 'n{k}' top: 'a{k}' attention_param {{ num_heads: 2 {filler} }} }}
        layer {{ name: 'l{k}' type: 'LayerScale' bottom: 'a{k}' top: 'l{k}' }}
        layer {{ name: 'd{k}' type: 'DropPath' bottom: 'l{k}' top: 'd{k}' }}
        layer {{ name: 'r{k}' type: 'Eltwise' bottom: 'x{k}' bottom: 'd{k}' top: 'r{k}' }}
        layer {{ name: 'm{k}' type: 'LayerNorm' bottom: 'r{k}' top: 'm{k}' }}
        layer {{ name: 'u{k}' type: 'InnerProduct' bottom: 'm{k}' top: 'u{k}' inner_product_param {{ num_output: 16 axis: 2 {filler} }} }}
        layer {{ name: 'g{k}' type: 'GELU' bottom: 'u{k}' top: 'g{k}' }}
        layer {{ name: 'e{k}' type: 'InnerProduct' bottom: 'g{k}' top: 'e{k}' inner_product_param {{ num_output: 8 axis: 2 {filler} }} }}
        layer {{ name: 'x{k + 1}' type: 'Eltwise' bottom: 'r{k}' bottom: 'e{k}' top: 'x{k + 1}' }}""" for k in (1, 2))
    net = nets.draw_weights(nets.net_with([(2, 3, 8, 12)], f"""
        layer {{ name: 'p' type: 'PatchEmbed' bottom: 'x0' top: 'p' patch_embed_param {{ num_output: 8 patch_size: 4 {filler} }} }}
        layer {{ name: 'x1' type: 'Bias' bottom: 'p' top: 'x1' bias_param {{ axis: 1 num_axes: 2 }} }}{blocks}
        layer {{ name: 'n' type: 'LayerNorm' bottom: 'x3' top: 'n' }}
        layer {{ name: 't' type: 'Permute' bottom: 'n' top: 't' permute_param {{ order: [0, 2, 1] }} }}
        layer {{ name: 'm' type: 'Reduction' bottom: 't' top: 'm' reduction_param {{ operation: MEAN axis: 2 }} }}
        layer {{ name: 'y' type: 'InnerProduct' bottom: 'm' top: 'y' inner_product_param {{ num_output: 5 {filler} }} }}"""))
    result = caffe.onnx.import_model(caffe.onnx.export(net, opset=opset).model)
    assert abs(result.net.forward()["y"]).max() > 0.1
    assert result.differences["y"] <= 1e-5

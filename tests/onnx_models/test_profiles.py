"""Profiles of chips: their files, and the results of export() with them."""
import json
import re

import caffe
import caffe.onnx
import nets
import numpy as np
import pytest
from caffe.onnx import rewrites

ALL = caffe.onnx.profile_names()
PROFILES = [name for name in ALL if caffe.onnx.load_profile(name).format == "onnx"]


def _layer(kind, options="", bottoms=("x0",)):
    reads = " ".join(f"bottom: '{name}'" for name in bottoms)
    return f"layer {{ name: 'l' type: '{kind}' {reads} top: 'y' {options} }}"


def _net(shape, kind, options=""):
    return nets.draw_weights(nets.net_with([shape], _layer(kind, options)))


def _kinds(report):
    return [node.op_type for node in report.model.graph.node]


def _file(folder, **changes):
    """A profile that takes nothing, except for the changes."""
    table = {"title": "a chip", "opset": {"default": 13}, "operators": {},
             "sources": [{"page": "p", "version": "1", "read": "2026-01-01", "says": "all"}]}
    table.update(changes)
    path = folder / "chip.json"
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}, indent=1))
    return path


def _but_for(*operators):
    """All ONNX operators that a net may need, except these."""
    names = {name for chip in PROFILES for name in caffe.onnx.load_profile(chip).operators} | {"Gelu", "Mish", "HardSwish"}
    return {name: {} for name in names - set(operators)}


def test_five_chips_are_known():
    assert set(PROFILES) >= {"rknn2", "sophgo", "ascend310", "tflite", "opencv5"}


@pytest.mark.parametrize("name", ALL)
def test_a_profile_says_where_its_facts_are_from(name):
    chip = caffe.onnx.load_profile(name)
    for source in chip.sources:
        assert source["page"].startswith("https://") and re.fullmatch(r"\d{4}-\d\d-\d\d", source["read"]), source
    assert chip.not_verified
    assert not set(chip.absent) - {"Softplus"} & set(chip.operators)


@pytest.mark.parametrize("name", ALL)
def test_a_classifier_fits_each_chip(name):
    net = nets.draw_weights(nets.net_with([(1, 3, 16, 16)], """
        layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }
        layer { name: 'b' type: 'BatchNorm' bottom: 'c' top: 'c' }
        layer { name: 'r' type: 'ReLU6' bottom: 'c' top: 'c' }
        layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: AVE global_pooling: true } }
        layer { name: 'f' type: 'InnerProduct' bottom: 'p' top: 'f' inner_product_param { num_output: 5 } }
        layer { name: 's' type: 'Softmax' bottom: 'f' top: 's' }"""))
    report = caffe.onnx.export(net, profile=name, check=True)
    assert not report.problems and (report.model is None or report.model.opset_import[0].version == 13)
    assert max(report.differences.values()) <= 1e-5


# A layer and its bottom, the operator that a chip lacks, an opset in which the exporter writes it, and its replacement.
REWRITES = {
    "clip_as_relu_and_min": ("ReLU6", "", "Clip", 11, ["Relu", "Min"]),
    "clip_as_max_and_min": ("Clip", "clip_param { min: -0.5 max: 0.25 }", "Clip", 11, ["Max", "Min"]),
    "abs_as_max": ("AbsVal", "", "Abs", 11, ["Mul", "Max"]),
    "hard_swish_as_hard_sigmoid": ("HardSwish", "", "HardSwish", 14, ["HardSigmoid", "Mul"]),
    "hard_sigmoid_as_clip": ("HardSigmoid", "", "HardSigmoid", 11, ["Mul", "Add", "Clip"]),
    "mish_as_softplus": ("Mish", "", "Mish", 18, ["Softplus", "Tanh", "Mul"]),
    "softplus_as_log": ("BNLL", "", "Softplus", 11, ["Relu", "Mul", "Sub", "Relu", "Exp", "Add", "Log", "Add"]),
    "gelu_as_erf": ("GELU", "", "Gelu", 20, ["Mul", "Erf", "Mul", "Add", "Mul"]),
    "elu_as_exp": ("ELU", "elu_param { alpha: 0.7 }", "Elu", 11, ["Min", "Exp", "Add", "Relu", "Mul", "Add"]),
    "prelu_as_relu": ("PReLU", "", "PRelu", 11, ["Mul", "Relu", "Relu", "Mul", "Sub"]),
    "reduce_l1_as_sum": ("Reduction", "reduction_param { operation: ASUM axis: 1 }", "ReduceL1", 11, ["Abs", "ReduceSum"]),
    "reduce_sum_square_as_sum": ("Reduction", "reduction_param { operation: SUMSQ axis: 1 }", "ReduceSumSquare", 11,
                                 ["Mul", "ReduceSum"]),
    "top_1_as_arg_max": ("ArgMax", "argmax_param { axis: 1 }", "TopK", 11, ["Slice", "ArgMax", "Sub", "Cast"]),
    "turned_slice_as_gather": ("Reverse", "reverse_param { axis: 1 }", "Slice", 11, ["Gather"]),
    "slice_as_split": ("Crop", "crop_param { axis: 1 offset: 2 offset: 0 offset: 0 }", "Slice", 11, ["Split"]),
    "layer_normalization_as_means": ("LayerNorm", "", "LayerNormalization", 17,
                                     ["ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"]),
    "batch_normalization_as_scale": ("BatchNorm", "", "BatchNormalization", 11, ["Mul", "Add"]),
    "gemm_as_convolution": ("InnerProduct", "inner_product_param { num_output: 3 }", "Gemm", 11,
                            ["Reshape", "Reshape", "Conv", "Reshape"]),
    "nearest_resize_as_gather": ("Upsample", "upsample_param { scale: 2 }", "Resize", 11, ["Gather", "Gather"]),
    "linear_resize_as_products": ("Interp", "interp_param { height: 7 width: 9 }", "Resize", 11, ["MatMul", "MatMul"]),
    "reduce_mean_by_axis": ("MVN", "mvn_param { normalize_variance: false }", "ReduceMean", 11, ["ReduceMean", "ReduceMean", "Sub"]),
    "padding_as_pad": ("Convolution", "convolution_param { num_output: 2 kernel_size: 1 pad: 1 }", "Conv", 11, ["Pad", "Conv"]),
}


def test_all_rewrites_are_checked():
    assert set(REWRITES) == set(rewrites.rewrite_names())


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_computes_the_same(name, opset, tmp_path):
    kind, options, operator, first_opset, written = REWRITES[name]
    if opset < first_opset:
        pytest.skip(f"{operator} is not written at this opset")
    if kind == "Crop":
        net = nets.net_with([(2, 7, 4, 5), (2, 3, 4, 5)], _layer(kind, options, ("x0", "x1")))
    else:
        net = _net((2, 3, 4, 5), kind, options)
    always = name in ("reduce_mean_by_axis", "padding_as_pad")  # these write the operator again
    chip = _file(tmp_path, operators=_but_for(*([] if always else [operator])), opset={"default": opset},
                 **{"always" if always else "rewrites": [name]})
    report = caffe.onnx.export(net, profile=chip, check=True, tolerance=1e-5)
    if opset == max(13, first_opset):
        assert _kinds(report) == written
    assert report.rewritten == {f"layer 'l' ({kind})": [rewrites.rewrite_of(name).text]}


def test_a_rewrite_may_write_what_is_rewritten(tmp_path):
    chip = _file(tmp_path, operators=_but_for("HardSwish", "HardSigmoid", "Clip"), opset={"default": 17},
                 rewrites=["hard_swish_as_hard_sigmoid", "hard_sigmoid_as_clip", "clip_as_relu_and_min"])
    report = caffe.onnx.export(_net((2, 3, 4, 5), "HardSwish"), profile=chip, check=True)
    assert _kinds(report) == ["Mul", "Add", "Relu", "Min", "Mul"]
    assert len(report.rewritten["layer 'l' (HardSwish)"]) == 3


def test_all_that_a_chip_does_not_take_is_in_one_error(tmp_path):
    net = nets.net_with([(2, 3, 4, 5), (2, 5), (2, 1), (2, 4)], """
        layer { name: 'a' type: 'AbsVal' bottom: 'x0' top: 'a' }
        layer { name: 's' type: 'Softmax' bottom: 'a' top: 's' }
        layer { name: 'f' type: 'BoxAnnotatorOHEM' bottom: 'x1' bottom: 'x2' bottom: 'x2' bottom: 'x3' top: 'l' top: 'w'
                box_annotator_ohem_param { roi_per_img: 1 } }
        layer { name: 't' type: 'TanH' bottom: 's' top: 't' }""")
    with pytest.raises(caffe.Unsupported) as found:
        caffe.onnx.export(net, profile=_file(tmp_path, operators={"Softmax": {"batch": 1}}, absent={"Tanh": "it has no table"}))
    for text in ("layer 'f' (BoxAnnotatorOHEM): it prepares training", "layer 'a' (AbsVal): Abs: it is not among the operators of chip",
                 "layer 's' (Softmax): Softmax: a batch of 2, and the chip takes 1: --batch 1", "Tanh: it has no table"):
        assert text in str(found.value)


def test_what_is_refused_can_be_written_all_the_same(tmp_path):
    net, file = _net((2, 3), "AbsVal"), tmp_path / "net.onnx"
    with pytest.raises(caffe.Unsupported, match=r"chip does not take layer 'l' \(AbsVal\): Abs"):
        caffe.onnx.export(net, file, profile=_file(tmp_path))
    assert not file.exists()
    report = caffe.onnx.export(net, file, profile=_file(tmp_path), allow_unsupported=True)
    assert report.problems == ["layer 'l' (AbsVal): Abs: it is not among the operators of chip"] and file.exists()


@pytest.mark.parametrize("limit, options, text", [
    ({"most": {"strides": 2}}, "stride: 3", r"strides \[3, 3\], and the chip takes 2"),
    ({"most": {"kernel_shape": 2}}, "", r"kernel_shape \[3, 3\], and the chip takes 2"),
    ({"width": 15}, "", "an image 16 wide, and the chip takes 15"),
    ({"batch": 1}, "", "a batch of 2, and the chip takes 1"),
    ({"values": {"group": [1]}}, "group: 3", "group 3, and the chip takes 1"),
    ({"padded_kernel": 4}, "pad: 1", "a kernel of 3x3 with padding"),
])
def test_limits(tmp_path, limit, options, text):
    net = _net((2, 3, 16, 16), "Convolution", f"convolution_param {{ num_output: 3 kernel_size: 3 {options} }}")
    with pytest.raises(caffe.Unsupported, match=text):
        caffe.onnx.export(net, profile=_file(tmp_path, operators={"Conv": limit}))
    loose = {name: 16 if isinstance(value, int) else {} for name, value in limit.items() if name != "padded_kernel"}
    assert not caffe.onnx.export(net, profile=_file(tmp_path, operators={"Conv": loose})).problems


def test_a_mean_of_several_axes(tmp_path):
    operators = {**_but_for(), "ReduceMean": {"joint_axes": 3}}
    with pytest.raises(caffe.Unsupported, match=r"ReduceMean: axes \[2, 3\] at once"):
        caffe.onnx.export(_net((2, 3, 4, 5), "MVN"), profile=_file(tmp_path, operators=operators))


def test_the_batch_is_an_option(tmp_path):
    (tmp_path / "net.prototxt").write_text(str(_net((7, 3), "Softmax").definition))
    done = nets.run_module("export", tmp_path / "net.prototxt", "-o", tmp_path / "net.onnx", "--profile", "rknn2")
    assert done.returncode == 1 and "a batch of 7, and the chip takes 1: --batch 1" in done.stderr
    done = nets.run_module("export", tmp_path / "net.prototxt", "-o", tmp_path / "net.onnx", "--profile", "rknn2", "--batch", 1)
    assert done.returncode == 0 and done.stdout.startswith("input  x0 1x3\n"), done.stderr
    with pytest.raises(caffe.InvalidArgument, match="batch is 0; it must be at least 1"):
        caffe.onnx.export(tmp_path / "net.prototxt", batch=0)
    with pytest.raises(caffe.InvalidArgument, match="a batch goes with a prototxt"):
        caffe.onnx.export(_net((7, 3), "Softmax"), batch=1)


def test_the_command_tells_what_it_did(tmp_path):
    (tmp_path / "net.prototxt").write_text(str(_net((2, 3), "AbsVal").definition))
    done = nets.run_module("export", tmp_path / "net.prototxt", "-o", tmp_path / "net.onnx", "--profile", "rknn2")
    assert done.stdout.startswith("rewritten: layer 'l' (AbsVal): Abs as Max of both signs\n"), done.stderr
    chip = _file(tmp_path)
    done = nets.run_module("export", tmp_path / "net.prototxt", "-o", tmp_path / "net.onnx", "--profile", chip,
                           "--allow-unsupported")
    assert done.returncode == 0
    assert done.stderr == "warning: layer 'l' (AbsVal): Abs: it is not among the operators of chip\n"


def test_chips_are_listed():
    lines = nets.run_module("profiles").stdout.splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == ALL
    assert "  opset 13 (from 12 to 19), 87 operators, DetectionOutput raw" in lines


def test_caffes_own_files(tmp_path):
    net = nets.draw_weights(nets.net_with([(2, 3, 8, 8)], """
        layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 } }
        layer { name: 'd' type: 'Dropout' bottom: 'c' top: 'd' }
        layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'd' }
        layer { name: 'f' type: 'InnerProduct' bottom: 'd' top: 'f' inner_product_param { num_output: 5 } }"""))
    report = caffe.onnx.export(net, tmp_path / "net.prototxt", profile="ascend310_caffe")
    assert report.rewritten == {"layer 'd' (Dropout)": ["left out, as it does nothing here"]}
    assert report.differences == {"f": 0} and report.model is None
    again = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST, weights=str(tmp_path / "net.caffemodel"))
    assert [layer.type for layer in again.layers if layer.type != "Split"] == ["Input", "Convolution", "ReLU", "InnerProduct"]
    np.testing.assert_array_equal(again.params["f"][0].data, net.params["f"][0].data)


def test_layers_that_a_toolchain_of_caffes_files_does_not_take(tmp_path):
    net, file = _net((2, 3), "GELU"), tmp_path / "net.prototxt"
    with pytest.raises(caffe.Unsupported, match=r"rknn2_caffe does not take layer 'l' \(GELU\): GELU: it is not among the layers"):
        caffe.onnx.export(net, file, profile="rknn2_caffe")
    assert not list(tmp_path.iterdir())
    assert caffe.onnx.export(net, file, profile="rknn2_caffe", allow_unsupported=True).problems and file.exists()
    (tmp_path / "mish.prototxt").write_text(str(_net((2, 3), "Mish").definition))
    done = nets.run_module("export", tmp_path / "mish.prototxt", "-o", file, "--profile", "sophgo_caffe")
    assert done.stdout.endswith(f"wrote {file} and {tmp_path}/net.caffemodel\n"), done.stderr


# A layer, the types that a toolchain takes, and the layers that replace it.
LAYER_REWRITES = {
    "bias_as_scale": ("Bias", "", ["Scale"], ["Scale"]),
    "power_as_scale": ("Power", "power_param { scale: 1.5 shift: -0.25 }", ["Scale"], ["Scale"]),
    "relu6_as_relu6_of_6": ("ReLU6", "relu6_param { threshold: 0.5 }", ["Power", "ReLU6"], ["Power", "ReLU6", "Power"]),
    "relu6_as_relu": ("ReLU6", "relu6_param { threshold: 0.5 }", ["Power", "ReLU"], ["ReLU", "Power", "ReLU", "Power"]),
    "clip_as_relu": ("Clip", "clip_param { min: -0.5 max: 0.25 }", ["Power", "ReLU"],
                     ["Power", "ReLU", "Power", "Power", "ReLU", "Power"]),
    "hard_sigmoid_as_relu6": ("HardSigmoid", "hard_sigmoid_param { alpha: 0.9 beta: 0.4 }", ["Power", "ReLU6"],
                              ["Power", "ReLU6", "Power"]),
    "hard_swish_as_hard_sigmoid": ("HardSwish", "", ["HardSigmoid", "Eltwise"], ["HardSigmoid", "Eltwise"]),
    "swish_as_sigmoid": ("Swish", "swish_param { beta: 1.5 }", ["Power", "Sigmoid", "Eltwise"], ["Power", "Sigmoid", "Eltwise"]),
    "mish_as_softplus": ("Mish", "", ["BNLL", "TanH", "Eltwise"], ["BNLL", "TanH", "Eltwise"]),
    "abs_as_max": ("AbsVal", "", ["Power", "Eltwise"], ["Power", "Eltwise"]),
}


def _caffe_file(folder, operators, names):
    limited = {kind: {"values": {"threshold": [6]}} if kind == "ReLU6" else {} for kind in operators}
    return _file(folder, format="caffe", opset=None, operators=limited, rewrites=names)


def _written(folder):
    """The types of the layers in the written net, without its input."""
    net = caffe.Net(str(folder / "net.prototxt"), caffe.TEST, weights=str(folder / "net.caffemodel"))
    return [layer.type for layer in net.layers if layer.type not in ("Input", "Split")]


def test_all_rewrites_of_layers_are_checked():
    assert {*LAYER_REWRITES, "bias_into_product"} == set(rewrites.rewrite_names("caffe"))


@pytest.mark.parametrize("top", ["y", "x0"])
@pytest.mark.parametrize("name", LAYER_REWRITES)
def test_a_rewrite_of_a_layer_computes_the_same(name, top, tmp_path):
    """Also for an in-place layer."""
    kind, options, operators, written = LAYER_REWRITES[name]
    layer = _layer(kind, options).replace("top: 'y'", f"top: '{top}'")
    net = nets.draw_weights(nets.net_with([(2, 3, 4, 5)], layer + f"""
        layer {{ name: 'r' type: 'ReLU' bottom: '{top}' top: '{top}' relu_param {{ negative_slope: -0.5 }} }}
        layer {{ name: 't' type: 'TanH' bottom: '{top}' top: 'z' }}"""))
    inputs = {"x0": np.random.default_rng(2).uniform(-8, 8, (2, 3, 4, 5)).astype(np.float32)}
    chip = _caffe_file(tmp_path, [*operators, "ReLU", "TanH"], [name])
    report = caffe.onnx.export(net, tmp_path / "net.prototxt", profile=chip, check=True, inputs=inputs, tolerance=1e-6)
    assert report.differences.keys() == {"z"}
    assert report.rewritten == {f"layer 'l' ({kind})": [rewrites.rewrite_of(name, "caffe").text]}
    assert _written(tmp_path) == [*written, "ReLU", "TanH"]


@pytest.mark.parametrize("name", [name for name in ALL if name not in PROFILES])
@pytest.mark.parametrize("kind", ["Bias", "HardSigmoid", "HardSwish", "SiLU"])
def test_toolchains_of_caffes_files_get_what_import_writes(kind, name, tmp_path):
    report = caffe.onnx.export(_net((2, 3, 4, 5), kind), tmp_path / "net.prototxt", profile=name, check=True, tolerance=1e-6)
    assert not report.problems
    assert set(_written(tmp_path)) <= set(caffe.onnx.load_profile(name).operators)


def test_a_layer_in_place_of_a_blob_that_others_read(tmp_path):
    net = nets.draw_weights(nets.net_with([(2, 3, 4, 5)], """
        layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 3 kernel_size: 1 } }
        layer { name: 't' type: 'TanH' bottom: 'c' top: 't' }
        layer { name: 'd' type: 'Dropout' bottom: 'c' top: 'd' }
        layer { name: 'h' type: 'HardSwish' bottom: 'c' top: 'c' }
        layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' }
        layer { name: 'u' type: 'TanH' bottom: 'd' top: 'u' }"""))
    chip = _caffe_file(tmp_path, ["Convolution", "TanH", "ReLU", "ReLU6", "Scale", "Eltwise"],
                       ["hard_swish_as_hard_sigmoid", "hard_sigmoid_as_relu6", "power_as_scale"])
    report = caffe.onnx.export(net, tmp_path / "net.prototxt", profile=chip, check=True, tolerance=1e-6)
    assert report.differences.keys() == {"c", "t", "u"}
    assert len(report.rewritten["layer 'h' (HardSwish)"]) == 3
    definition = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST).definition
    makers = [(top, layer.name) for layer in definition.layer for top in layer.top if top not in layer.bottom]
    assert len(makers) == len(dict(makers)), "a blob that two layers make"


def test_an_input_that_is_an_output_in_place_is_left_alone(tmp_path):
    net = nets.net_with([(2, 3)], "layer { name: 'h' type: 'HardSwish' bottom: 'x0' top: 'x0' }")
    chip = _caffe_file(tmp_path, ["HardSigmoid", "Eltwise"], ["hard_swish_as_hard_sigmoid"])
    with pytest.raises(caffe.Unsupported, match=r"layer 'h' \(HardSwish\): HardSwish: it is not among the layers of chip"):
        caffe.onnx.export(net, profile=chip)


_PRODUCTS = {
    "Convolution": "convolution_param { num_output: 4 kernel_size: 1 bias_term: %s }",
    "Deconvolution": "convolution_param { num_output: 4 kernel_size: 2 bias_term: %s }",
    "InnerProduct": "inner_product_param { num_output: 4 bias_term: %s }",
}


@pytest.mark.parametrize("top", ["p", "b"])
@pytest.mark.parametrize("own", ["true", "false"])
@pytest.mark.parametrize("kind", _PRODUCTS)
def test_a_bias_is_part_of_the_product_before_it(kind, own, top, tmp_path):
    net = nets.draw_weights(nets.net_with([(2, 3, 4, 5)], f"""
        layer {{ name: 'p' type: '{kind}' bottom: 'x0' top: 'p' {_PRODUCTS[kind] % own} }}
        layer {{ name: 'b' type: 'Bias' bottom: 'p' top: '{top}' }}
        layer {{ name: 'r' type: 'ReLU' bottom: '{top}' top: '{top}' }}"""))
    chip = _caffe_file(tmp_path, [kind, "ReLU", "Scale"], ["bias_into_product", "bias_as_scale"])
    report = caffe.onnx.export(net, tmp_path / "net.prototxt", profile=chip, check=True, tolerance=1e-6)
    assert report.rewritten == {"layer 'b' (Bias)": ["Bias as part of the convolution or product before it"]}
    assert _written(tmp_path) == [kind, "ReLU"]
    weights = net.params["p"]
    assert len(weights) == (2 if own == "true" else 1), "the net itself has changed"
    again = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST, weights=str(tmp_path / "net.caffemodel")).params["p"]
    before = weights[1].data if own == "true" else 0
    np.testing.assert_allclose(again[1].data, before + net.params["b"][0].data, rtol=1e-6)


@pytest.mark.parametrize("reason, product, behind", [
    ("another reader before it", "top: 'p'", "layer { name: 't' type: 'TanH' bottom: 'p' top: 't' } BIAS"),
    ("another reader behind it", "top: 'p'", "BIAS layer { name: 't' type: 'TanH' bottom: 'p' top: 't' }"),
    ("a reader of the same by another name", "top: 'p'", """layer { name: 'd' type: 'Dropout' bottom: 'p' top: 'd' } BIAS
        layer { name: 't' type: 'TanH' bottom: 'd' top: 't' }"""),
    ("weights that are shared", "top: 'p' param { name: 'w' }", """BIAS layer { name: 'q' type: 'Convolution' bottom: 'x0' top: 't'
        param { name: 'w' } convolution_param { num_output: 3 kernel_size: 1 bias_term: false } }"""),
    ("something in between", "top: 'p'", "layer { name: 't' type: 'TanH' bottom: 'p' top: 'p' } BIAS"),
    ("another axis", "top: 'p'", "layer { name: 'b' type: 'Bias' bottom: 'p' top: 'b' bias_param { axis: 2 } }"),
])
def test_a_bias_that_is_no_part_of_the_product_before_it(reason, product, behind, tmp_path):
    bias = "layer { name: 'b' type: 'Bias' bottom: 'p' top: 'b' }"
    net = nets.draw_weights(nets.net_with([(2, 3, 3, 5)], f"""
        layer {{ name: 'p' type: 'Convolution' bottom: 'x0' {product}
                 convolution_param {{ num_output: 3 kernel_size: 1 bias_term: false }} }} {behind.replace("BIAS", bias)}"""))
    chip = _caffe_file(tmp_path, ["Convolution", "TanH", "Scale"], ["bias_into_product", "bias_as_scale"])
    report = caffe.onnx.export(net, profile=chip, check=True, tolerance=1e-6)
    assert report.rewritten["layer 'b' (Bias)"] == ["Bias as Scale by 1 with a bias"], reason


def test_a_bias_in_place_is_part_of_the_product_whoever_reads_it_later(tmp_path):
    net = nets.draw_weights(nets.net_with([(2, 3, 4, 5)], """
        layer { name: 'p' type: 'Convolution' bottom: 'x0' top: 'p' convolution_param { num_output: 3 kernel_size: 1 } }
        layer { name: 'b' type: 'Bias' bottom: 'p' top: 'p' }
        layer { name: 't' type: 'TanH' bottom: 'p' top: 't' }
        layer { name: 'u' type: 'Sigmoid' bottom: 'p' top: 'u' }"""))
    chip = _caffe_file(tmp_path, ["Convolution", "TanH", "Sigmoid"], ["bias_into_product"])
    report = caffe.onnx.export(net, profile=chip, check=True, tolerance=1e-6)
    assert report.rewritten.keys() == {"layer 'b' (Bias)"} and report.differences.keys() == {"t", "u"}


def test_a_rewrite_whose_layers_are_not_taken_is_not_used(tmp_path):
    net = _net((2, 3), "HardSwish")
    chip = _caffe_file(tmp_path, ["HardSigmoid"], ["hard_swish_as_hard_sigmoid"])
    with pytest.raises(caffe.Unsupported, match=r"layer 'l' \(HardSwish\): HardSwish: it is not among the layers of chip"):
        caffe.onnx.export(net, profile=chip)


@pytest.mark.parametrize("form", ["caffe", "onnx"])
def test_an_error_gives_a_reason_once(form, tmp_path):
    layers = [f"layer {{ name: 'a{k}' type: 'AbsVal' bottom: 'x0' top: 'a{k}' }}" for k in range(6)]
    net = nets.net_with([(2, 3)], "\n".join([*layers, "layer { name: 't' type: 'TanH' bottom: 'x0' top: 't' }"]))
    chip = _caffe_file(tmp_path, [], []) if form == "caffe" else _file(tmp_path)
    what, kinds = ("layers", ["AbsVal", "TanH"]) if form == "caffe" else ("operators", ["Abs", "Tanh"])
    reasons = [f"{kind}: it is not among the {what} of chip" for kind in kinds]
    with pytest.raises(caffe.Unsupported) as found:
        caffe.onnx.export(net, profile=chip)
    assert str(found.value) == (f"chip does not take layers 'a0', 'a1', 'a2' and 3 more (AbsVal): {reasons[0]}; "
                                f"layer 't' (TanH): {reasons[1]}")
    assert len(caffe.onnx.export(net, profile=chip, allow_unsupported=True).problems) == 7


def test_box_voting_is_not_in_toolchains_that_read_caffes_files():
    head = nets.net_with([(1, 16), (1, 8), (1, 2, 16)], """
        layer { name: 'd' type: 'DetectionOutput' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'd'
                detection_output_param { num_classes: 2 vote_threshold: 0.5 } }""")
    with pytest.raises(caffe.Unsupported, match="vote_threshold 0.5, and the chip takes 0"):
        caffe.onnx.export(head, profile="sophgo_caffe")


def test_the_detection_head_is_the_profiles(tmp_path):
    head = nets.net_with([(1, 16), (1, 8), (1, 2, 16)], """
        layer { name: 'd' type: 'DetectionOutput' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'd'
                detection_output_param { num_classes: 2 nms_param { nms_threshold: 0.4 } keep_top_k: 3 } }""")
    assert caffe.onnx.load_profile("rknn2").detection == "raw"
    with pytest.raises(caffe.InvalidArgument, match="no layer is left"):
        caffe.onnx.export(head, profile="rknn2")


@pytest.mark.parametrize("name", ALL)
def test_the_page_names_each_profile(name):
    page = (nets.ROOT / "docs" / "onnx.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    chip = caffe.onnx.load_profile(name)
    words = chip.opsets.replace("from ", "") if chip.format == "onnx" and "from" in chip.opset else ""
    assert len(rows) == 1 and words in rows[0]
    assert chip.format == "onnx" or f"| {len(chip.operators)}" in rows[0]


def test_an_opset_that_the_chip_does_not_take():
    with pytest.raises(caffe.InvalidArgument, match="opset is 11; rknn2 takes from 12 to 19"):
        caffe.onnx.export(_net((2, 3), "ReLU"), profile="rknn2", opset=11)


def test_a_profile_that_is_not_there(tmp_path):
    with pytest.raises(caffe.InvalidArgument, match=f"there is no profile 'chip'; there are {', '.join(ALL)}"):
        caffe.onnx.load_profile("chip")
    with pytest.raises(caffe.IoError, match="absent.json: No such file"):
        caffe.onnx.load_profile(tmp_path / "absent.json")


SOURCES = [{"page": "p", "version": "1", "read": "d", "says": "s"}]


@pytest.mark.parametrize("changes, line, text", [
    ({"title": 3}, 2, "title: must be a text"),
    ({"title": None}, 1, "title is missing"),
    ({"opset": None}, 1, "opset is missing"),
    ({"format": "caffe"}, 3, 'opset: is for models in ONNX; this profile\'s format is "caffe"'),
    ({"format": "text"}, 15, 'format: must be "onnx" or "caffe"'),
    ({"opset": {"default": 13, "to": 12}}, 3, "opset: must be a table"),
    ({"operators": {"Conv": 1}}, 6, "operators: must be a table of tables"),
    ({"operators": {"Add": {}, "Conv": {"widths": 3}}}, 9, "Conv: there is no limit of this name; there are batch, "),
    ({"operators": {"Conv": {"width": "3"}}}, 8, "Conv: is '3'; it must be a number"),
    ({"operators": {"Conv": {"most": 3}}}, 8, "Conv: is 3; it must be a table"),
    ({"sources": []}, 7, "a profile says where its facts are from"),
    ({"sources": [{"page": "p"}]}, 8, "a source needs a text as its version"),
    ({"detection": "none"}, 15, 'detection: must be "nms" or "raw"'),
    ({"rewrites": ["nothing"]}, 15, "there is no rewrite 'nothing'; there are abs_as_max, "),
    ({"opset": None, "format": "caffe", "rewrites": ["abs_as_relu"]}, 13, "there is no rewrite 'abs_as_relu'; there are abs_as_max, "),
    ({"opset": None, "format": "caffe", "always": []}, 13, "always: is for models in ONNX"),
    ({"opsets": 3}, 15, "a profile has no such key; it has title, "),
])
def test_a_wrong_file_is_told_by_line(tmp_path, changes, line, text):
    with pytest.raises(caffe.InvalidArgument, match=re.escape(text)) as found:
        caffe.onnx.load_profile(_file(tmp_path, **changes))
    assert str(found.value).startswith(f"{tmp_path}/chip.json:{line}: "), found.value


@pytest.mark.parametrize("text, message", [
    ('{"title": "a",\n  "opset" 3}', "chip.json:2: Expecting ':' delimiter"),
    ("[1]", "chip.json:1: a profile is a table"),
    ("[" * 100000, "chip.json: tables in tables without end"),
    ("\udcff", "chip.json: 'utf-8' codec"),
])
def test_a_file_that_is_no_profile(tmp_path, text, message):
    (tmp_path / "chip.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(caffe.InvalidArgument, match=re.escape(message)):
        caffe.onnx.load_profile(tmp_path / "chip.json")



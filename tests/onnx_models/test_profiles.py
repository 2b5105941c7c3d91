"""Profiles of chips: their files, and what export() makes of nets for them."""
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
    """A profile that takes nothing, but for the changes."""
    table = {"title": "a chip", "opset": {"default": 13}, "operators": {},
             "sources": [{"page": "p", "version": "1", "read": "2026-01-01", "says": "all"}]}
    table.update(changes)
    path = folder / "chip.json"
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}, indent=1))
    return path


def _but_for(*operators):
    """All operators of ONNX that a net may need, without these."""
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


# A layer and its bottom, the operator that a chip lacks, an opset where the exporter writes it, and what stands in its place.
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
    always = name in ("reduce_mean_by_axis", "padding_as_pad")  # they write the operator again
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
    net, file = _net((2, 3), "Mish"), tmp_path / "net.prototxt"
    with pytest.raises(caffe.Unsupported, match=r"rknn2_caffe does not take layer 'l' \(Mish\): Mish: it is not among the layers"):
        caffe.onnx.export(net, file, profile="rknn2_caffe")
    assert not list(tmp_path.iterdir())
    assert caffe.onnx.export(net, file, profile="rknn2_caffe", allow_unsupported=True).problems and file.exists()
    (tmp_path / "mish.prototxt").write_text(str(net.definition))
    done = nets.run_module("export", tmp_path / "mish.prototxt", "-o", file, "--profile", "sophgo_caffe")
    assert done.stdout.endswith(f"wrote {file} and {tmp_path}/net.caffemodel\n"), done.stderr


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



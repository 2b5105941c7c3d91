"""Definitions like those in repositories of Caffe's forks: each field is known, and the nets run."""
import json

import pytest

from programs import ROOT

FILES = sorted((ROOT / "tests/smoke/forks").glob("*.prototxt"))


# Features of forks that Cortado does not have: a layer, and the name at the position that the error gives.
UNSUPPORTED = {
    "denser_prior_boxes": "layer { name: 'l' type: 'PriorBox' prior_box_param { denser_prior_boxes: true } }",
    "use_polygon": "layer { name: 'l' type: 'DetectionOutput' detection_output_param { use_polygon: true } }",
    "transpose_param": "layer { name: 'l' type: 'Transpose' transpose_param { dim: 1 } }",
    "denseblock_param": "layer { name: 'l' type: 'DenseBlock' denseblock_param { numTransition: 1 } }",
    "pointwise_spatial_attention_param": "layer { name: 'l' type: 'X' pointwise_spatial_attention_param { is_softmax: true } }",
    "multi_stage_meanfield_param": "layer { name: 'l' type: 'X' multi_stage_meanfield_param { num_iterations: 5 } }",
    "margin_inner_product_param": "layer { name: 'l' type: 'X' margin_inner_product_param { num_output: 9 } }",
    "continuation_indicator_param": "layer { name: 'l' type: 'X' continuation_indicator_param { time_step: 9 } }",
    "deformable_convolution_param": "layer { name: 'l' type: 'X' deformable_convolution_param { num_output: 9 } }",
    "op_transform_param": "layer { name: 'l' type: 'X' op_transform_param { } }",
    "kernel_shape": "layer { name: 'l' type: 'Convolution' convolution_param { kernel_shape { dim: 3 } } }",
    "VIDEO_DATA": "layers { name: 'l' type: VIDEO_DATA }",
    "CONVOLUTION3D": "layers { name: 'l' type: CONVOLUTION3D }",
    "CROP": "layers { name: 'l' type: CROP }",
    "INTERP": "layers { name: 'l' type: INTERP }",
    "PADDING": "layers { name: 'l' type: PADDING }",
    "strict_dim": "layers { name: 'l' type: CONVOLUTION strict_dim: false }",
    "has_label": "layers { name: 'l' type: IMAGE_SEG_DATA image_data_param { has_label: false } }",
    "softmaxloss_param": "layers { name: 'l' type: SOFTMAX_LOSS softmaxloss_param { } }",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_named_at_its_place(program, run, tmp_path, name):
    file = tmp_path / "net.prototxt"
    layer = UNSUPPORTED[name]
    file.write_text("# of a fork\n" + layer)
    done = run(program("caffe"), "plan", f"--model={file}")
    assert done.returncode == 1 and "libprotobuf" not in done.stderr
    assert f"{file}:2:{layer.index(name) + 1}: in layer 'l': " in done.stderr and f"'{name}'" in done.stderr


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_definitions_of_forks_plan(program, run, file, phase):
    done = run(program("caffe"), "plan", f"--model={file}", f"--phase={phase}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("precision", ["fp32", "fp64", "bf16", "fp16"])
def test_definitions_of_forks_run(program, run, file, precision):
    done = run(program("caffe"), "time", f"--model={file}", "--iterations=1", f"--precision={precision}")
    assert done.returncode == 0, done.stderr

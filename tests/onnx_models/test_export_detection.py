"""SSD's detection head as standard operators: the rows of DetectionOutput, in its order."""
import caffe.onnx
import nets
import numpy as np
import pytest

PRIORS = 4 * 4 * 4  # a 4x4 map, 4 boxes each


def _head(options, items=1, classes=4, locations=1):
    return nets.net_of(f"""
        layer {{ name: 'data' type: 'Input' top: 'data' input_param {{ shape {{ dim: {items} dim: 3 dim: 64 dim: 64 }} }} }}
        layer {{ name: 'map' type: 'Pooling' bottom: 'data' top: 'map' pooling_param {{ kernel_size: 16 stride: 16 }} }}
        layer {{ name: 'priors' type: 'PriorBox' bottom: 'map' bottom: 'data' top: 'priors' prior_box_param {{
                 min_size: 14 max_size: 24 aspect_ratio: 2 flip: true clip: false
                 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }} }}
        layer {{ name: 'loc' type: 'Input' top: 'loc' input_param {{ shape {{ dim: {items} dim: {PRIORS * locations * 4} }} }} }}
        layer {{ name: 'conf' type: 'Input' top: 'conf' input_param {{ shape {{ dim: {items} dim: {PRIORS * classes} }} }} }}
        layer {{ name: 'out' type: 'DetectionOutput' bottom: 'loc' bottom: 'conf' bottom: 'priors' top: 'out'
                 detection_output_param {{ num_classes: {classes} share_location: {'true' if locations == 1 else 'false'}
                 confidence_threshold: 0.3 nms_param {{ nms_threshold: 0.4 {options[0]} }} {options[1]} }} }}""")


CASES = {
    "all": (("", ""), {}),
    "top_k": (("top_k: 20", ""), {}),
    "keep_top_k": (("top_k: 30", "keep_top_k: 9"), {}),
    "several items": (("", "keep_top_k: 12"), {"items": 3}),
    "own locations": (("top_k: 20", "keep_top_k: 15"), {"locations": 4}),
    "no background": (("", "background_label_id: -1"), {}),
    "background in the middle": (("", "background_label_id: 2"), {}),
    "center size": (("", "code_type: CENTER_SIZE"), {}),
    "corner size": (("", "code_type: CORNER_SIZE"), {}),
    "variances in codes": (("", "code_type: CENTER_SIZE variance_encoded_in_target: true"), {}),
    "one class": (("", ""), {"classes": 2}),
    "votes": (("top_k: 40", "vote_threshold: 0.5"), {"items": 2}),
    "votes with own locations": (("", "code_type: CENTER_SIZE vote_threshold: 0.3"), {"locations": 4}),
}


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_the_layer(case, opset):
    options, sizes = CASES[case]
    net = _head(options, **sizes)
    generator = np.random.default_rng(3)
    inputs = {"loc": generator.normal(0, 0.5, net.blobs["loc"].shape), "conf": generator.uniform(0, 1, net.blobs["conf"].shape)}
    report = caffe.onnx.export(net, opset=opset, inputs=inputs, check=True)
    assert report.outputs == {"out": (1, 1, None, 7)}
    assert report.differences["out"] <= 1e-6
    assert list(report.inputs) == ["loc", "conf"]  # prior boxes are constants


def test_a_box_without_limits_does_not_vote():
    net = _head(("", "code_type: CENTER_SIZE vote_threshold: 0.3"))
    generator = np.random.default_rng(3)
    inputs = {"loc": generator.normal(0, 0.5, net.blobs["loc"].shape), "conf": generator.uniform(0, 1, net.blobs["conf"].shape)}
    inputs["loc"].ravel()[2], inputs["loc"].ravel()[40:44] = 500, np.nan
    rows = caffe.onnx.run(caffe.onnx.export(net, check=False).model, {name: array.astype(np.float32) for name, array in inputs.items()})["out"]
    assert np.isfinite(rows[0, 0]).all(axis=1).sum() > 20


def test_nothing_detected_is_no_row():
    net = _head(("", ""))
    report = caffe.onnx.export(net, check=False)
    rows = caffe.onnx.run(report.model, {name: np.zeros(shape, np.float32) for name, shape in report.inputs.items()})
    assert rows["out"].shape == (1, 1, 0, 7)


@pytest.mark.parametrize("option", ["top_k: 0", "top_k: 1"])
def test_no_more_candidates_than_top_k(option):
    report = caffe.onnx.export(_head((option, "")), check=False)
    rows = caffe.onnx.run(report.model, {name: np.ones(shape, np.float32) for name, shape in report.inputs.items()})["out"]
    assert (rows.shape[2] > 0) == (option != "top_k: 0")


def test_raw_heads():
    net = _head(("", ""))
    report = caffe.onnx.export(net, detection="raw", check=True)
    assert set(report.outputs) == {"loc", "conf", "priors"} or list(report.outputs) == ["priors"]
    assert report.left_out == {"out": "raw heads were asked for"}


@pytest.mark.parametrize("options, classes, text", [
    (("eta: 0.9", ""), 4, "one threshold for all boxes"),
    (("", ""), 1, "num_classes: 1, of which background_label_id: 0 is the only one"),
])
def test_what_it_cannot_express(options, classes, text):
    with pytest.raises(caffe.Unsupported, match=text):
        caffe.onnx.export(_head(options, classes=classes))

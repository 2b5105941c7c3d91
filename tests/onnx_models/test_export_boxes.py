"""Layers that compute boxes from maps, as standard operators: the same rows in the same order."""
import caffe
import caffe.onnx
import nets
import numpy as np
import pytest

CLASSES = 4


def _yolo2(options="", items=1, maps=1):
    bottoms = " ".join(f"bottom: 'x{k}'" for k in range(maps))
    return nets.net_with([(items, 3 * (5 + CLASSES), 5 * (k + 1), 6 * (k + 1)) for k in range(maps)], f"""
        layer {{ name: 'l' type: 'YoloDetectionOutput' {bottoms} top: 'y'
                 yolo_detection_output_param {{ num_classes: {CLASSES} num_box: 3
                 biases: 1 biases: 1.5 biases: 2 biases: 1 biases: 3 biases: 3 {options} }} }}""")


def _yolo3(options="", items=1):
    maps = [(items, 2 * (5 + CLASSES), 4, 5), (items, 2 * (5 + CLASSES), 8, 10)]
    return nets.net_with(maps, f"""
        layer {{ name: 'l' type: 'Yolov3DetectionOutput' bottom: 'x0' bottom: 'x1' top: 'y' yolov3_detection_output_param {{
                 num_classes: {CLASSES} num_box: 2 mask_group_num: 2 anchors_scale: 32 anchors_scale: 16
                 biases: 10 biases: 14 biases: 30 biases: 27 biases: 81 biases: 82 biases: 100 biases: 50
                 mask: 2 mask: 3 mask: 0 mask: 1 {options} }} }}""")


def _proposals(options="", items=1, tops="top: 'y' top: 'scores'", columns=3, after=""):
    return nets.net_with([(items, 12, 5, 6), (items, 24, 5, 6), (items, columns), (items, 8, 5, 6)], f"""
        layer {{ name: 'l' type: 'Proposal' bottom: 'x0' bottom: 'x1' bottom: 'x2' {tops} proposal_param {{
                 ratio: 0.5 ratio: 1 ratio: 2 scale: 2 scale: 4 nms_thresh: 0.5 {options} }} }} {after}""")


NETS = {
    "yolo 2": _yolo2(), "yolo 2, items": _yolo2("confidence_threshold: 0.3 nms_threshold: 0.2", 3),
    "yolo 2, maps": _yolo2("confidence_threshold: 0.2", 2, 2),
    "yolo 3": _yolo3(), "yolo 3, items": _yolo3("confidence_threshold: 0.4 nms_threshold: 0.6", 2),
    "proposals": _proposals(), "proposals, best": _proposals("pre_nms_topn: 40 post_nms_topn: 7"),
    "proposals, items": _proposals("min_size: 40", 3), "proposals alone": _proposals(tops="top: 'y'", columns=4),
    "R-FCN": _proposals("post_nms_topn: 9", after="""
        layer { name: 'p' type: 'PSROIPooling' bottom: 'x3' bottom: 'y' top: 'p'
                psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 0.0625 } }
        layer { name: 'm' type: 'Pooling' bottom: 'p' top: 'm' pooling_param { pool: AVE kernel_size: 2 } }
        layer { name: 's' type: 'Softmax' bottom: 'm' top: 's' }"""),
    "Faster R-CNN": _proposals("post_nms_topn: 9", items=2, after="""
        layer { name: 'p' type: 'ROIAlign' bottom: 'x3' bottom: 'y' top: 'p'
                roi_align_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.0625 } }
        layer { name: 'f' type: 'InnerProduct' bottom: 'p' top: 'f' inner_product_param { num_output: 5 } }
        layer { name: 's' type: 'Softmax' bottom: 'f' top: 's' }"""),
}


def _inputs(net, seed=3):
    generator = np.random.default_rng(seed)
    inputs = {name: generator.normal(0, 1, net.blobs[name].shape).astype(np.float32) for name in net.inputs}
    if "x2" in inputs:
        inputs["x1"] *= 0.3
        inputs["x2"][:] = [80, 96, 1, 1.25][:inputs["x2"].shape[1]]
    return inputs


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("case", NETS)
def test_rows_are_those_of_the_layer(case, opset):
    net = nets.draw_weights(NETS[case])
    inputs = _inputs(net)
    read = caffe.onnx.export(net, opset=opset, check=False).inputs
    report = caffe.onnx.export(net, opset=opset, inputs={name: inputs[name] for name in read})
    if case == "Faster R-CNN" and opset >= 22:
        assert "Could not find an implementation for" in report.not_compared  # RoiAlign
        return
    assert max(report.differences.values()) <= 1e-5
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    net.forward()
    first = next(iter(report.outputs))
    assert net.blobs[report.blobs[first]].data.size > 7, "there is too little to compare"


def test_how_many_there_are_is_not_said():
    report = caffe.onnx.export(NETS["R-FCN"], check=False)
    assert report.outputs["scores"] == (None, 1) and report.outputs["s"] == (None, 2, 1, 1)
    assert caffe.onnx.export(NETS["yolo 3"], check=False).outputs == {"y": (1, 1, None, 7)}


@pytest.mark.parametrize("opset", nets.OPSETS)
def test_without_any_proposal_there_is_one_box_of_0(opset):
    net = _proposals("min_size: 5000")
    report = caffe.onnx.export(net, opset=opset, inputs=_inputs_read(net), check=True)
    assert max(report.differences.values()) == 0


def _inputs_read(net):
    inputs = _inputs(net)
    return {name: inputs[name] for name in caffe.onnx.export(net, check=False).inputs}


def test_boxes_beyond_all_numbers_are_left_out():
    net, inputs = _yolo3(), _inputs(_yolo3())
    inputs["x0"][:, 2::9] = 200
    assert max(caffe.onnx.export(net, inputs=inputs, check=True).differences.values()) <= 1e-5


def test_nothing_selected_is_no_item():
    net = nets.net_with([(4, 3), (4, 1)], "layer { name: 'l' type: 'Filter' bottom: 'x0' bottom: 'x1' top: 'y' }")
    model = caffe.onnx.export(net, check=False).model
    assert caffe.onnx.run(model, {"x0": np.ones((4, 3), np.float32), "x1": np.zeros((4, 1), np.float32)})["y"].shape == (0, 3)


def test_maps_without_inner_pixels():
    net = nets.net_with([(1, 1, 2, 9)], "layer { name: 'l' type: 'Nms' bottom: 'x0' top: 'y' nms_param { num_parts: 1 } }")
    with pytest.raises(caffe.Unsupported, match="maps of 2x9 pixels, all of which are at the edge"):
        caffe.onnx.export(net)


@pytest.mark.parametrize("kind, why", [("Python", "its code is that of the net's author"), ("BoxAnnotatorOHEM", "it prepares")])
def test_what_no_model_can_have(kind, why):
    assert why in caffe.onnx.registry.reason_refused(kind)

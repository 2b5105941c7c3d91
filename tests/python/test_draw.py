"""caffe.draw, and the display of objects in notebooks."""
import os
import re
import shutil
import xml.etree.ElementTree as xml

import caffe
import caffe.draw
import pytest
from caffe.proto import caffe_pb2
from google.protobuf import text_format

from built_package import ROOT


def definition(name="examples/mnist/lenet_train_test.prototxt"):
    return text_format.Parse((ROOT / name).read_text(), caffe_pb2.NetParameter())


def test_labels():
    layers = {layer.name: layer for layer in definition().layer}
    assert caffe.draw.get_pooling_types_dict() == {0: "MAX", 1: "AVE", 2: "STOCHASTIC"}
    assert caffe.draw.get_edge_label(layers["conv1"]) == "20" and caffe.draw.get_edge_label(layers["ip1"]) == "500"
    assert caffe.draw.get_edge_label(layers["loss"]) == '""'
    label = caffe.draw.get_layer_label(layers["conv1"], "TB")
    assert label == '"conv1 (Convolution) kernel size: 5 stride: 1 pad: 0"'
    assert caffe.draw.get_layer_label(layers["pool1"], "LR") == \
        '"pool1\\n(Pooling)\\nMAX\\nkernel size: 2\\nstride: 2\\npad: 0"'
    assert caffe.draw.get_layer_lr_mult(layers["conv1"]) == [1, 2] and caffe.draw.get_layer_lr_mult(layers["loss"]) == []
    assert "lr mult: 1, 2" in caffe.draw.get_layer_label(layers["conv1"], "TB", display_lrm=True)
    assert caffe.draw.choose_color_by_layertype("Pooling") != caffe.draw.choose_color_by_layertype("ReLU")


@pytest.mark.parametrize("path", sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("models/**/*.prototxt")
                                        if not any(other in path.name for other in ("solver", "labelmap", "model_info"))))
def test_every_model_can_be_drawn(path):
    pytest.importorskip("pydot")
    net = definition(path)
    for phase in (None, caffe.TRAIN, caffe.TEST):
        graph = caffe.draw.get_pydot_graph(net, "LR", phase=phase)
        assert len(graph.get_edges()) > len(net.layer) / 2


def test_phases_and_files(tmp_path):
    pytest.importorskip("pydot")
    nodes = {phase: caffe.draw.get_pydot_graph(definition(), "TB", phase=phase).to_string()
             for phase in (None, caffe.TRAIN, caffe.TEST)}
    assert "accuracy" in nodes[None] and "accuracy" in nodes[caffe.TEST] and "accuracy" not in nodes[caffe.TRAIN]
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    assert caffe.draw.draw_net(definition(), "LR").startswith(b"\x89PNG")
    caffe.draw.draw_net_to_file(definition(), tmp_path / "net.svg", "TB", caffe.TRAIN, True)
    assert "<svg" in (tmp_path / "net.svg").read_text()


def test_a_number_is_no_file_and_a_failure_leaves_none(tmp_path):
    """open(1) would open standard output, and close it."""
    with pytest.raises(TypeError):
        caffe.draw.draw_net_to_file(definition(), 1)
    os.fstat(1)
    with pytest.raises(Exception):
        caffe.draw.draw_net_to_file(definition(), tmp_path / "net.no_such_format")
    assert not list(tmp_path.iterdir())


def test_notebook_views(simple):
    html = simple._repr_html_()
    assert "conv (5x11x6x7)" in html and "11x2x3x3, 11" in html
    svg = xml.fromstring(caffe.display.net_svg(simple))
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(space + "rect")) == 6 and len(svg.findall(space + "path")) == 5
    boxes = {(rect.get("x"), rect.get("y")) for rect in svg.findall(space + "rect")}
    assert len(boxes) == 6


def test_plan(simple):
    plan = simple.plan()
    assert len(plan) == len(plan.steps) and {step.layers for step in plan} >= {"conv", "ip", "loss"}
    conv = next(step for step in plan if step.layers == "conv" and step.op.startswith("Conv"))
    assert not conv.is_backward and conv.flops == 2 * 5 * 11 * 6 * 7 * 18 and conv.kernel and conv.bytes > 0
    assert any(step.is_backward for step in plan)
    assert plan.memory.parameters == 4 * plan.memory.parameter_count == 4 * sum(
        blob.count for blobs in simple.params.values() for blob in blobs)
    assert "conv" in str(plan) and "Memory:" in str(plan) and "<table>" in plan._repr_html_()


def bezier(t, points):
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = points
    weights = ((1 - t)**3, 3 * t * (1 - t)**2, 3 * t**2 * (1 - t), t**3)
    return (sum(w * x for w, x in zip(weights, (x0, x1, x2, x3))), sum(w * y for w, y in zip(weights, (y0, y1, y2, y3))))


def points_of(path):
    """Points on a path of M, C and V commands, at most a few pixels apart."""
    here = None
    for command, numbers in re.findall(r"([MCV])([^MCV]*)", path):
        values = [float(value) for value in re.split(r"[ ,]+", numbers.strip())]
        if command == "M":
            here = tuple(values)
        elif command == "V":
            steps = int(abs(values[0] - here[1]) // 4) + 1
            yield from ((here[0], here[1] + (values[0] - here[1]) * k / steps) for k in range(steps))
            here = (here[0], values[0])
        else:
            curve = [here, *zip(values[::2], values[1::2])]
            yield from (bezier(k / 50, curve) for k in range(51))
            here = curve[-1]


def test_lines_of_the_notebook_drawing_cross_no_box():
    net = caffe.Net(str(ROOT / "models/bvlc_googlenet/deploy.prototxt"), caffe.TEST)
    svg = xml.fromstring(caffe.display.net_svg(net))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [[float(rect.get(name)) for name in ("x", "y", "width", "height")] for rect in svg.findall(space + "rect")]
    for path in svg.findall(space + "path"):
        for x, y in points_of(path.get("d")):
            assert 0 < x < float(svg.get("width"))
            assert not [box for box in boxes if box[0] < x < box[0] + box[2] and box[1] < y < box[1] + box[3]], path.get("d")

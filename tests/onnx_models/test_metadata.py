"""Names of classes and preprocessing, as metadata of ONNX models."""
import json

import caffe
import onnx
from caffe.onnx import export, import_model
from caffe.proto import caffe_pb2
from google.protobuf import text_format

NET = """
model_info { label: "cat" label: "Katze ü" mean_value: 104 mean_value: 117 mean_value: 123.5 scale: 0.017
             resize { resize_mode: WARP height: 9 width: 10 } }
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
"""


def entries(model):
    return {entry.key: json.loads(entry.value) for entry in model.metadata_props}


def test_a_model_has_what_its_net_knows_and_gives_it_back(tmp_path):
    definition = text_format.Parse(NET, caffe_pb2.NetParameter())
    export(caffe.Net(definition, caffe.TEST), tmp_path / "net.onnx")
    model = onnx.load(tmp_path / "net.onnx")
    assert entries(model) == {"labels": ["cat", "Katze ü"], "mean": [104, 117, 123.5], "scale": definition.model_info.scale,
                              "channels": "BGR", "resize": {"mode": "stretch", "height": 9, "width": 10}}
    assert import_model(model).definition.model_info == definition.model_info


def test_weights_tell_what_the_net_does_not(tmp_path):
    definition = text_format.Parse(NET, caffe_pb2.NetParameter())
    caffe.Net(definition, caffe.TEST).save(tmp_path / "net.caffemodel")
    definition.ClearField("model_info")
    (tmp_path / "net.prototxt").write_text(text_format.MessageToString(definition))
    report = export(tmp_path / "net.prototxt", weights=str(tmp_path / "net.caffemodel"))
    assert entries(report.model)["labels"] == ["cat", "Katze ü"]
    assert entries(export(tmp_path / "net.prototxt").model) == {}


def test_entries_of_other_programs_are_left_alone(tmp_path):
    model = export(caffe.Net(text_format.Parse(NET, caffe_pb2.NetParameter()), caffe.TEST)).model
    for entry in model.metadata_props:
        entry.value = "no JSON" if entry.key == "labels" else entry.value
    assert import_model(model).definition.model_info == caffe_pb2.ModelInfo()

"""The meaning of a net's input and answers: in nets, weights, deploy nets and ONNX models."""
import caffe
import numpy as np
import pytest
from caffe.proto import caffe_pb2
from google.protobuf import text_format

NET = """
layer { name: "data" type: "ImageData" top: "data" top: "label" include { phase: TEST }
        transform_param { mean_value: 1 mean_value: 2 mean_value: 3 scale: 0.5 }
        image_data_param { source: "SOURCE" batch_size: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture
def net(tmp_path):
    """A net that reads two images, and the names of two classes."""
    for number in range(2):
        (tmp_path / f"{number}.ppm").write_bytes(b"P6 4 4 255\n" + bytes(48))
    (tmp_path / "list.txt").write_text("".join(f"{tmp_path}/{number}.ppm {number}\n" for number in range(2)))
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    file = tmp_path / "net.prototxt"
    file.write_text(NET.replace("SOURCE", str(tmp_path / "list.txt")))
    return file


def test_is_what_the_data_layer_and_the_files_beside_it_say(net):
    info = caffe.model_info(caffe.Net(str(net), caffe.TEST))
    assert (list(info.label), list(info.mean_value), info.scale) == (["cat", "dog"], [1, 2, 3], 0.5)
    assert caffe.model_info(text_format.Parse(net.read_text(), caffe_pb2.NetParameter())) == info


def test_weights_that_training_leaves_have_it(net, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = net.read_text().replace("phase: TEST", "phase: TRAIN")
    (tmp_path / "train.prototxt").write_text(text)
    (tmp_path / "solver.prototxt").write_text('net: "train.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 1 snapshot_prefix: "s"')
    caffe.train("solver.prototxt")
    assert list(caffe.model_info("s_iter_1.caffemodel").label) == ["cat", "dog"]


def test_weights_of_others_have_none(tmp_path):
    file = tmp_path / "w.caffemodel"
    file.write_bytes(caffe_pb2.NetParameter(name="x").SerializeToString())
    assert caffe.model_info(file) == caffe_pb2.ModelInfo()
    with pytest.raises(caffe.IoError, match="none.caffemodel"):
        caffe.model_info(tmp_path / "none.caffemodel")


def test_a_net_for_use_has_it_and_no_labels(net):
    deploy = caffe.deploy_net(caffe.Net(str(net), caffe.TEST))
    assert [layer.type for layer in deploy.layer] == ["Input", "InnerProduct", "Softmax"]
    assert list(deploy.model_info.label) == ["cat", "dog"]
    out = caffe.Net(deploy, caffe.TEST).forward()["prob"]
    assert out.shape == (1, 2) and np.isclose(out.sum(), 1)


def test_nets_for_training_are_refused(net):
    definition = text_format.Parse(net.read_text().replace("TEST", "TRAIN"), caffe_pb2.NetParameter())
    with pytest.raises(caffe.InvalidArgument, match="is of phase TRAIN"):
        caffe.deploy_net(caffe.Net(definition, caffe.TRAIN))

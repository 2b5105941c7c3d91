"""Nets that answer: their batches, and the rows of each request."""
import pathlib

import numpy as np
import pytest

import caffe
from caffe.serving import Model
from serving_nets import write_net

DETECTOR = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 4 } } }
layer { name: "priors" type: "DummyData" top: "priors" dummy_data_param { shape { dim: 1 dim: 2 dim: 8 } data_filler { value: 0.25 } } }
layer { name: "loc" type: "InnerProduct" bottom: "data" top: "loc" inner_product_param { num_output: 8 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "scores" type: "InnerProduct" bottom: "data" top: "scores" inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 3 } } }
layer { name: "rows" type: "Reshape" bottom: "scores" top: "rows" reshape_param { shape { dim: 0 dim: 2 dim: 2 } } }
layer { name: "prob" type: "Softmax" bottom: "rows" top: "prob" softmax_param { axis: 2 } }
layer { name: "conf" type: "Flatten" bottom: "prob" top: "conf" }
layer { name: "found" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "found"
        detection_output_param { num_classes: 2 confidence_threshold: 0.5 nms_param { nms_threshold: 0.99 } } }
"""


def of(net, values):
    return net.forward(data=values)["prob"].copy()


def test_what_clients_are_told(classes, fixed):
    assert [(one.name, one.shape) for one in classes.inputs] == [("data", (-1, 2, 3, 3))]
    assert [(one.name, one.shape) for one in classes.outputs] == [("prob", (-1, 5))]
    assert classes.max_batch == 8 and classes.labels == ["ape", "bee", "cow", "dog", "emu"]
    assert [(one.name, one.shape) for one in fixed.inputs] == [("a", (2, 3)), ("b", (2, 3))]
    assert [(one.name, one.shape) for one in fixed.outputs] == [("flat", (6,))] and fixed.max_batch == 0


@pytest.mark.parametrize("counts", [[1], [3], [8], [1, 1, 1], [2, 5], [19], [7, 30]])
@pytest.mark.parametrize("pads", [False, True])
def test_each_request_gets_its_rows(files, images, counts, pads):
    model = Model("classes", *files, max_batch=8, pads=pads)
    net = caffe.Net(files[0], caffe.TEST, weights=files[1])
    net.blobs["data"].reshape(1, 2, 3, 3)
    ends = np.cumsum(counts)
    answers = model.run(model.nets(), [{"data": images[end - count:end]} for count, end in zip(counts, ends)], counts)
    assert [len(answer["prob"]) for answer in answers] == counts
    for image, row in zip(images, np.concatenate([answer["prob"] for answer in answers])):
        np.testing.assert_allclose(row, of(net, image[None])[0], rtol=1e-5)


@pytest.mark.parametrize("pads, pieces", [(False, [(8, 8), (4, 4), (1, 1)]), (True, [(8, 8), (5, 8)])])
def test_batches_are_divided_or_filled(files, pads, pieces):
    assert Model("classes", *files, max_batch=8, pads=pads)._pieces(13) == pieces  # pylint: disable=protected-access


def test_detections_are_those_of_the_request(tmp_path):
    files = write_net(tmp_path, "found", DETECTOR)
    model = Model("found", *files, max_batch=4)
    values = np.random.default_rng(2).normal(size=(6, 4)).astype(np.float32)
    nets = model.nets()
    alone = [model.run(nets, [{"data": one[None]}], [1])[0]["found"] for one in values]
    assert len({len(rows) for rows in alone}) > 1, "items with different numbers of detections"
    together = model.run(nets, [{"data": values[:1]}, {"data": values[1:4]}, {"data": values[4:]}], [1, 3, 2])
    for first, answer in ((0, together[0]), (1, together[1]), (4, together[2])):
        rows = answer["found"]
        for item in sorted({int(number) for number in rows[:, 0]}):
            np.testing.assert_allclose(rows[rows[:, 0] == item][:, 1:], alone[first + item][:, 1:], rtol=1e-5)
    assert sum(len(answer["found"]) for answer in together) == sum(map(len, alone))


def test_a_net_of_a_fixed_batch_computes_one_request(fixed):
    values = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones((2, 3), np.float32)}
    assert fixed.run(fixed.nets(), [values], [1])[0]["flat"].tolist() == [1, 2, 3, 4, 5, 6]


def test_a_net_for_training_is_refused(tmp_path):
    file = tmp_path / "train.prototxt"
    file.write_text('layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 1 } } }')
    with pytest.raises(caffe.InvalidArgument, match="has no inputs, so it is not a net for inference; make one: caffe deploy"):
        Model("train", str(file), "")


def test_no_layer_is_random(files, tmp_path):
    renamed, shared = tmp_path / "renamed.prototxt", tmp_path / "shared.prototxt"
    text = pathlib.Path(files[0]).read_text()
    renamed.write_text(text + 'layer { name: "other" type: "InnerProduct" bottom: "prob" top: "other" inner_product_param { num_output: 2 } }')
    with pytest.raises(caffe.InvalidArgument, match="has no weights for 1 layer of .*renamed.prototxt, so that answers would be random: other; layers"):
        Model("net", str(renamed), files[1])
    twice = text.replace('type: "InnerProduct"', 'type: "InnerProduct" param { name: "w" } param { name: "b" }')
    layer = twice[twice.index('layer { name: "fc"'):twice.index('layer { name: "prob"')]
    shared.write_text(twice + layer.replace('"fc"', '"again"'))
    assert len(Model("net", str(shared), files[1]).outputs) == 2


def test_answers_are_not_random(files):
    with pytest.raises(caffe.InvalidArgument, match="has no weights, so that answers would be random; give --weights=FILE.caffemodel"):
        Model("net", files[0], "")


def test_names_come_from_the_net_before_the_weights(tmp_path):
    definition, weights = write_net(tmp_path, "net", 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } } '
                                    'layer { name: "y" type: "Sigmoid" bottom: "x" top: "y" } model_info { label: "of weights" }')
    other = tmp_path / "other.prototxt"
    other.write_text(open(definition, encoding="utf-8").read().replace("of weights", "of the net"))
    assert Model("net", str(other), weights).labels == ["of the net"]
    other.write_text(other.read_text().partition("model_info")[0])
    assert Model("net", str(other), weights).labels == ["of weights"]
    assert Model("net", str(other), weights, info=caffe.proto.caffe_pb2.ModelInfo(label=["of the folder"])).labels == ["of weights"]
    assert Model("net", str(other), "", info=caffe.proto.caffe_pb2.ModelInfo(label=["of the folder"])).labels == ["of the folder"]
    assert Model("net", str(other), weights, labels=["given"]).labels == ["given"]

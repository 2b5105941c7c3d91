"""caffe.layers.detectnet: boxes from grids, and their score."""
import numpy as np
import pytest

import caffe
from caffe.layers.detectnet import clustering, mean_ap

STRIDE, HEIGHT, WIDTH = 16, 12, 20  # cells
CAR, VAN = (40, 32, 120, 96), (200, 64, 264, 128)


def grids(boxes, noise=0.0):
    """Coverage 1 x H x W and boxes 4 x H x W, like the output of DetectNetTransformation."""
    random = np.random.default_rng(1)
    coverage, corners = np.zeros((1, HEIGHT, WIDTH)), np.zeros((4, HEIGHT, WIDTH))
    for x1, y1, x2, y2 in boxes:
        for row in range(y1 // STRIDE, -(-y2 // STRIDE)):
            for column in range(x1 // STRIDE, -(-x2 // STRIDE)):
                coverage[0, row, column] = 1
                cell = np.array([column, row, column, row]) * STRIDE
                corners[:, row, column] = np.array([x1, y1, x2, y2]) - cell + noise * random.uniform(-1, 1, 4)
    return coverage, corners


NET = """
layer { name: "in" type: "Input" top: "coverage" top: "bboxes" top: "coverage-label" top: "bbox-label"
  input_param { shape { dim: 2 dim: 1 dim: 12 dim: 20 } shape { dim: 2 dim: 4 dim: 12 dim: 20 }
                shape { dim: 2 dim: 1 dim: 12 dim: 20 } shape { dim: 2 dim: 4 dim: 12 dim: 20 } } }
layer { name: "cluster" type: "Python" bottom: "coverage" bottom: "bboxes" top: "bbox-list"
  python_param { module: "caffe.layers.detectnet.clustering" layer: "ClusterDetections"
                 param_str: "320,192,16,0.6,3,0.02,22" } }
layer { name: "cluster_gt" type: "Python" bottom: "coverage-label" bottom: "bbox-label" top: "bbox-list-label"
  python_param { module: "caffe.layers.detectnet.clustering" layer: "ClusterGroundtruth" param_str: "320,192,16" } }
layer { name: "score" type: "Python" bottom: "bbox-list-label" bottom: "bbox-list" top: "bbox-list-scored"
  python_param { module: "caffe.layers.detectnet.mean_ap" layer: "ScoreDetections" } }
layer { name: "mAP" type: "Python" bottom: "bbox-list-scored" top: "mAP" top: "precision" top: "recall"
  python_param { module: "caffe.layers.detectnet.mean_ap" layer: "mAP" param_str: "320, 192, 16" } }
"""


def test_detections_are_scored_against_the_truth(write):
    net = caffe.Net(write(NET), caffe.TEST)
    ghost = (40, 128, 104, 176)
    # First image: one of two objects found, with noise. Second image: one found, and one that does not exist.
    for item, (found, real) in enumerate([([CAR], [CAR, VAN]), ([VAN, ghost], [VAN])]):
        net.blobs["coverage"].data[item], net.blobs["bboxes"].data[item] = grids(found, noise=1)
        net.blobs["coverage-label"].data[item], net.blobs["bbox-label"].data[item] = grids(real)
    net.forward()
    truth, boxes = net.blobs["bbox-list-label"].data, net.blobs["bbox-list"].data
    assert truth.shape == boxes.shape == (2, 50, 5)
    assert sorted(map(tuple, truth[0, :2, :4])) == [CAR, VAN] and not truth[0, 2:].any()
    np.testing.assert_allclose(boxes[0, 0], [*CAR, np.log(24)], atol=1)
    assert not boxes[0, 1:].any() and not boxes[1, 2:].any()
    verdicts = net.blobs["bbox-list-scored"].data[..., 4]
    assert verdicts[0, :2].tolist() == [mean_ap.TRUE_POSITIVE, mean_ap.MISSED]
    assert sorted(verdicts[1, :2]) == [mean_ap.TRUE_POSITIVE, mean_ap.FALSE_POSITIVE]
    # 2 hits, 1 wrong, 1 missed
    got = [float(net.blobs[name].data[0]) for name in ("mAP", "precision", "recall")]
    np.testing.assert_allclose(got, [400 / 9, 200 / 3, 200 / 3], rtol=1e-6)


def test_weak_groups_and_low_boxes_are_left_out(write):
    net = caffe.Net(write(NET), caffe.TEST)
    low, narrow = (160, 32, 288, 50), (16, 96, 30, 128)  # 18 pixels high; only 2 cells
    net.blobs["coverage"].data[0], net.blobs["bboxes"].data[0] = grids([low, narrow])
    net.forward()
    assert not net.blobs["bbox-list"].data.any()


def test_a_group_inside_a_stronger_one_is_left_out():
    strong, weak = [[10, 10, 200, 200]] * 9, [[60, 60, 90, 90]] * 4
    kept = clustering.group_rectangles(np.array(strong + weak), least=3, eps=0.02)
    assert [(box.tolist(), count) for box, count in kept] == [([10, 10, 200, 200], 9)]


def test_similar_boxes_join_by_chains():
    chain = np.array([[100 + 3 * i, 100, 200, 200] for i in range(5)])
    (box, count), = clustering.group_rectangles(chain, least=1, eps=0.02)
    assert count == 5 and box.tolist() == [106, 100, 200, 200]
    assert clustering.group_rectangles(chain, least=1, eps=0.0) == []


def test_each_true_box_is_met_once():
    truth = np.array([[0, 0, 10, 10, 1]])
    found = np.array([[0, 0, 10, 9, 0.5], [0, 0, 10, 10, 2.0]])
    assert mean_ap.score(truth, found)[:, 4].tolist() == [mean_ap.TRUE_POSITIVE, mean_ap.FALSE_POSITIVE]


@pytest.mark.parametrize("change, message", [
    (('param_str: "320,192,16"', 'param_str: "320"'), "img_x,img_y,stride"),
    (('param_str: "320,192,16"', 'param_str: "320,192,16,2"'), "1 tops for 2 classes"),
])
def test_wrong_options_are_named(write, change, message):
    with pytest.raises(ValueError, match=message):
        caffe.Net(write(NET.replace(*change)), caffe.TEST)


def test_layers_stay_functions_of_net_spec():
    from caffe import layers as L
    from caffe.net_spec import layers
    bottom = L.Input(shape=dict(dim=[1, 3]))
    assert caffe.to_proto(L.ReLU(bottom)) == caffe.to_proto(layers.ReLU(bottom))
    assert caffe.layers.detectnet.clustering is clustering

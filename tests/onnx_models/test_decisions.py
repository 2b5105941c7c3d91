"""Nets whose outputs are decisions: results that differ only by rounding count as equal, other differences are reported."""
import caffe
import caffe.onnx
import nets
import numpy as np
import pytest
from caffe.onnx import check
from caffe.onnx.decisions import Decisions, detections, peaks, proposals, tops_that_decide
from caffe.onnx.differences import numbers, rows

TOLERANCE = 1e-5
ARG_MAX = "layer { name: 'l' type: 'ArgMax' bottom: 'x0' top: 'y' argmax_param { %s } }"
SCORES = np.array([[[0.1], [0.9], [0.9 + 1e-7], [0.5]]], np.float32)
UNPOOLING = """
    layer { name: 'p' type: 'Pooling' bottom: 'x0' top: 'p' top: 'm' pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: 'u' type: 'Upsample' bottom: 'p' bottom: 'm' top: 'u' }"""
PROPOSALS = """
    layer { name: 'l' type: 'Proposal' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'rois' top: 'scores'
            proposal_param { min_size: 1 ratio: 1 scale: 1 } }"""
DETECTOR = """
    layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 stride: 4 } }
    layer { name: 'loc' type: 'Flatten' bottom: 'c' top: 'loc' }
    layer { name: 'conf' type: 'Flatten' bottom: 'c' top: 'conf' }
    layer { name: 'priors' type: 'PriorBox' bottom: 'c' bottom: 'x0' top: 'priors' prior_box_param { min_size: 8 } }
    layer { name: 'out' type: 'DetectionOutput' bottom: 'loc' bottom: 'conf' bottom: 'priors' top: 'out'
            detection_output_param { num_classes: 4 confidence_threshold: 50 nms_param { nms_threshold: 0.4 } } }"""


def _decided(net, inputs, theirs):
    """The difference of each blob, if the other side has decided `theirs`."""
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    decisions = Decisions(tops_that_decide(net, theirs), TOLERANCE)
    decisions.forward(net)
    return decisions.differences


@pytest.mark.parametrize("options, own, near, far", [
    ("axis: 1", [2], [1], [3]), ("", [2], [1], [3]), ("top_k: 2", [2, 1], [1, 2], [2, 3]),
    ("axis: 1 top_k: 2", [2, 1], [1, 2], [2, 0]), ("axis: 1", [2], [1], [4]), ("axis: 1", [2], [1], [0.5]),
    ("out_max_val: true", [2, 0.9], [1, 0.9], [2, 0.8]),
])
def test_labels_are_equal_where_their_scores_are(options, own, near, far):
    net = nets.net_with([SCORES.shape], ARG_MAX % options)
    shape = tuple(net.blobs["y"].shape)
    for other, is_equal in ((own, True), (near, True), (far, False)):
        found = _decided(net, {"x0": SCORES}, {"y": np.reshape(other, shape).astype(np.float32)})["y"]
        assert (found.relative <= TOLERANCE) == is_equal, found
        assert is_equal or "the other side" in found.text


def test_largest_values_along_an_axis_are_numbers():
    net = nets.net_with([SCORES.shape], ARG_MAX % "axis: 1 out_max_val: true")
    assert not _decided(net, {"x0": SCORES}, {"y": np.ones((1, 1, 1))})


@pytest.mark.parametrize("place, is_equal", [(1, True), (0, True), (4, False), (2, False)])
def test_what_follows_a_mask_is_computed_of_the_same_places(place, is_equal):
    """Position 2 has the same number and lies in the next window."""
    net = nets.net_with([(1, 1, 2, 4)], UNPOOLING)
    image = np.array([[[[1, 1 + 1e-7, 1, 0.5], [0.2, 0, 0, 0]]]], np.float32)
    mask = np.array([[[[place, 2]]]], np.float32)
    found = _decided(net, {"x0": image}, {"m": mask})["m"]
    assert (found.relative <= TOLERANCE) == is_equal
    assert (net.blobs["u"].data[0, 0].flat[place] > 0.9) == (is_equal or place == 2)


def test_thresholds():
    net = nets.net_with([(3,)], "layer { name: 'l' type: 'Threshold' bottom: 'x0' top: 'y' threshold_param { threshold: 1 } }")
    for other, is_equal in (([1, 1, 0], True), ([0, 1, 0], True), ([1, 0, 0], False)):
        found = _decided(net, {"x0": np.array([1 + 1e-7, 2, 0], np.float32)}, {"y": np.array(other, np.float32)})["y"]
        assert (found.relative <= TOLERANCE) == is_equal


def _rows(count, seed=1):
    return np.random.default_rng(seed).uniform(0, 1, (count, 7))


def test_rows_are_a_set():
    table = _rows(40)
    assert rows(table, table[::-1] + 1e-7, 1, TOLERANCE).relative <= 2e-7
    assert rows(table[:0], table[:0], 1, TOLERANCE).relative == 0


def test_a_row_in_a_hundred_may_be_missing():
    table = _rows(200)
    found = rows(table, table[:-2], 1, TOLERANCE)
    assert found.relative == 0 and found.decided == "2 of 200 rows"
    found = rows(table, table[:-3], 1, TOLERANCE)
    assert not found.relative <= TOLERANCE and "3 of the net's 200 rows are not among the other 197" in found.text
    assert not rows(table[:20], table[:19], 1, TOLERANCE).relative <= TOLERANCE
    assert "0 of the net's 0 rows are not among the other 3, and 3 the other way round" in rows(table[:0], table[:3], 1, TOLERANCE).text


def test_a_row_is_the_same_as_one_row_alone():
    table = _rows(200)
    doubled = np.concatenate([table[:100], table[:100]])
    found = rows(table, doubled, 1, TOLERANCE)
    assert not found.relative <= TOLERANCE and "100 of the net's 200 rows are not among the other 200, and 100" in found.text
    assert not rows(doubled, table, 1, TOLERANCE).relative <= TOLERANCE
    assert rows(doubled, doubled[::-1], 1, TOLERANCE).relative == 0
    assert not rows(table[:1], table[:1].repeat(2, axis=0), 1, TOLERANCE).relative <= TOLERANCE


def test_as_many_rows_are_paired_as_can_be():
    """The row nearest to the first one is the only one close to the second one."""
    assert rows([[0], [0.9]], [[0.1], [-0.5]], 1, 0.8).relative == 0.8
    assert rows([[0], [0.9]], [[0.1], [-0.9]], 1, 0.8).relative > 0.8


DETECTIONS = np.array([[0, 1, 0.01, 0, 0, 0.5, 0.5], [0, 2, 0.005, 0.2, 0.2, 0.4, 0.9]], np.float32)
BOXES = np.array([[0, 10, 20, 300, 400], [0, 50, 60, 70, 80]], np.float32)
PEAKS = np.array([[[[2, 0, 0], [300, 20, 0.5], [40, 200, 0.1], [0, 0, 0]], [[0, 0, 0]] * 4]], np.float32)


def _changed(array, place, number):
    changed = array.copy()
    changed[place] = number
    return changed


@pytest.mark.parametrize("compare, own, other, is_equal", [
    (detections, [DETECTIONS], [DETECTIONS[::-1]], True),
    (detections, [DETECTIONS], [_changed(DETECTIONS, (1, 2), 0.005001)], False),
    (detections, [DETECTIONS], [DETECTIONS[[0, 0]]], False),
    (peaks, [PEAKS], [PEAKS[:, :, [0, 2, 1, 3]]], True),
    (peaks, [PEAKS], [_changed(PEAKS, (0, 0, 2, 2), 0.1001)], False),
    (peaks, [PEAKS], [_changed(PEAKS, (0, 0, 2, 0), 41)], False),
    (peaks, [PEAKS], [_changed(PEAKS, (0, 0, 0, 0), 1)], False),
    (peaks, [PEAKS], [_changed(PEAKS, (0, 0, 2), 0)], False),
    (peaks, [PEAKS], [PEAKS[:, ::-1]], False),
    (proposals, [BOXES, np.array([[0.9], [0.1]])], [BOXES[::-1], np.array([[0.1], [0.9]])], True),
    (proposals, [BOXES, np.array([[0.9], [0.1]])], [BOXES, np.array([[0.1], [0.9]])], False),
    (proposals, [BOXES, np.array([[0.009], [0.001]])], [BOXES, np.array([[0.009], [0.00101]])], False),
    (proposals, [BOXES, np.array([[0.9], [0.1]])], [BOXES, np.array([[0.9]])], False),
    (proposals, [BOXES, np.array([[0.9], [0.1]])], [BOXES[::-1], None], True),
    (proposals, [BOXES], [BOXES[:, :4]], False),
])
def test_rows_are_compared_whole_and_each_column_by_its_own_scale(compare, own, other, is_equal):
    found = compare(None, None, own, other, TOLERANCE)
    assert (found.relative <= TOLERANCE) == is_equal, found
    assert is_equal or found.text


def test_both_tops_of_proposals_are_handed_over():
    net = nets.net_with([(1, 2, 4, 4), (1, 4, 4, 4), (1, 3)], PROPOSALS)
    inputs = {"x0": np.linspace(0, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4), "x1": np.zeros((1, 4, 4, 4), np.float32),
              "x2": np.array([[64, 64, 1]], np.float32)}
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    net.forward()
    boxes, scores = (net.blobs[blob].data[::-1].copy() for blob in ("rois", "scores"))
    assert len(boxes) > 1
    assert {blob: found.relative for blob, found in _decided(net, inputs, {"rois": boxes, "scores": scores}).items()} == \
        {"rois": 0, "scores": 0}
    assert (net.blobs["rois"].data == boxes).all() and (net.blobs["scores"].data == scores).all()
    swapped = _decided(net, inputs, {"rois": boxes, "scores": scores[::-1]})
    assert not swapped["rois"].relative <= TOLERANCE and not swapped["scores"].relative <= TOLERANCE


def test_how_numbers_differ():
    one = np.array([[1, 2], [3, 4]])
    assert numbers(one, one[:1]).text == "the net's shape is 2x2, the other one 1x2"
    assert "1 of 4 numbers are infinite or NaN on one side only, as at [1, 0] the net has 3, the other side nan" in \
        numbers(one, np.where(one == 3, np.nan, one)).text
    assert numbers(one, one + np.array([[0, 0], [0, 2]])).text == \
        "1 of 4 numbers do, by up to 0.5 of the largest one, 4: at [1, 1] the net has 4, the other side 6"
    inf = np.array([np.inf, -np.inf, np.nan, 1])
    assert numbers(inf, inf).relative == 0 and numbers(inf, -inf).relative == np.inf


def test_a_detector_that_finds_nothing_is_compared_by_its_heads(monkeypatch, tmp_path):
    """In this case Caffe has a row of -1, and the model has none."""
    net = nets.draw_weights(nets.net_with([(1, 3, 32, 32)], DETECTOR))
    assert caffe.onnx.export(net, check=True).differences["out"] <= TOLERANCE
    from caffe.onnx import registry
    write = registry._WRITERS["Convolution"]
    monkeypatch.setitem(registry._WRITERS, "Convolution", lambda layer, onnx: onnx.op("Abs", *write(layer, onnx)))
    with pytest.raises(caffe.onnx.Mismatch, match="out: '(loc|conf)', about which it decides: .* of .* numbers do"):
        caffe.onnx.export(net, tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_other_decisions_are_told(monkeypatch):
    """onnxruntime takes the other one of two equal numbers, and the following numbers come from that choice."""
    net = nets.net_with([(1, 1, 2, 2)], UNPOOLING + ARG_MAX.replace("'x0'", "'u'").replace("'l'", "'a'") % "axis: 2")
    run = check.run

    def with_another_choice(model, arrays, also=()):
        got = run(model, arrays, also)
        assert got["m"].item() == 0
        return {"m": np.full((1, 1, 1, 1), 3, np.float32), "u": np.eye(4, dtype=np.float32)[3].reshape(1, 1, 2, 2),
                "y": np.array([[[[1, 1]]]], np.float32)}

    monkeypatch.setattr(check, "run", with_another_choice)
    report = caffe.onnx.export(net, inputs={"x0": np.ones((1, 1, 2, 2))}, check=True)
    assert report.differences["y"] == 0


def test_the_command_tells_how_many(tmp_path, monkeypatch, capsys):
    from caffe.onnx.__main__ import main
    (tmp_path / "net.prototxt").write_text(str(nets.net_with([(1, 4)], ARG_MAX % "").definition))
    np.savez(tmp_path / "x.npz", x0=np.zeros((1, 4)))
    run = check.run
    monkeypatch.setattr(check, "run", lambda *given: {**run(*given), "y": np.zeros((1, 1, 1), np.float32)})
    assert main(["export", str(tmp_path / "net.prototxt"), "-o", str(tmp_path / "net.onnx"), "--inputs", str(tmp_path / "x.npz")]) == 0
    assert "output y 1x1x1, largest difference 0, 1 of 1 decided otherwise between nearly equal numbers" in capsys.readouterr().out


def test_outputs_with_other_numbers_of_rows_have_no_error_in_8_bits():
    assert check.relative_error(np.ones((1, 1, 3, 7)), np.ones((1, 1, 2, 7))) == np.inf


def test_decisions_of_large_models(monkeypatch, tmp_path):
    """Values inside a model in two files are read through a third file, which is removed afterwards."""
    from caffe.onnx import storing
    monkeypatch.setattr(storing, "LARGEST_MESSAGE", 1000)
    net = nets.draw_weights(nets.net_with([(1, 3, 32, 32)], DETECTOR.replace("num_output: 4", "num_output: 4 pad: 1")))
    assert caffe.onnx.export(net, tmp_path / "net.onnx", check=True).differences["out"] <= TOLERANCE
    assert {path.name for path in tmp_path.iterdir()} <= {"net.onnx", "net.onnx.data"}

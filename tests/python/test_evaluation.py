"""Compares the figures of caffe.evaluation with scikit-learn, pycocotools and numbers computed by hand."""
import numpy as np
import pytest

import built_package  # noqa: F401 # pylint: disable=unused-import
import caffe
from caffe import evaluation
from caffe.evaluation.worst import Worst

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed (python3-sklearn)")


def answers(count=400, classes=7, seed=3):
    """Labels, none of them class 5, and probabilities that are right more often than not."""
    random = np.random.default_rng(seed)
    labels = random.choice([k for k in range(classes) if k != 5], count)
    scores = random.normal(size=(count, classes))
    scores[np.arange(count), labels] += 1.5
    return labels, evaluation.probabilities_of(scores)


class TestClasses:
    def test_figures_are_scikit_learns(self):
        labels, probabilities = answers()
        figures = evaluation.score_classes(labels, probabilities)
        predicted = probabilities.argmax(axis=1)
        every = list(range(7))
        assert figures["accuracy"] == pytest.approx(metrics.accuracy_score(labels, predicted))
        assert figures["top5_accuracy"] == pytest.approx(metrics.top_k_accuracy_score(labels, probabilities, k=5, labels=every))
        assert figures["log_loss"] == pytest.approx(metrics.log_loss(labels, probabilities, labels=every))
        assert figures["confusion_matrix"] == metrics.confusion_matrix(labels, predicted, labels=every).tolist()
        of_classes = metrics.precision_recall_fscore_support(labels, predicted, labels=every, zero_division=0)
        for name, values in zip(("precision", "recall", "f1", "support"), of_classes):
            assert [row[name] or 0 for row in figures["classes"]] == pytest.approx(values.tolist())
        present = [k for k in every if k != 5]
        macro = metrics.precision_recall_fscore_support(labels, predicted, labels=present, average="macro", zero_division=0)
        assert [figures["macro"][name] for name in ("precision", "recall", "f1")] == pytest.approx(macro[:3])

    def test_what_is_not_defined_is_none(self):
        figures = evaluation.score_classes([0, 0, 1], np.array([[0.9, 0.1, 0], [0.8, 0.2, 0], [0.6, 0.4, 0]]), ["a", "b", "c"])
        of_class = {row["name"]: row for row in figures["classes"]}
        assert (of_class["b"]["precision"], of_class["b"]["recall"], of_class["b"]["f1"]) == (None, 0, 0)
        assert (of_class["c"]["precision"], of_class["c"]["recall"], of_class["c"]["f1"]) == (None, None, None)
        assert figures["macro"]["recall"] == pytest.approx(0.5)  # mean over a and b
        assert figures["top5_accuracy"] is None  # all classes are among the first five
        assert figures["confusions"] == [
            dict(label=1, name="b", taken_for=0, taken_for_name="a", count=1, share=1.0)]

    def test_one_class_alone(self):
        figures = evaluation.score_classes(np.zeros(4, int), np.ones((4, 1)))
        assert (figures["accuracy"], figures["log_loss"], figures["calibration"]["expected_error"]) == (1, 0, 0)

    def test_confusions_are_sorted(self):
        scores = np.eye(3)
        figures = evaluation.score_classes([0, 0, 0, 1, 2, 2], scores[[1, 1, 2, 1, 0, 2]])
        assert [(one["label"], one["taken_for"], one["count"]) for one in figures["confusions"]] == [(0, 1, 2), (0, 2, 1), (2, 0, 1)]

    def test_of_equal_scores_the_first_classes_are_the_best_five(self):
        labels = list(range(7))
        assert evaluation.score_classes(labels, np.full((7, 7), 1 / 7))["top5_accuracy"] == pytest.approx(5 / 7)

    def test_scores_that_are_no_probabilities(self):
        figures = evaluation.score_classes([0, 1], np.array([[5.0, -3], [2, 1]]), are_probabilities=False)
        assert (figures["accuracy"], figures["log_loss"], figures["calibration"]) == (0.5, None, None)

    def test_calibration_by_hand(self):
        found = evaluation.calibration([0.95, 0.95, 0.55, 0.2, 1.0, 0.0], [True, False, True, False, True, False], bins=10)
        counts = [one["count"] for one in found["bins"]]
        assert counts == [1, 1, 0, 0, 0, 1, 0, 0, 0, 3]  # 0.2 is in (0.1, 0.2], 0 in the first bin
        assert found["bins"][9]["accuracy"] == pytest.approx(2 / 3) and found["bins"][2]["accuracy"] is None
        by_hand = (0 * 1 + 0.2 * 1 + 0.45 * 1 + abs(2.9 / 3 - 2 / 3) * 3) / 6
        assert found["expected_error"] == pytest.approx(by_hand)

    def test_what_are_no_probabilities_is_refused(self):
        logits = np.array([[5.0, -3], [2, 1]])
        for score in (lambda: evaluation.score_classes([0, 1], logits), lambda: evaluation.log_loss([0, 1], logits),
                      lambda: evaluation.calibration(logits[:, 0], [True, True])):
            with pytest.raises(caffe.InvalidArgument, match="item 0 has the probability 5; give numbers from 0 to 1: probabilities_of makes "):
                score()
        with pytest.raises(caffe.InvalidArgument, match="item 1 has the probability nan"):
            evaluation.calibration([0.5, np.nan], [True, False])
        with pytest.raises(caffe.InvalidArgument, match="bins is 0; give 1 or more"):
            evaluation.calibration([0.5], [True], bins=0)
        with pytest.raises(caffe.InvalidArgument, match="labels and scores are not arrays of numbers"):
            evaluation.score_classes(["a", "b"], np.eye(2))
        with pytest.raises(caffe.InvalidArgument, match="item 0 has the label nan"):
            evaluation.score_classes([np.nan, 1], np.eye(2))

    def test_log_loss_of_the_impossible_is_finite(self):
        assert evaluation.log_loss([1], np.array([[1.0, 0.0]])) == pytest.approx(-np.log(np.finfo(np.float32).tiny))

    def test_what_does_not_fit(self):
        for labels, scores, text in (([0, 3], np.ones((2, 3)), "item 1 has the label 3, but there are scores for classes 0 to 2"),
                                     ([0.5], np.ones((1, 3)), "whole numbers"),
                                     ([0], np.ones((2, 3)), r"labels have shape \(1,\) and scores \(2, 3\)"),
                                     ([], np.ones((0, 3)), "N at least 1"),
                                     ([0], np.full((1, 2), np.nan), "item 0 are not numbers")):
            with pytest.raises(caffe.InvalidArgument, match=text):
                evaluation.score_classes(labels, scores)
        with pytest.raises(caffe.InvalidArgument, match="1 names for 2 classes"):
            evaluation.score_classes([0], np.ones((1, 2)), ["a"])


class TestMasks:
    def test_figures_are_scikit_learns(self):
        random = np.random.default_rng(4)
        labels, predicted = random.integers(4, size=(2, 9, 8)), random.integers(4, size=(2, 9, 8))
        labels[0, :3] = 255
        confusion = sum(evaluation.confusion_of_masks(label, answer, 4, ignored=255) for label, answer in zip(labels, predicted))
        counted = labels != 255
        assert (confusion == metrics.confusion_matrix(labels[counted], predicted[counted])).all()
        figures = evaluation.score_masks(confusion)
        iou = metrics.jaccard_score(labels[counted], predicted[counted], average=None)
        assert [row["iou"] for row in figures["classes"]] == pytest.approx(iou.tolist())
        assert figures["mean_iou"] == pytest.approx(iou.mean())
        assert figures["pixel_accuracy"] == pytest.approx(metrics.accuracy_score(labels[counted], predicted[counted]))
        assert figures["mean_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(labels[counted], predicted[counted]))

    def test_a_class_that_nobody_has(self):
        figures = evaluation.score_masks(np.diag([3, 0, 2]), ["ground", "dog", "cat"])
        assert figures["classes"][1]["iou"] is None and figures["mean_iou"] == 1

    def test_what_does_not_fit(self):
        with pytest.raises(caffe.InvalidArgument, match="a pixel has the label 9, but there are scores for classes 0 to 2"):
            evaluation.confusion_of_masks([9], [0], 3)
        with pytest.raises(caffe.InvalidArgument, match="all of them are ignored"):
            evaluation.score_masks(evaluation.confusion_of_masks([255], [0], 3, ignored=255))
        for predicted in (-1, 3, 0.5, np.nan):
            with pytest.raises(caffe.InvalidArgument, match=f"a pixel has the prediction {predicted:g}, but there are scores for classes 0 to 2"):
                evaluation.confusion_of_masks([0], [predicted], 3)
        with pytest.raises(caffe.InvalidArgument, match="there are 1 names for 3 classes"):
            evaluation.score_masks(np.eye(3), ["ground"])
        for confusion in (np.ones((2, 3)), [[0.5, 0], [0, 1]], [[-1, 0], [0, 1]]):
            with pytest.raises(caffe.InvalidArgument, match="give \\(C, C\\) counts of pixels"):
                evaluation.score_masks(confusion)


def boxes(seed=1, images=12, classes=3, difficult=True):
    """Truths and detections: shifted truths, duplicates and false detections, with scores."""
    random = np.random.default_rng(seed)
    truths, detections = [], []
    for image in range(images):
        for _ in range(random.integers(0, 5)):
            low = random.uniform(0, 0.6, 2)
            box = np.concatenate([low, low + random.uniform(0.1, 0.4, 2)])
            label = random.integers(1, classes + 1)
            truths.append([image, label, *box, difficult and random.random() < 0.2])
            for _ in range(random.integers(0, 3)):
                detections.append([image, label, random.random(), *(box + random.normal(0, 0.03, 4))])
        for _ in range(random.integers(0, 3)):
            low = random.uniform(0, 0.6, 2)
            detections.append([image, random.integers(1, classes + 1), random.random() / 2, *low, *(low + 0.2)])
    return np.array(truths, float), np.array(detections, float)


class TestBoxes:
    def test_by_hand(self):
        truths = [[0, 1, 0, 0, 0.5, 0.5, 0], [1, 1, 0.5, 0.5, 1, 1, 0]]
        detections = [[0, 1, 0.9, 0, 0, 0.5, 0.5],  # right
                      [0, 1, 0.8, 0, 0, 0.5, 0.5],  # a duplicate: wrong
                      [1, 1, 0.7, 0.5, 0.5, 1, 1]]  # right
        figures = evaluation.score_boxes(truths, detections, [1])
        assert figures["voc2012"] == pytest.approx(0.5 + 0.5 * 2 / 3)
        assert figures["voc2007"] == pytest.approx((6 + 5 * 2 / 3) / 11)
        assert figures["integral"] == pytest.approx(0.5 + 0.5 * 2 / 3)
        row = figures["classes"][0]
        assert (row["objects"], row["recall"], row["precision"]) == (2, 1, pytest.approx(2 / 3))
        assert (row["best_f1"], row["best_threshold"]) == (pytest.approx(0.8), 0.7)
        assert row["curve"] == [[0.5, 1.0], [0.5, 0.5], [1.0, 0.66667]]

    def test_equal_scores_are_shown_together(self):
        detections = [[0, 1, 0.9, 0, 0, 0.5, 0.5], [0, 1, 0.9, 0, 0, 0.1, 0.1]]
        row = evaluation.score_boxes([[0, 1, 0, 0, 0.5, 0.5, 0]], detections, [1])["classes"][0]
        assert (row["best_f1"], row["best_threshold"]) == (pytest.approx(2 / 3), 0.9)

    def test_difficult_objects_count_as_neither(self):
        truths = [[0, 1, 0, 0, 0.5, 0.5, 1], [0, 1, 0.6, 0.6, 1, 1, 0]]
        figures = evaluation.score_boxes(truths, [[0, 1, 0.9, 0, 0, 0.5, 0.5], [0, 1, 0.5, 0.6, 0.6, 1, 1]], [1])
        assert (figures["voc2012"], figures["objects"]) == (1, 1)

    def test_classes_without_objects_are_in_no_mean(self):
        figures = evaluation.score_boxes([[0, 2, 0, 0, 1, 1, 0]], [[0, 1, 0.9, 0, 0, 1, 1]], [1, 2])
        assert [row["voc2007"] for row in figures["classes"]] == [None, 0] and figures["voc2007"] == 0
        nothing = evaluation.score_boxes([], [], [1, 2])
        assert nothing["voc2007"] is None and nothing["objects"] == 0

    def test_a_score_that_is_no_number_finds_nothing(self):
        figures = evaluation.score_boxes([[0, 1, 0, 0, 1, 1, 0]], [[0, 1, np.nan, 0, 0, 1, 1]], [1])
        assert figures["voc2012"] == 0

    @pytest.mark.parametrize("seed", range(5))
    def test_judges_as_the_layer_does(self, write, seed):
        """Compares with DetectionEvaluate's rows for the same boxes."""
        truths, detections = boxes(seed)
        for rows in (truths, detections):
            rows[:, 0] %= 12
        net = caffe.Net(write(f"""
            layer {{ name: 'd' type: 'Input' top: 'd' input_param {{ shape {{ dim: 1 dim: 1 dim: {len(detections)} dim: 7 }} }} }}
            layer {{ name: 't' type: 'Input' top: 't' input_param {{ shape {{ dim: 1 dim: 1 dim: {len(truths)} dim: 8 }} }} }}
            layer {{ name: 'e' type: 'DetectionEvaluate' bottom: 'd' bottom: 't' top: 'e'
                     detection_evaluate_param {{ num_classes: 4 evaluate_difficult_gt: false }} }}"""), caffe.TEST)
        rows_of_net = np.column_stack([truths[:, :2], np.zeros(len(truths)), truths[:, 2:]])
        # Both read numbers that float can represent.
        rows_of_net, detections = rows_of_net.astype(np.float32), detections.astype(np.float32)
        truths = truths.astype(np.float32)
        rows = net.forward(d=detections[None, None], t=rows_of_net[None, None])["e"].reshape(-1, 5)
        for label in (1, 2, 3):
            matches = evaluation.match_boxes(truths, detections, label)
            of_layer = rows[(rows[:, 1] == label) & (rows[:, 0] >= 0)]
            of_layer = of_layer[np.argsort(-of_layer[:, 2], kind="stable")]
            assert matches.objects == rows[(rows[:, 1] == label) & (rows[:, 0] == -1), 2].sum()
            assert matches.scores == pytest.approx(of_layer[:, 2])
            assert (matches.is_right == (of_layer[:, 3] == 1)).all()
            assert ((matches.counts & ~matches.is_right) == (of_layer[:, 4] == 1)).all()

    def test_overlaps_of_lists(self):
        assert evaluation.overlaps([0, 0, 1, 1], [[0, 0, 1, 0.5], [2, 2, 3, 3]]).tolist() == [0.5, 0]

    def test_some_detections_may_lie_anywhere(self):
        detections = [[0, 1, 0.9, 0, 0, 1, 1], [0, 1, 0.8, -50, 0, 60, 1], [0, 1, 0.7, np.nan, 0, 1, 1]]
        assert evaluation.score_boxes([[0, 1, 0, 0, 1, 1, 0]], detections, [1])["voc2012"] == 1

    def test_what_does_not_fit(self):
        with pytest.raises(caffe.InvalidArgument, match=r"truths have shape \(1, 3\); give rows of 7 numbers"):
            evaluation.score_boxes([[0, 1, 2]], [], [1])
        for rows in (dict(truths=[[0, 1, 10, 10, 90, 90, 0]], detections=[]), dict(truths=[], detections=[[0, 1, 0.9, 10, 10, 90, 90]])):
            for score in (lambda: evaluation.score_boxes(**rows, labels=[1]), lambda: evaluation.match_boxes(**rows, label=1)):
                with pytest.raises(caffe.InvalidArgument, match=r"row 0 of \w+ has the box \(10, 10, 90, 90\).* divide those in pixels by the "):
                    score()
        with pytest.raises(caffe.InvalidArgument, match="overlap is 0; give a number above 0, up to 1"):
            evaluation.score_boxes([[0, 1, 0, 0, 1, 1, 0]], [[0, 1, 0.9, 0, 0, 1, 1]], [1], overlap=0)
        with pytest.raises(caffe.InvalidArgument, match="there are 1 names, and the highest label is 1; give one for each"):
            evaluation.score_boxes([[0, 1, 0, 0, 1, 1, 0]], [], [1], ["background"])
        with pytest.raises(caffe.InvalidArgument, match=r"box have shape \(1, 2\)"):
            evaluation.overlaps([0, 0], [[0, 0, 1, 1]])
        with pytest.raises(caffe.InvalidArgument, match="rule is 'voc'; use voc2007"):
            evaluation.average_precision(np.ones(1), np.ones(1), "voc")


class TestCoco:
    @pytest.mark.parametrize("seed", range(3))
    def test_figures_are_pycocotools_of_boxes_in_pixels(self, tmp_path, seed):
        coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed (pip install pycocotools)")
        cocoeval = pytest.importorskip("pycocotools.cocoeval")
        import json
        truths, detections = boxes(seed, images=30, difficult=seed == 2)
        truths[:, 2:6] = np.clip(truths[:, 2:6], 0, 1)
        detections[:, 3:7] = np.clip(detections[:, 3:7], 0, 1)
        found = evaluation.score_by_coco(truths, detections, [1, 2, 3], range(30))
        side = 640

        def box(row):
            return [row[0] * side, row[1] * side, (row[2] - row[0]) * side, (row[3] - row[1]) * side]

        file = tmp_path / "truth.json"
        file.write_text(json.dumps(dict(
            images=[dict(id=k, width=side, height=side) for k in range(30)], categories=[dict(id=k, name=str(k)) for k in (1, 2, 3)],
            annotations=[dict(id=k + 1, image_id=int(row[0]), category_id=int(row[1]), bbox=box(row[2:]), iscrowd=int(row[6]),
                              area=box(row[2:])[2] * box(row[2:])[3]) for k, row in enumerate(truths)])))
        truth = coco.COCO(str(file))
        run = cocoeval.COCOeval(truth, truth.loadRes([dict(image_id=int(row[0]), category_id=int(row[1]), score=row[2], bbox=box(row[3:]))
                                                      for row in detections]), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
        assert [found["ap"], found["ap50"], found["ap75"]] == pytest.approx(run.stats[:3].tolist(), abs=1e-6)

    def test_without_detections(self):
        pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed (pip install pycocotools)")
        found = evaluation.score_by_coco(np.array([[0, 1, 0, 0, 1, 1, 0]]), np.zeros((0, 7)), [1, 2], [0, 1])
        assert found["ap"] == 0 and [row["ap"] for row in found["classes"]] == [0, None]

    def test_what_does_not_fit(self):
        pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed (pip install pycocotools)")
        with pytest.raises(caffe.InvalidArgument, match="divide those in pixels"):
            evaluation.score_by_coco([[0, 1, 10, 10, 90, 90, 0]], [], [1], [0])
        with pytest.raises(caffe.InvalidArgument, match="rows are of image 5, which is none of the 1 images"):
            evaluation.score_by_coco([[0, 1, 0, 0, 1, 1, 0]], [[5, 1, 0.9, 0, 0, 1, 1]], [1], [0])

    def test_none_where_the_package_is_missing(self, monkeypatch):
        import sys
        for name in ("pycocotools", "pycocotools.coco", "faster_coco_eval"):
            monkeypatch.setitem(sys.modules, name, None)
        assert evaluation.score_by_coco(np.zeros((0, 7)), np.zeros((0, 7)), [1], [0]) is None


def test_the_worst_are_kept_and_no_others_are_made():
    made = []
    worst = Worst(2)
    for number, badness in enumerate([1, 5, 3, 5, 0]):
        worst.offer(badness, lambda number=number: made.append(number) or number)
    assert worst.items() == [1, 3] and made == [0, 1, 2, 3]
    nobody = Worst(0)
    nobody.offer(1, lambda: made.append("x"))
    assert nobody.items() == [] and "x" not in made

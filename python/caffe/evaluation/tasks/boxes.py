"""Object detection: boxes."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ..._packages import install_command
from ..boxes import Matches, match_boxes, score_boxes
from ..coco import score_by_coco
from ..pictures import Outline, data_uri, with_outlines
from ..records import Record, printable
from ..subject import Subject
from . import Task, number, table

ORDER = 1
_THRESHOLD = 0.5  # minimum score for a detection to be shown and to count for an image, as in caffe detect
_OVERLAP = 0.5
_RIGHT, _WRONG, _MISSED = (0, 130, 60), (200, 30, 30), (200, 110, 0)


def find(subject: Subject) -> Optional[Task]:
    detector = subject.detector()
    return Boxes(subject, *detector) if detector is not None else None


class Boxes(Task):
    name = "boxes"
    template = "boxes.html"

    def __init__(self, subject: Subject, detections: str, truths: str, layer: Any) -> None:
        super().__init__(subject)
        self._detections_blob, self._truths_blob = detections, truths
        self._classes, self._background = _classes(layer)
        self._detections: List[np.ndarray] = []
        self._truths: List[np.ndarray] = []
        self._images: List[int] = []

    def add(self, records: Sequence[Record]) -> None:
        detections, truths = self.blob(self._detections_blob).reshape(-1, 7), self.blob(self._truths_blob).reshape(-1, 8)
        for record in records:
            # Padding rows have no class.
            own = truths[(truths[:, 0] == record.slot) & (truths[:, 1] >= 0)]
            found = detections[(detections[:, 0] == record.slot) & (detections[:, 1] >= 0)]
            image = np.full((len(own), 1), record.index)
            own = np.hstack([image, own[:, [1]], own[:, 3:8]])
            found = np.hstack([np.full((len(found), 1), record.index), found[:, 1:7]])
            self._images.append(record.index)
            self._truths.append(own)
            self._detections.append(found)
            self._judge(record, own, found[found[:, 2] >= _THRESHOLD])

    def _judge(self, record: Record, truths: np.ndarray, detections: np.ndarray) -> None:
        """Offers an image with wrong or missed boxes; more of them are worse."""
        wrong, missed = 0, 0
        matches: Dict[int, Matches] = {}
        for label in sorted({int(label) for label in [*truths[:, 1], *detections[:, 1]]}):
            matches[label] = match_boxes(truths, detections, label, _OVERLAP)
            right = int(matches[label].is_right.sum())
            wrong += int((matches[label].counts & ~matches[label].is_right).sum())
            missed += matches[label].objects - right
        if wrong + missed:
            self.worst.offer(wrong + missed, lambda: dict(
                record=record.index, file=record.name, objects=int((truths[:, 6] == 0).sum()), wrong=wrong, missed=missed,
                picture=self._picture(record, truths, detections, matches)))

    def _picture(self, record: Record, truths: np.ndarray, detections: np.ndarray, matches: Dict[int, Matches]) -> Optional[str]:
        pixels = self.subject.picture(record.slot) if self.has_pictures else None
        if pixels is None:
            return None
        outlines = []
        for label, found in matches.items():
            name = self.label_name(label)
            right = detections[found.rows[found.is_right], 3:7]
            for truth in truths[(truths[:, 1] == label) & (truths[:, 6] == 0)]:
                if not _is_found(truth[2:6], right):
                    outlines.append(Outline(truth[2:6], name, _MISSED, is_dashed=True))
            for row, is_right, counts in zip(found.rows, found.is_right, found.counts):
                if counts:
                    text = f"{name} {100 * detections[row, 2]:.0f}%"
                    outlines.append(Outline(detections[row, 3:7], text, _RIGHT if is_right else _WRONG))
        return data_uri(with_outlines(pixels, outlines))

    def label_name(self, label: int) -> str:
        names = self.subject.names
        return names[label] if 0 <= label < len(names) else str(label)

    def finish(self) -> Dict[str, Any]:
        truths, detections = np.concatenate(self._truths), np.concatenate(self._detections)
        most = max([self._classes - 1, *truths[:, 1].astype(int), *detections[:, 1].astype(int)])
        labels = [label for label in range(most + 1) if label != self._background]
        names = [self.label_name(label) for label in range(most + 1)]
        figures = score_boxes(truths, detections, labels, names, _OVERLAP, _THRESHOLD)
        mistakes = self.worst.items()
        self._pictures = [one.pop("picture") for one in mistakes]
        return dict(images=len(self._images), **figures, coco=score_by_coco(truths, detections, labels, self._images, names),
                    mistakes=mistakes)

    def lines(self, figures: Dict[str, Any]) -> List[str]:
        coco = figures["coco"]
        found = [f"mAP by VOC 2007 {number(figures['voc2007'], 4)}, VOC 2012 {number(figures['voc2012'], 4)}, "
                 f"Caffe's integral {number(figures['integral'], 4)} (overlap {figures['overlap']:g})"]
        if coco is not None:
            found.append(f"COCO: AP {number(coco['ap'], 4)}, AP50 {number(coco['ap50'], 4)}, AP75 {number(coco['ap75'], 4)}")
        else:
            found.append(f"COCO's figures need pycocotools: {install_command('pycocotools')}")
        threshold = f"{figures['threshold']:g}"
        head = ["class", "VOC 2007", "VOC 2012", f"precision at {threshold}", f"recall at {threshold}", "best F1", "at score",
                "objects"]
        rows = [[printable(row["name"]), number(row["voc2007"]), number(row["voc2012"]), number(row["precision"]), number(row["recall"]),
                 number(row["best_f1"]), number(row["best_threshold"], 2), str(row["objects"])] for row in figures["classes"]]
        if coco is not None:
            head.insert(1, "AP")
            for row, of_coco in zip(rows, coco["classes"]):
                row.insert(1, number(of_coco["ap"]))
        found += ["", *table(head, rows)]
        if figures["mistakes"]:
            found += ["", f"worst images, of detections with scores of {threshold} and more:"]
            found += table(("file", "objects", "missed", "wrong"),
                           [(printable(one["file"]), str(one["objects"]), str(one["missed"]), str(one["wrong"]))
                            for one in figures["mistakes"][:5]])
        return found

    def shown(self, figures: Dict[str, Any]) -> Dict[str, Any]:
        coco = figures["coco"]
        return dict(mistakes=list(zip(figures["mistakes"], self._pictures)), install=install_command("pycocotools"),
                    rows=list(zip(figures["classes"], coco["classes"] if coco else [None] * len(figures["classes"]))))


def _is_found(truth: np.ndarray, right: np.ndarray) -> bool:
    from ..boxes import overlaps

    return len(right) > 0 and bool((overlaps(truth, np.clip(right, 0, 1)) >= _OVERLAP).any())


def _classes(layer: Any):
    """(number of classes of a layer, including the background; the background's label)."""
    for name in ("detection_evaluate_param", "detection_output_param"):
        if layer.HasField(name):
            options = getattr(layer, name)
            return options.num_classes, options.background_label_id
    # YOLO's layers count classes from 1.
    return 1, 0

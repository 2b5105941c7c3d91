"""Segmentation: one class per pixel."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ... import InvalidArgument
from ..masks import confusion_of_masks, score_masks
from ..pictures import colours, data_uri, side_by_side, sized, with_mask
from ..records import Record, printable
from ..subject import Subject
from . import Task, number, table

ORDER = 2


def find(subject: Subject) -> Optional[Task]:
    if subject.detector() is not None:
        return None
    layer = subject.comparison()
    scores = subject.net.blobs[layer.bottom[0]].shape
    return Masks(subject, layer) if len(scores) == 4 and scores[2] * scores[3] > 1 else None


class Masks(Task):
    name = "masks"
    template = "masks.html"

    def __init__(self, subject: Subject, layer: Any) -> None:
        super().__init__(subject)
        self._scores_blob, self._labels_blob = layer.bottom[0], layer.bottom[1]
        self._ignored = subject.ignored_label()
        classes = subject.net.blobs[self._scores_blob].shape[1]
        if classes < 2:
            raise InvalidArgument(f"scores '{self._scores_blob}' have {classes} channel; give a net with one for each of two classes or "
                                  "more")
        self._confusion = np.zeros((classes, classes), np.int64)
        self._unlabelled = 0

    def add(self, records: Sequence[Record]) -> None:
        scores, labels = self.blob(self._scores_blob), self.blob(self._labels_blob)
        if labels.size * scores.shape[1] != scores.size:
            raise InvalidArgument(f"labels '{self._labels_blob}' have shape {labels.shape} and scores '{self._scores_blob}' "
                                  f"{scores.shape}; give a net with a label for each place")
        for record in records:
            if np.isnan(scores[record.slot]).any():
                raise InvalidArgument(f"'{printable(record.name)}': scores are not numbers (NaN); look at the weights, they may have "
                                      "diverged")
            mask = labels[record.slot].reshape(scores.shape[2:])
            predicted = scores[record.slot].argmax(axis=0)
            confusion = confusion_of_masks(mask, predicted, len(self._confusion), self._ignored)
            self._confusion += confusion
            if confusion.sum() == 0:
                self._unlabelled += 1
                continue
            figures = score_masks(confusion)
            self.worst.offer(-figures["mean_iou"], lambda: self._mistake(record, figures, mask, predicted))

    def _mistake(self, record: Record, figures: Dict[str, Any], mask: np.ndarray, predicted: np.ndarray) -> Dict[str, Any]:
        pixels = self.subject.picture(record.slot) if self.has_pictures else None
        picture = None
        if pixels is not None:
            palette = colours(len(self._confusion))
            # Enlarges a smaller map of scores to the size of the image.
            rows, columns = (np.arange(extent) * mask.shape[axis] // extent for axis, extent in enumerate(pixels.shape[:2]))
            parts = [pixels, *(with_mask(pixels, one[rows][:, columns], palette) for one in (mask, predicted))]
            picture = data_uri(sized(side_by_side(parts), largest=640, least=288))
        return dict(record=record.index, file=record.name, mean_iou=figures["mean_iou"], pixel_accuracy=figures["pixel_accuracy"],
                    picture=picture)

    def finish(self) -> Dict[str, Any]:
        figures = score_masks(self._confusion, self.names(len(self._confusion)))
        mistakes = self.worst.items()
        self._pictures = [one.pop("picture") for one in mistakes]
        return dict(ignored_label=self._ignored, unlabelled=self._unlabelled, **figures, mistakes=mistakes)

    def lines(self, figures: Dict[str, Any]) -> List[str]:
        found = [f"mean IoU {number(figures['mean_iou'], 4)}, pixel accuracy {number(figures['pixel_accuracy'], 4)}, "
                 f"mean class accuracy {number(figures['mean_accuracy'], 4)}", ""]
        found += table(("class", "IoU", "accuracy", "pixels"),
                       [(printable(row["name"]), number(row["iou"]), number(row["accuracy"]), str(row["pixels"]))
                        for row in figures["classes"]])
        if figures["mistakes"]:
            found += ["", "worst images:"]
            found += table(("file", "mean IoU", "pixel accuracy"),
                           [(printable(one["file"]), number(one["mean_iou"]), number(one["pixel_accuracy"]))
                            for one in figures["mistakes"][:5]])
        return found

    def shown(self, figures: Dict[str, Any]) -> Dict[str, Any]:
        palette = ["#%02x%02x%02x" % colour for colour in colours(len(self._confusion))]
        return dict(mistakes=list(zip(figures["mistakes"], self._pictures)), palette=palette)

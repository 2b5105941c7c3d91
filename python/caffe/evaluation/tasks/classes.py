"""Classification: one class per item."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ... import InvalidArgument
from ..._packages import need
from ..classes import probabilities_of, score_classes
from ..pictures import data_uri, sized
from ..records import Record, printable
from ..subject import Subject
from . import Task, number, table

ORDER = 3  # after the more specific tasks
_MOST_LINES = 20
_LARGEST_MATRIX = 30  # classes; with more, the page only lists the confusions


def find(subject: Subject) -> Optional[Task]:
    return Classes(subject)


class Classes(Task):
    name = "classes"
    template = "classes.html"

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        need("sklearn.metrics")  # now, not after reading the whole data set
        layer = subject.comparison()
        self._scores_blob, self._labels_blob = layer.bottom[0], layer.bottom[1]
        makes = subject.makes_probabilities(self._scores_blob)
        self._are_probabilities, self._needs_softmax = makes is not None, makes is False
        self._ignored = subject.ignored_label()
        self._labels: List[np.ndarray] = []
        self._scores: List[np.ndarray] = []
        self._unlabelled = 0

    def add(self, records: Sequence[Record]) -> None:
        slots = [record.slot for record in records]
        scores = self._per_item(self._scores_blob)[slots]
        labels = self._labels_of_items()[slots]
        if self._needs_softmax:
            scores = probabilities_of(scores)
        kept = np.ones(len(labels), bool) if self._ignored is None else labels != self._ignored
        self._unlabelled += int((~kept).sum())
        self._labels.append(labels[kept].astype(np.int64))
        self._scores.append(np.array(scores[kept], np.float32))
        predicted = scores.argmax(axis=1)
        for k in np.flatnonzero(kept & (predicted != labels)):
            self.worst.offer(float(scores[k, predicted[k]]), lambda k=k: self._mistake(records[k], int(labels[k]), scores[k]))

    def _per_item(self, blob: str) -> np.ndarray:
        """The blob as an array (N, C)."""
        scores = self.blob(blob)
        if scores.ndim < 2 or scores.size != scores.shape[0] * scores.shape[1]:
            raise InvalidArgument(f"scores '{blob}' have shape {scores.shape}; a classifier's are (N, C), a score for each class")
        return scores.reshape(scores.shape[:2])

    def _labels_of_items(self) -> np.ndarray:
        labels = self.blob(self._labels_blob)
        if labels.size != labels.shape[0]:
            raise InvalidArgument(f"labels '{self._labels_blob}' have shape {labels.shape}: {labels.size // labels.shape[0]} for an item; "
                                  "give a net with one label for each")
        return labels.reshape(-1)

    def _mistake(self, record: Record, label: int, scores: np.ndarray) -> Dict[str, Any]:
        taken_for = int(scores.argmax())
        pixels = self.subject.picture(record.slot) if self.has_pictures else None
        return dict(record=record.index, file=record.name, label=label, predicted=taken_for, score=float(scores[taken_for]),
                    score_of_label=float(scores[label]), picture=None if pixels is None else data_uri(sized(pixels, largest=160)))

    def finish(self) -> Dict[str, Any]:
        labels, scores = np.concatenate(self._labels), np.concatenate(self._scores)
        if len(labels) == 0:
            raise InvalidArgument(f"all {self._unlabelled} records have the label {self._ignored}, which the loss ignores; there is "
                                  "nothing to score")
        names = self.names(scores.shape[1])
        figures = score_classes(labels, scores, names, self._are_probabilities)
        mistakes = self.worst.items()
        self._pictures = [one.pop("picture") for one in mistakes]
        for one in mistakes:
            one.update(name=names[one["label"]], predicted_name=names[one["predicted"]])
        return dict(unlabelled=self._unlabelled, **figures, mistakes=mistakes)

    def lines(self, figures: Dict[str, Any]) -> List[str]:
        chosen = [f"accuracy {number(figures['accuracy'], 4)}"]
        if figures["top5_accuracy"] is not None:
            chosen.append(f"top-5 accuracy {number(figures['top5_accuracy'], 4)}")
        chosen.append(f"mean F1 {number(figures['macro']['f1'], 4)}")
        if figures["calibration"] is not None:
            chosen += [f"log loss {number(figures['log_loss'], 4)}",
                       f"calibration error {number(figures['calibration']['expected_error'], 4)}"]
        rows = sorted((row for row in figures["classes"] if row["support"]), key=lambda row: row["f1"])
        found = [", ".join(chosen), ""]
        if len(rows) > _MOST_LINES:
            found.append(f"the {_MOST_LINES} worst of {len(rows)} classes:")
        found += table(("class", "precision", "recall", "F1", "items"),
                       [(printable(row["name"]), number(row["precision"]), number(row["recall"]), number(row["f1"]), str(row["support"]))
                        for row in rows[:_MOST_LINES]])
        if figures["confusions"]:
            found += ["", "most often taken for each other:"]
            found += table(("class", "taken for", "times", "of its items"),
                           [(printable(one["name"]), printable(one["taken_for_name"]), str(one["count"]), f"{100 * one['share']:.1f}%")
                            for one in figures["confusions"][:5]])
        if figures["mistakes"]:
            found += ["", "surest mistakes:"]
            found += table(("file", "is", "taken for", "score"),
                           [(printable(one["file"]), printable(one["name"]), printable(one["predicted_name"]), number(one["score"]))
                            for one in figures["mistakes"][:5]])
        return found

    def shown(self, figures: Dict[str, Any]) -> Dict[str, Any]:
        used = [k for k, row in enumerate(figures["classes"]) if row["support"] or row["predicted"]]
        return dict(mistakes=list(zip(figures["mistakes"], self._pictures)), used=used if len(used) <= _LARGEST_MATRIX else [])

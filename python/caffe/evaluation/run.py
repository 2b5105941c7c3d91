"""Runs a net and computes its metrics."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple

from .. import __version__
from .records import each_record_once
from .subject import Subject
from .tasks import Task, task_of


class Evaluation(NamedTuple):
    """figures: the metrics for JSON. text: for a terminal. page: makes the HTML page."""

    figures: Dict[str, Any]
    task: Task

    @property
    def text(self) -> str:
        return "\n".join(self.task.lines(self.figures)) + "\n"

    def page(self) -> str:
        """The HTML page. Raises Unsupported without Jinja2."""
        from .page import render

        return render(self.task.template, figures=self.figures, untrained=self.task.subject.untrained_text(), **self.task.shown(self.figures))


def evaluate(subject: Subject, worst: int = 24, pictures: bool = True, progress: bool = False) -> Evaluation:
    """Reads each record of the subject's data once and scores the results.

    worst: number of mistakes to keep. pictures: keep the net's input with each mistake, for the page.
    Raises InvalidArgument if labels do not match the scores, or the net's outputs cannot be scored.
    """
    task = task_of(subject)
    task.keep(worst, pictures)
    seen = set()
    for records in each_record_once(subject.net, progress):
        seen.update(record.index for record in records)
        task.add(records)
    missing = sorted(set(range(subject.supply.count)) - seen)
    figures = dict(version=__version__, task=task.name, model=subject.title, net=subject.net.name, weights=subject.weights,
                   untrained=subject.untrained, records=len(seen), left_out=missing)
    figures.update(task.finish())
    return Evaluation(figures, task)

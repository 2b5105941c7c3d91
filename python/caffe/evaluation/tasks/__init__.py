"""Tasks: one module per kind of output, with a `find(subject)` that returns a Task if the net has such an
output, else None. Modules are asked by ascending ORDER; no list has to be edited to add one."""
from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Dict, List, Optional, Sequence

from ... import InvalidArgument
from ..records import Record
from ..subject import Subject
from ..worst import Worst


class Task:
    """Collects results batch by batch. name: as in the figures. template: of the page."""

    name = ""
    template = ""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.worst = Worst(0)
        self.has_pictures = False

    def keep(self, worst: int, pictures: bool) -> None:
        """Called before the first batch: how many of the worst items to keep, and whether with pictures."""
        self.worst, self.has_pictures = Worst(worst), pictures

    def add(self, records: Sequence[Record]) -> None:
        """Adds the results of these records of the current batch."""
        raise NotImplementedError

    def finish(self) -> Dict[str, Any]:
        """The metrics over all batches. Raises InvalidArgument if nothing had a label."""
        raise NotImplementedError

    def lines(self, figures: Dict[str, Any]) -> List[str]:
        """Lines for a terminal."""
        raise NotImplementedError

    def shown(self, figures: Dict[str, Any]) -> Dict[str, Any]:
        """The variables of the page's template, besides the figures."""
        raise NotImplementedError

    def blob(self, name: str) -> Any:
        """The data of a blob, without a copy."""
        return self.subject.net.blobs[name].data

    def names(self, classes: int) -> List[str]:
        """Names of `classes` classes; their numbers if there are no names. Raises InvalidArgument if there
        are fewer names than classes."""
        names = self.subject.names
        if names and len(names) < classes:
            raise InvalidArgument(f"there are {len(names)} names of classes, but the net has {classes} classes; give a line for each by "
                                  "--labels")
        return names[:classes] if names else [str(label) for label in range(classes)]


def task_of(subject: Subject) -> Task:
    """Raises InvalidArgument if no task supports the net's outputs."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    for module in sorted(modules, key=lambda module: module.ORDER):
        task: Optional[Task] = module.find(subject)
        if task is not None:
            return task
    raise InvalidArgument(f"{subject.title}: gives no answers that can be scored; give a net that ends in an Accuracy, a softmax loss or "
                          "DetectionEvaluate")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    """Formats columns of text: the first is left-aligned, the others right-aligned."""
    every = [list(head), *map(list, rows)]
    widths = [max(len(row[k]) for row in every) for k in range(len(head))]
    return ["  " + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
            for row in every]


def number(value: Optional[float], digits: int = 3) -> str:
    """A dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"

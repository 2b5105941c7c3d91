"""Tasks: a module for each kind of answers, with `find(subject)`, which returns a Task where the net gives
such answers, else None. Modules are asked in the order of their ORDER; adding one edits no list."""
from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Dict, List, Optional, Sequence

from ... import InvalidArgument
from ..records import Record
from ..subject import Subject
from ..worst import Worst


class Task:
    """Collects answers batch by batch. name: as the figures have it. template: of the page."""

    name = ""
    template = ""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.worst = Worst(0)
        self.has_pictures = False

    def keep(self, worst: int, pictures: bool) -> None:
        """Before the first batch: how many of the worst items to keep, and whether with pictures."""
        self.worst, self.has_pictures = Worst(worst), pictures

    def add(self, records: Sequence[Record]) -> None:
        """Takes the answers of these records of the current batch."""
        raise NotImplementedError

    def finish(self) -> Dict[str, Any]:
        """The figures of all batches. Raises InvalidArgument where nothing had a label."""
        raise NotImplementedError

    def lines(self, figures: Dict[str, Any]) -> List[str]:
        """For a terminal."""
        raise NotImplementedError

    def shown(self, figures: Dict[str, Any]) -> Dict[str, Any]:
        """Returns the variables of the page's template, apart from the figures."""
        raise NotImplementedError

    def blob(self, name: str) -> Any:
        """The numbers of a blob, without a copy."""
        return self.subject.net.blobs[name].data

    def names(self, classes: int) -> List[str]:
        """Names of so many classes; without names, their numbers. Raises InvalidArgument where there are
        names, but fewer than classes."""
        names = self.subject.names
        if names and len(names) < classes:
            raise InvalidArgument(f"there are {len(names)} names of classes, but the net has {classes} classes; give a line for each by "
                                  "--labels")
        return names[:classes] if names else [str(label) for label in range(classes)]


def task_of(subject: Subject) -> Task:
    """Raises InvalidArgument where the net gives no answers that are known here."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    for module in sorted(modules, key=lambda module: module.ORDER):
        task: Optional[Task] = module.find(subject)
        if task is not None:
            return task
    raise InvalidArgument(f"{subject.title}: gives no answers that can be scored; give a net that ends in an Accuracy, a softmax loss or "
                          "DetectionEvaluate")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    """Columns of text: the first to the left, the others to the right."""
    every = [list(head), *map(list, rows)]
    widths = [max(len(row[k]) for row in every) for k in range(len(head))]
    return ["  " + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
            for row in every]


def number(value: Optional[float], digits: int = 3) -> str:
    """A dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def printable(name: str) -> str:
    """A name for a terminal: without what would move its cursor."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)

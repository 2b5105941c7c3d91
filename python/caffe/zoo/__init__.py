"""Nets to begin with, for any number of classes: what `caffe new --net` offers, and what the files in
models/ are made of.

A module has a list NETS; adding a net edits no other file.
"""
from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Tuple


class Net(NamedTuple):
    """A net of the zoo, and how it is trained where nobody says otherwise.

    task: "classification", "detection" or "segmentation". body: adds its layers to a Model, see
    zoo.common; of a detector and a segmentation net, see their modules. sides: the smallest, the
    usual and the largest height and width of its input, in pixels. multiple: a side is a multiple of
    this. batch: images of a training batch. solver: fields of SolverParameter. images: how many a
    training sees in all, from which follows the number of passes over a set. is_default: taken for
    its task where its sizes fit. pixels: mean of blue, green and red, and scale, of the images that
    its published weights know, (pixel - mean) * scale; a mean of None: not known.
    """

    name: str
    task: str
    body: Callable[..., Any]
    summary: str
    sides: Tuple[int, int, int]
    multiple: int
    batch: int
    solver: Dict[str, Any]
    images: int
    is_default: bool = False
    pixels: Tuple[Any, float] = ((104.0, 117.0, 123.0), 1.0)


def nets() -> Dict[str, Net]:
    """All nets of the zoo, by name."""
    found: Dict[str, Net] = {}
    for info in pkgutil.iter_modules(__path__):
        for net in getattr(importlib.import_module(f"{__name__}.{info.name}"), "NETS", ()):
            found[net.name] = net
    return dict(sorted(found.items()))


def choose(task: str, side: int) -> Net:
    """The net for a task and for images whose shorter sides are about `side` pixels: of the defaults
    the one with the largest usual side that is not above theirs, else the smallest."""
    fitting = sorted((net for net in nets().values() if net.task == task and net.is_default), key=lambda net: net.sides[1])
    not_above = [net for net in fitting if net.sides[1] <= side]
    return not_above[-1] if not_above else fitting[0]


def net_named(name: str, task: str) -> Net:
    """The net of the zoo with the name, or of the file NAME.prototxt. Raises InvalidArgument, with
    those that there are, where no net for the task has the name."""
    from .. import InvalidArgument  # not at the top: models/generate.py has no compiled package

    if name.endswith(".prototxt"):
        if task != "classification":
            raise InvalidArgument(f"--net is {name}, a net of a file, which is for classification; the images are for {task}")
        from .of_file import net_of_file
        return net_of_file(Path(name))
    all_nets = nets()
    if name not in all_nets or all_nets[name].task != task:
        there = ", ".join(net.name for net in all_nets.values() if net.task == task)
        what = f"is for {all_nets[name].task}" if name in all_nets else "is not there"
        raise InvalidArgument(f"net '{name}' {what}; for {task} there are {there}")
    return all_nets[name]

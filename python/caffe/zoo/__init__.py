"""Nets to start from, for any number of classes: `caffe new --net` offers them, and the files in
models/ are generated from them.

A module has a list NETS; no other file has to be edited to add a net.
"""
from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Tuple


class Net(NamedTuple):
    """A net of the zoo, and its default training.

    task: "classification", "detection" or "segmentation". body: adds its layers to a Model, see
    zoo.common; for detection and segmentation, see the modules. sides: smallest, usual and largest
    height and width of its input, in pixels. multiple: sides are multiples of this. batch: images per
    training batch. solver: fields of SolverParameter. images: total number of images seen in training,
    which determines the number of passes over a set. is_default: candidate for its task if the sizes
    fit. pixels: mean of blue, green and red, and scale, with which its published weights were trained,
    (pixel - mean) * scale; a mean of None is unknown.
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
    """The net for a task and for images whose shorter sides are about `side` pixels: among the defaults,
    the one with the largest usual side that does not exceed theirs, else the smallest."""
    fitting = sorted((net for net in nets().values() if net.task == task and net.is_default), key=lambda net: net.sides[1])
    not_above = [net for net in fitting if net.sides[1] <= side]
    return not_above[-1] if not_above else fitting[0]


def net_named(name: str, task: str) -> Net:
    """The net of the zoo with this name, or of the file NAME.prototxt. Raises InvalidArgument, which lists
    the known names, if no net for the task has this name."""
    from .. import InvalidArgument  # not at the top: models/generate.py runs without the compiled package

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

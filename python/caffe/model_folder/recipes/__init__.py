"""Nets and solvers of model folders: a module for each task, with `train_val`."""
from __future__ import annotations

import importlib
import math
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ...net_spec import assign_proto
from ...net_spec import params as P
from ...proto import caffe_pb2
from ...zoo import Net
from ..datasets import Dataset, Halves


# Moving-average factor of normalization statistics: short, some 60 steps, because these trainings are short.
KEPT = 0.95


class Plan(NamedTuple):
    """The choices for a model's folder.

    side: of the net's input, in pixels. stored: side of the stored images. epochs: passes over the training half. seed: for training.
    weights: file of initial weights relative to the folder, or "". mean, scale: the net's input is (pixel - mean) * scale.
    copied: how many layers start from these weights, and of how many; None without weights.
    """

    name: str
    net: Net
    dataset: Dataset
    halves: Halves
    side: int
    stored: int
    batch: int
    epochs: int
    seed: int
    weights: str
    mean: Tuple[float, ...]
    scale: float
    copied: Optional[Tuple[int, int]] = None


def train_val(plan: Plan) -> Any:
    """The NetParameter for training and testing."""
    return _module(plan).train_val(plan)


def solver(plan: Plan) -> Any:
    """The SolverParameter. Each epoch ends with a test. Keeps the best model, and the two newest snapshots to resume from."""
    epoch = max(1, math.ceil(plan.halves.train_count / plan.batch))
    settings: Dict[str, Any] = dict(
        net="train_val.prototxt", max_epoch=plan.epochs, display=max(1, min(50, epoch)), test_initialization=False,
        average_loss=max(1, min(20, epoch)), snapshot=max(50, epoch), snapshot_prefix=f"snapshots/{plan.name}",
        metric="accuracy", keep_snapshots=2, random_seed=plan.seed, solver_mode=P.Solver.CPU)
    settings.update(plan.net.solver)
    settings.update(_module(plan).solver(plan.epochs * epoch))
    if plan.weights:
        settings.update(weights=[plan.weights], base_lr=settings["base_lr"] / 5)
    message = caffe_pb2.SolverParameter()
    for name, value in settings.items():
        assign_proto(message, name, value)
    return message


def stored_side(task: str, side: int) -> int:
    """Height and width of stored images for a net's input of `side` pixels."""
    of_task = importlib.import_module(f"{__name__}.{task}")
    return of_task.stored_side(side) if hasattr(of_task, "stored_side") else side


def test_batch(plan: Plan) -> int:
    """Batch size for testing."""
    return min(50, plan.halves.val_count)


def _module(plan: Plan) -> Any:
    return importlib.import_module(f"{__name__}.{plan.dataset.task}")

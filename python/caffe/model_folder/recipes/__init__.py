"""The net and the solver of a model's folder: a module for each task, with `train_val`."""
from __future__ import annotations

import importlib
import math
from typing import Any, Dict, NamedTuple, Tuple

from ...net_spec import assign_proto
from ...net_spec import params as P
from ...proto import caffe_pb2
from ...zoo import Net
from ..datasets import Dataset, Halves


# Of the statistics of normalization: they forget within some 60 steps, as these trainings are short.
KEPT = 0.95


class Plan(NamedTuple):
    """What a model's folder is made for.

    side: of the net's input, in pixels. stored: of the images in a database. epochs: passes over the training half. seed: of training.
    weights: file of weights to start from, from the folder on, or "". mean, scale: a net's input is (pixel - mean) * scale.
    """

    name: str
    net: Net
    dataset: Dataset
    halves: Halves
    side: int
    stored: int
    batch: int
    epochs: float
    seed: int
    weights: str
    mean: Tuple[float, ...]
    scale: float


def train_val(plan: Plan) -> Any:
    """The NetParameter for training and testing."""
    return _module(plan).train_val(plan)


def solver(plan: Plan) -> Any:
    """The SolverParameter. An epoch, or 50 iterations of a small set, goes from one test, which sees the
    test half once, and snapshot to the next; the last one is at the end."""
    epoch = max(1, math.ceil(plan.halves.train_count / plan.batch))
    # Tests of a small set would take longer than training.
    between = max(epoch, 50)
    iterations = math.ceil(plan.epochs * plan.halves.train_count / plan.batch / between) * between
    settings: Dict[str, Any] = dict(
        net="train_val.prototxt", max_iter=iterations, display=max(1, min(50, epoch)), test_initialization=False,
        test_iter=math.ceil(plan.halves.val_count / test_batch(plan)), test_interval=between, average_loss=max(1, min(20, epoch)),
        snapshot=between, snapshot_prefix=f"snapshots/{plan.name}", random_seed=plan.seed, solver_mode=P.Solver.CPU)
    settings.update(plan.net.solver)
    settings.update(_module(plan).SOLVER)
    settings["rampup_interval"] = min(settings["rampup_interval"], max(1, iterations // 10))
    if plan.weights:
        settings.update(weights=[plan.weights], base_lr=settings["base_lr"] / 5)
    message = caffe_pb2.SolverParameter()
    for name, value in settings.items():
        assign_proto(message, name, value)
    return message


def test_batch(plan: Plan) -> int:
    """Images of a batch of testing: the most, up to 50, that divides the test half, so that each image
    counts once; where that would be few, some at the beginning count twice."""
    count = plan.halves.val_count
    most = min(50, count)
    divisors = [size for size in range(1, most + 1) if count % size == 0]
    return divisors[-1] if divisors[-1] * 4 > most else most


def _module(plan: Plan) -> Any:
    return importlib.import_module(f"{__name__}.{plan.dataset.task}")

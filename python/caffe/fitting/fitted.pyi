from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._caffe import Net, Solver
from ..net_spec import NetSpec
from ..proto import caffe_pb2

Path = str | bytes | PathLike[Any]
Arrays = ArrayLike | Mapping[str, ArrayLike]
Metric = Callable[[NDArray[Any], Any], Any]
Metrics = str | Metric | Mapping[str, str | Metric]
Callback = Callable[["Fit"], Any]

class Fit:
    history: list[dict[str, Any]]
    solver: Solver
    seed: int
    interrupted: bool
    def __init__(self, net: Path | caffe_pb2.NetParameter | NetSpec, x: Arrays, y: Arrays | None = None, epochs: int | None = None,
                 batch: int | None = None, solver: Path | caffe_pb2.SolverParameter | Mapping[str, Any] | None = None,
                 validation: float | tuple[Arrays, Arrays] | tuple[Arrays] | None = None, metric: Metrics | None = None,
                 callbacks: Callback | Iterable[Callback] = (), seed: int | None = None, resume: Path | None = None,
                 shuffle: bool = True, progress: bool = True, precision: str | None = None, keep_all: bool = False) -> None: ...
    @property
    def epochs(self) -> float: ...
    @property
    def net(self) -> Net: ...
    def train(self, epochs: int | None = None) -> Fit: ...
    def predict(self, x: Arrays, batch: int | None = None) -> NDArray[np.float32] | dict[str, NDArray[np.float32]]: ...
    def evaluate(self, x: Arrays, y: Arrays | None = None, batch: int | None = None, metric: Metrics | None = None) -> dict[str, float]: ...
    def save(self, file: Path) -> None: ...
    def snapshot(self) -> str: ...

def fit(net: Path | caffe_pb2.NetParameter | NetSpec, x: Arrays, y: Arrays | None = None, epochs: int | None = None,
        batch: int | None = None, solver: Path | caffe_pb2.SolverParameter | Mapping[str, Any] | None = None,
        validation: float | tuple[Arrays, Arrays] | tuple[Arrays] | None = None, metric: Metrics | None = None,
        callbacks: Callback | Iterable[Callback] = (), seed: int | None = None, resume: Path | None = None,
        shuffle: bool = True, progress: bool = True, precision: str | None = None, keep_all: bool = False) -> Fit: ...

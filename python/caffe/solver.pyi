from collections.abc import Callable
from os import PathLike
from typing import Any

from ._caffe import Solver as Solver

Path = str | bytes | PathLike[Any]

class SGDSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class NesterovSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class AdaGradSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class RMSPropSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class AdaDeltaSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class AdamSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class SAGSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class AdamWSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class LAMBSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

class AdaSecantSolver(Solver):
    def __init__(self, solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None) -> None: ...

def get_solver(solver_file: Path, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
               ranks: bool | None = None, calibration: Path | None = None) -> Solver: ...
def train(solver: Solver | Path, iterations: int | None = None, callback: Callable[[Solver], bool | None] | None = None,
          progress: bool = True, resume_file: Path | None = None, run_dir: Path | None = None, histograms: int = 0) -> Solver: ...

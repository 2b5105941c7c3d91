from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from ._caffe import Solver as Solver
from .proto import caffe_pb2

Path = str | bytes | PathLike[Any]
Definition = Path | caffe_pb2.SolverParameter

class SGDSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class NesterovSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class AdaGradSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class RMSPropSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class AdaDeltaSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class AdamSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class SAGSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class AdamWSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class LionSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class LAMBSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

class AdaSecantSolver(Solver):
    def __init__(self, solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
                 ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
                 **fields: Any) -> None: ...

def get_solver(solver_file: Definition, keep_all: bool = True, precision: str | None = None, lenient: bool = False,
               ranks: bool | None = None, calibration: Path | None = None, set: Mapping[str, Any] | None = None,
               **fields: Any) -> Solver: ...
def train(solver: Solver | Definition, iterations: int | None = None, callback: Callable[[Solver], bool | None] | None = None,
          progress: bool = True, resume_file: Path | None = None, run_dir: Path | None = None, histograms: int = 0,
          set: Mapping[str, Any] | None = None, **fields: Any) -> Solver: ...

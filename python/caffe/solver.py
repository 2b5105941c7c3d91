"""Solvers: one class per type, get_solver, and train."""
import functools
import sys
import time

from . import _caffe
from ._caffe import InvalidArgument, Solver
from ._overrides import assignments
from ._unmade import guard_construction

__all__ = [name + "Solver" for name in _caffe.solver_type_list()]


_OPTIONS = ("keep_all", "precision", "lenient", "ranks", "calibration")


def _class_of(type_name):
    def __init__(self, solver_file, keep_all=True, precision=None, lenient=False, ranks=None, calibration=None, set=None, **fields):
        Solver.__init__(self, solver_file, type_name, keep_all, precision, lenient, ranks, calibration, set, **fields)

    return type(type_name + "Solver", (Solver,), {
        "__init__": __init__, "__module__": "caffe",
        "__doc__": f"{type_name}Solver(solver_file, keep_all=True, precision=None, lenient=False, ranks=None,\n"
                   "calibration=None, set=None, **fields)\n\n"
                   f"Trains by the optimizer {type_name}, whatever the definition's `type`. See get_solver()."})


globals().update({name + "Solver": _class_of(name) for name in _caffe.solver_type_list()})


def get_solver(solver_file, keep_all=True, precision=None, lenient=False, ranks=None, calibration=None, set=None, **fields):
    """The solver for a definition: an object of the class that its `type` names.

    solver_file: a solver prototxt's name, or a caffe_pb2.SolverParameter, whose paths are relative
    to the working folder; without snapshot_prefix, its snapshots are named "solver_iter_N".
    keep_all=False trains with the plan of `caffe train`: faster and with a fraction of the memory, but
    only inputs, outputs and parameters can be read between steps. precision: "fp32", "fp16", "bf16",
    "fp64" or "fake_int8"; overrides the file's, like --precision. calibration: the file of caffe
    calibrate that "fake_int8" needs. lenient: ignore, each with a warning, fields that Caffe does not
    have and layers of unknown types. ranks: True trains together with the other processes started by
    mpirun, srun or torchrun (docs/clusters.md), which must make the same calls, each on the CPU or on
    its set_device(); without such processes, trains alone. None trains alone and warns if there are
    such processes, False trains alone without a warning.

    set and further keywords change fields of the definition, like --set:

        caffe.get_solver("solver.prototxt", base_lr=0.1, stepvalue=[1000, 2000])
        caffe.get_solver("solver.prototxt", set={"layer[conv1].convolution_param.num_output": 32})

    A path that begins with layer[NAME] changes the solver's net. Values are numbers, strings, True,
    False, and lists of them for repeated fields. Raises InvalidArgument for an unknown field, with the
    nearest name, and for a value of the wrong type.
    """
    changes = assignments(set, fields, _OPTIONS)
    # For an unknown type, Solver itself reports the known types.
    own_class = globals().get(_caffe._solver_type(solver_file, changes, lenient) + "Solver", Solver)
    return own_class(solver_file, keep_all=keep_all, precision=precision, lenient=lenient, ranks=ranks, calibration=calibration,
                     set={**fields, **(set or {})})


def _construct(self, solver_file, type="", keep_all=True, precision=None, lenient=False, ranks=None, calibration=None,
               set=None, **fields):
    _made(self, solver_file, type, keep_all, precision, lenient, ranks, calibration, assignments(set, fields, _OPTIONS))


def _definition(solver):
    from .proto import caffe_pb2
    return caffe_pb2.SolverParameter.FromString(solver._param())


def _param(self):
    """A copy of the solver's definition, as a caffe_pb2.SolverParameter. step() and solve() fail if the copy was changed."""
    if "_given_param" not in self.__dict__:
        self.__dict__["_given_param"] = _definition(self)
    return self.__dict__["_given_param"]


def _check_param(solver):
    """Raises an error, once, if a field of the copy was changed, which has no effect on the solver."""
    given = getattr(solver, "__dict__", {}).get("_given_param")
    if given is None:
        return
    own = _definition(solver)
    if given == own:
        return
    changed = [field.name for field in own.DESCRIPTOR.fields if getattr(given, field.name) != getattr(own, field.name)]
    if not changed:
        return
    del solver.__dict__["_given_param"]
    raise InvalidArgument(f"solver.param is a copy, and what was changed in it ({', '.join(changed)}) does not change the solver; "
                          "make a solver of the changed definition: caffe.get_solver(definition)")


def _refusing_changes(name):
    run = getattr(Solver, name)

    @functools.wraps(run)
    def call(self, *args, **kwargs):
        _check_param(self)
        return run(self, *args, **kwargs)

    return call


def _made_once(name):
    """A property of the extension, evaluated once per solver, so that arrays stored on a net (set_input_arrays) persist."""
    made, key = getattr(Solver, name), "_made_" + name

    def get(self):
        if key not in self.__dict__:
            self.__dict__[key] = made.__get__(self)
        return self.__dict__[key]

    get.__doc__ = made.__doc__
    return property(get)


def _repr(self):
    return f"<caffe.{self.type}Solver of net {self.net.name!r} at iteration {self.iter}>"


_made, _construct.__doc__ = Solver.__init__, Solver.__init__.__doc__
Solver.__init__ = guard_construction(_construct)
Solver.param = property(_param)
for _name in ("step", "solve", "_step", "_solve"):
    setattr(Solver, _name, _refusing_changes(_name))
Solver.net = _made_once("net")
Solver.test_nets = _made_once("test_nets")
Solver.__repr__ = _repr


def train(solver, iterations=None, callback=None, progress=True, resume_file=None, run_dir=None, histograms=0, set=None, **fields):
    """Trains and shows progress.

    solver: a solver; or a solver prototxt's name or a caffe_pb2.SolverParameter, which is passed to
    get_solver() with set and the further keywords, and trains together with the other processes
    started by mpirun, srun or torchrun. iterations: how many to run from here; without it, training
    runs to max_iter or max_epoch, or until early_stopping ends it, with the final snapshot and test,
    like `caffe train`. callback(solver): called after each iteration; training stops if it returns
    False. progress: in a terminal or a notebook, shows one line with iteration, loss, rate and
    remaining time below the log. resume_file: a .solverstate. run_dir: a folder for the run's records
    (docs/runs.md); histograms: interval in iterations of histograms of the parameters in it.

    Returns the solver. Ctrl-C stops after the current iteration, with a KeyboardInterrupt.
    """
    if not isinstance(solver, Solver):
        solver = get_solver(solver, **{"ranks": True, **fields}, set=set)
    elif set or fields:
        raise InvalidArgument(f"train: {next(iter([*(set or ()), *fields]))} is given for a solver that is made already; "
                              "give it to get_solver(), or give train() the definition")
    if iterations is not None and resume_file is not None:
        solver.restore(resume_file)
    if iterations is None and not (solver.param.HasField("max_iter") or solver.param.HasField("max_epoch")):
        raise InvalidArgument("train: the solver has no max_iter and no max_epoch; set one, or give iterations")
    last = solver.max_iter if iterations is None else solver.iter + iterations
    line = _NotebookLine(last) if progress and _is_notebook(sys.stderr) else None
    live_line = progress and sys.stderr is not None and sys.stderr.isatty()

    def after_iteration():
        if line is not None:
            line.show(solver)
        return callback is None or callback(solver) is not False

    try:
        if iterations is None:
            solver._solve(resume_file, after_iteration, run_dir, histograms, live_line)
        else:
            solver._step(iterations, after_iteration, run_dir, histograms, live_line)
    finally:
        if line is not None:
            line.end(solver)
    return solver


def _is_notebook(stream):
    return type(stream).__module__.startswith("ipykernel.")


class _NotebookLine:
    """One line below a notebook's cell, updated at most ten times per second. The log does not appear in the notebook."""

    def __init__(self, last):
        self.last, self.first, self.start, self.shown = last, None, time.monotonic(), 0.0

    def show(self, solver, final=False):
        now = time.monotonic()
        if self.first is None:
            self.first, self.start = solver.iter, now
        if not final and now - self.shown < 0.1:
            return
        self.shown = now
        done = solver.iter - self.first
        rate = done / (now - self.start) if done and now > self.start else 0
        left = f", {_clock((self.last - solver.iter) / rate)} left" if rate and not final else ""
        text = f"iteration {solver.iter}/{self.last}, loss {solver.loss:.4g}, lr {solver.lr:.3g}, {rate:.1f} it/s{left}"
        print("\r" + text.ljust(79), end="", file=sys.stderr, flush=True)

    def end(self, solver):
        if self.first is not None:
            self.show(solver, final=True)
            print(file=sys.stderr, flush=True)


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"

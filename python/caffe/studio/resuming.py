"""How a run continues from its newest snapshot: by the command that started it, in its own folder.

A run folder that was copied or moved still names the original's paths, so it never continues: it would train the original.
"""
import dataclasses
import glob
import os
import re
import shlex

from google.protobuf import text_format

from .. import InvalidArgument
from ..proto import caffe_pb2
from ..runs import Run

_LARGEST = 4 << 20  # bytes of a solver's definition that is read


class CannotResume(InvalidArgument):
    """Why a run cannot continue. run: the path of the run that can continue instead, or ""."""

    def __init__(self, why, run=""):
        super().__init__(why)
        self.run = run


@dataclasses.dataclass(frozen=True)
class Resumption:
    """words: after `caffe`; working: the folder in which they run; field, value: the solver's field that limits the training, and its value."""
    words: list
    working: str
    field: str = "max_iter"
    value: int = 0

    def until(self, value):
        """The same with a longer training. Raises InvalidArgument for one that is not longer."""
        if not isinstance(value, (int, float)) or int(value) <= self.value:
            given = "empty" if value is None else f"{value:g}" if isinstance(value, (int, float)) else value
            raise InvalidArgument(f"{self.field} is {given}, but the training has had {self.value} already; give more")
        words = _without(self.words, "set", lambda given: given.partition("=")[0] == self.field)
        return dataclasses.replace(self, words=[*words, f"--set={self.field}={int(value)}"], value=int(value))


def is_done(run):
    """True if nothing is left to train."""
    return run.state == "finished" or run.state != "running" and 0 < run.stop_iteration <= run.iteration


def finished_run(model):
    """The newest Run of a model's folder if it has trained as long as solver.prototxt says, else None."""
    runs = os.path.join(model, "runs")
    numbers = [int(name) for name in os.listdir(runs) if name.isdigit()] if os.path.isdir(runs) else []
    if not numbers:
        return None
    run = Run(os.path.join(runs, str(max(numbers))))
    run.refresh()
    if not is_done(run):
        return None
    field, trained = _length(run)
    solver = _read_solver(os.path.join(model, "solver.prototxt"))
    return run if solver.HasField(field) and getattr(solver, field) <= trained else None


def require_own(run):
    """Raises CannotResume if the newest session of a run has not written to this folder, so that the run was copied or moved."""
    session, here = run.session, os.path.realpath(run.folder)
    recorded = str(session.get("run_dir", ""))
    if not recorded:
        raise CannotResume("This run is of a version that did not record its folder, so that it may be a copy. Use the command that started "
                           f"it, with --auto_resume: {session.get('command', '')}")
    if _is_own(run):
        return
    model = os.path.dirname(os.path.dirname(here))
    own = f" To train this copy of the model, use Train on the page of {os.path.basename(model)}." if _is_model(model) else ""
    where = f"This folder is a copy, or was moved: the training writes its run to {recorded}"
    if os.path.exists(os.path.join(recorded, "run.json")):
        raise CannotResume(f"{where}. Open that run to continue or to stop it.{own}", recorded)
    raise CannotResume(f"{where}, which is no longer there. Move the folder back to continue it.{own}")


def resumption(run):
    """The Resumption of a Run. Raises CannotResume."""
    session, here = run.session, os.path.realpath(run.folder)
    words = _train_words(session)
    if not words:
        raise CannotResume("The run does not say by which `caffe train` it was started.")
    require_own(run)
    if run.state == "running":
        raise CannotResume("It runs already.")
    _require_newest(run)
    working = str(session.get("folder", ""))
    words = _in_folder(_without(words, "run_dir"), working)
    return Resumption([*words, f"--run_dir={here}"], working, *_length(run))


def _is_own(run):
    recorded = str(run.session.get("run_dir", ""))
    return bool(recorded) and os.path.realpath(recorded) == os.path.realpath(run.folder)


def _train_words(session):
    """The words after `caffe` of a session, without the snapshot that it began with; [] if it is not known to be one of `caffe train`."""
    try:
        program, *words = shlex.split(str(session.get("command", ""))) or [""]
    except ValueError:  # an open quote: the command was cut
        return []
    if os.path.basename(program) != "caffe" or words[:1] != ["train"]:
        return []
    words = _without(words, "snapshot")  # it has been passed, and --auto_resume finds the newest one
    return words if "--auto_resume" in words else [*words, "--auto_resume"]


def _without(words, flag, is_meant=lambda value: True):
    """The words of a command without a flag and its value, --flag=VALUE or --flag VALUE, where the value is meant."""
    kept, index = [], 0
    while index < len(words):
        name, has_value, value = words[index].partition("=")
        step = 1
        if name.startswith("-") and name.lstrip("-") == flag:
            if not has_value:
                value, step = (words[index + 1] if index + 1 < len(words) else ""), 2
            if is_meant(value):
                index += step
                continue
        kept += words[index:index + step]
        index += step
    return kept


def _is_model(folder):
    return all(os.path.exists(os.path.join(folder, file)) for file in ("deploy.prototxt", "solver.prototxt"))


def _in_folder(words, working):
    """The words with "." for a model's folder, which the command has named from elsewhere, and in which it then ran. Raises CannotResume
    if no word names it."""
    if not _is_model(working):
        return words
    for index, word in enumerate(words[1:], 1):
        name = os.path.normpath(word.partition("=")[2] if word.lstrip("-").startswith("solver=") else word)
        if not name.startswith("-") and os.path.basename(name) in (os.path.basename(working), ".", ".."):
            return [*words[:index], ".", *words[index + 1:]]
    raise CannotResume(f"{working} is not in the command that started the run: {shlex.join(['caffe', *words])}. Continue by hand: caffe train {working}")


def _require_newest(run):
    """Raises CannotResume if another run has trained later with the same snapshots, which are then those of that run."""
    here = os.path.realpath(run.folder)
    prefix = _prefix(run)
    for folder in glob.glob(os.path.join(glob.escape(os.path.dirname(here)), "*")):
        other = Run(folder)
        is_later = str(other.session.get("start", "")) > str(run.session.get("start", ""))
        if folder != here and is_later and _is_own(other) and _prefix(other) == prefix:
            raise CannotResume(f"{os.path.basename(folder)} was trained later and has the newest snapshots of {prefix}. Continue that run.", folder)
    states = glob.glob(glob.escape(prefix) + "_iter_*.solverstate*")
    newest = max((int(found[1]) for found in (re.search(r"_iter_(\d+)\.solverstate(\.h5)?$", state) for state in states) if found), default=0)
    if 0 < run.stop_iteration < newest:
        raise CannotResume(f"The newest snapshot of {prefix} is that of iteration {newest}, beyond the {run.stop_iteration} of this run: another "
                           "run has trained further. Continue that run.")


def _prefix(run):
    """The path with which a run's snapshots begin."""
    solvers = _solvers(run)
    given = _read_solver(solvers[-1]).snapshot_prefix if solvers else ""
    return os.path.realpath(os.path.join(str(run.session.get("folder", "")), given))


def _solvers(run):
    """The definitions of a run's solver, one of each session in which it differed, the newest last."""
    found = glob.glob(os.path.join(glob.escape(run.folder), "solver*.prototxt"))
    return sorted(found, key=lambda file: int(re.sub("[^0-9]", "", os.path.basename(file)) or 1))


def _read_solver(file):
    """A SolverParameter, as far as it can be read. Raises OSError, InvalidArgument for a definition that is damaged."""
    solver = caffe_pb2.SolverParameter()
    with open(file, encoding="utf-8", errors="replace") as text:
        try:
            text_format.Parse(text.read(_LARGEST), solver, allow_unknown_field=True)
        except text_format.ParseError as error:
            raise InvalidArgument(f"{file}:{error}") from None
    return solver


def _length(run):
    """The field that says how long a run's training is, and its value."""
    solvers = _solvers(run)
    if solvers:
        solver = _read_solver(solvers[-1])
        if solver.max_epoch:
            return "max_epoch", solver.max_epoch
    return "max_iter", run.stop_iteration or run.iteration

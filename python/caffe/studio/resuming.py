"""How a run continues from its newest snapshot: by the command that started it, in the folder of the run that is shown.

A run folder that was copied still names the original's paths. Such a copy continues only if all that the training writes lies in the
copied model's folder.
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
    """words: after `caffe`; working: the folder in which they run; field, value: what says how long the training is, value 0 if unknown."""
    words: list
    working: str
    field: str = "max_iter"
    value: int = 0

    def until(self, value):
        """The same with a longer training. Raises InvalidArgument for one that is not longer."""
        if not isinstance(value, (int, float)) or value <= self.value:
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
    return run if getattr(_read_solver(os.path.join(model, "solver.prototxt")), field) <= trained else None


def require_own(run):
    """Raises CannotResume if the newest session of a run has written to another folder, so that the run was copied or moved."""
    words = _train_words(run.session)
    here = os.path.realpath(run.folder)
    if words and here not in _places(run.session, words, here):
        raise _copied(run, words)


def resumption(run):
    """The Resumption of a Run. Raises CannotResume."""
    session, here = run.session, os.path.realpath(run.folder)
    words = _train_words(session)
    if not words:
        raise CannotResume("The run does not say by which `caffe train` it was started.")
    is_own = here in _places(session, words, here)
    if is_own and run.state == "running":
        raise CannotResume("It runs already.")
    working = str(session.get("folder", ""))
    is_numbered = _value_of(words, "run_dir") is None  # in `runs` of its model
    if not is_own:
        if not is_numbered:
            raise _copied(run, words)
        working = _copied_model(run, words)
    if is_numbered:
        _require_newest(run, words)
    words = _in_folder(words, str(session.get("folder", "")), working)
    if is_numbered and "." not in words:
        raise CannotResume(f"{working} is not in the command that started the run: {session['command']}. Continue by hand: caffe train {working}")
    words = [*_without(words, "run_dir"), f"--run_dir={here}"]
    return Resumption(words, working, *_length(run))


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


def _value_of(words, flag):
    """The value of a flag, None if it is not given."""
    found = []
    _without(words, flag, found.append)
    return found[-1] if found else None


def _is_model(folder):
    return all(os.path.exists(os.path.join(folder, file)) for file in ("deploy.prototxt", "solver.prototxt"))


def _in_folder(words, recorded, working):
    """The words with "." for a model's folder, which the command has named from elsewhere, and in which it then ran."""
    if not _is_model(working):
        return words
    for index, word in enumerate(words[1:], 1):
        name = os.path.normpath(word.partition("=")[2] if word.lstrip("-").startswith("solver=") else word)
        if not name.startswith("-") and os.path.basename(name) in (os.path.basename(recorded), ".", ".."):
            return [*words[:index], ".", *words[index + 1:]]
    return words


def _places(session, words, here):
    """The folders to which a session may have written its run. --run_dir is relative to where the command was given, which is not
    recorded for a model's folder: it may be any folder above. Without --run_dir, a run has a number in `runs` of its model."""
    folder, given = str(session.get("folder", "")), _value_of(words, "run_dir")
    if given is None:
        number = os.path.basename(here)
        return [os.path.realpath(os.path.join(folder, "runs", number))] if number.isdigit() else []
    bases = [folder]
    while _is_model(folder) and bases[-1] != os.path.dirname(bases[-1]):
        bases.append(os.path.dirname(bases[-1]))
    return [os.path.realpath(os.path.join(base, given)) for base in bases]


def _copied(run, words):
    """The error about a run that lies elsewhere than its session has written."""
    session, given = run.session, _value_of(words, "run_dir")
    folder = str(session.get("folder", ""))
    place = os.path.join(folder, "runs") if given is None else os.path.realpath(os.path.join(folder, given))
    original = _same_run(place, session) if os.path.isdir(place) else ""
    where = f"This folder is a copy, or was moved: the training was started in {folder} and writes its run to {original or place}"
    if original:
        return CannotResume(f"{where}. Open that run to continue or to stop it.", original)
    return CannotResume(f"{where}, where the run is no longer. Move the folder back, or continue by hand: caffe train --auto_resume, with the "
                        "solver and the --run_dir where they are now.")


def _same_run(place, session):
    """The path of a run at or in a folder that has a session, or ""."""
    for folder in (place, *sorted(glob.glob(os.path.join(glob.escape(place), "*")))):
        if session in Run(folder).sessions:
            return folder
    return ""


def _copied_model(run, words):
    """The folder of the copied model that has a run in `runs`. Raises CannotResume unless all that the training writes lies in it."""
    here = os.path.realpath(run.folder)
    model = os.path.dirname(os.path.dirname(here))
    is_numbered = os.path.basename(here).isdigit() and os.path.basename(os.path.dirname(here)) == "runs"
    if not is_numbered or not _is_model(model):
        raise _copied(run, words)
    if not run.snapshots or not os.path.isfile(os.path.join(model, run.snapshots[-1][1])):
        raise _copied(run, words)  # one that lies in the folder of another model, for example
    for solver in (os.path.join(model, "solver.prototxt"), *_solvers(run)):
        prefix = os.path.realpath(os.path.join(model, _read_solver(solver).snapshot_prefix))
        if not prefix.startswith(model + os.sep) and prefix != model:
            raise CannotResume(f"This run was copied, and its snapshots would be written to {prefix}, outside of {model}. Give a snapshot_prefix "
                               f"in {model} to {solver} first, or train in the original folder.")
    return model


def _require_newest(run, words):
    """Raises CannotResume if a run is a copy of another one of its model, or if a later one has the model's newest snapshots."""
    here = os.path.realpath(run.folder)
    runs = os.path.dirname(here)
    if _same_run(runs, run.session) != here:
        raise _copied(run, words)
    later = [int(name) for name in os.listdir(runs) if name.isdigit() and int(name) > int(os.path.basename(here))
             and run.session not in Run(os.path.join(runs, name)).sessions]
    if later:
        last = os.path.join(runs, str(max(later)))
        raise CannotResume(f"Run {max(later)} of this model is newer and has the model's newest snapshots. Continue that one.", last)


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

"""The folder of a sweep: what it tries, and Optuna's journal of what came out."""
import dataclasses
import hashlib
import json
import os
import warnings

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import TrialState

from .. import InvalidArgument, IoError
from .._locks import locked, open_lock, try_lock, wait_for_lock
from .._output import write_whole
from .locks import JournalLock
from .pruning import make_pruner, sampler_maker
from .space import grid, read_parameters

_NAME = "sweep"
_VERSION = 1
_NO_SWEEP = "holds no sweep; begin one: caffe sweep solver.prototxt base_lr=0.001..0.1:log"
# May differ when a sweep is continued.
_FREE = ("trials", "version", "working")


@dataclasses.dataclass
class Definition:
    """The content of sweep.json.

    solver: file name
    parameters: words, as read_parameters takes them
    metric: output of the test net by which trials are compared; falls: smaller is better
    trials: how many
    first, last: iterations of a trial's first test after its begin, and of its last one
    digest: of the solver and its nets, so that a sweep is not continued with others
    working: the folder at which paths in the solver begin, relative to the sweep's; "" in files of version 0.3
    precision: of the trainings, "" for that of the solver; None in files of version 0.3
    """
    solver: str
    parameters: list
    metric: str
    falls: bool
    trials: int
    seed: int
    sampler: str
    pruner: str
    first: int
    last: int
    digest: str
    working: str = ""
    precision: str | None = None
    version: int = _VERSION


def digest_of(*texts):
    """A mark by which texts are recognised."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _is_half_written(name):
    """True for what is left of a sweep.json whose process was killed."""
    return name.startswith(".sweep.json.") and name.endswith(".partial")


class Study:
    """A sweep's folder, which several processes may have open.

    definition: of a new sweep, or of the one that is continued; None for the one in the folder

    Raises InvalidArgument if the folder holds another sweep, or something else.
    """

    def __init__(self, folder, definition=None):
        self.folder = os.path.abspath(folder)
        if definition is not None:
            sampler_maker(definition.sampler)  # refuses unknown ones before there is a folder
            make_pruner(definition.pruner, definition.first, definition.last)
        self._check_folder(is_new=definition is not None)
        os.makedirs(self.folder, exist_ok=True)
        with locked(self._path("sweep.lock")):
            self.definition = self._defined(definition)
        self.parameters = read_parameters(self.definition.parameters)
        self._make_sampler = sampler_maker(self.definition.sampler)
        points = grid(self.parameters) if self.definition.sampler == "grid" else []
        journal = self._path("journal.log")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings(), locked(self._path("sweep.lock")):
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._drop_torn_line(journal)
            try:
                self.optuna = optuna.create_study(
                    study_name=_NAME, storage=JournalStorage(JournalFileBackend(journal, JournalLock(journal))), load_if_exists=True,
                    direction="minimize" if self.definition.falls else "maximize",
                    pruner=make_pruner(self.definition.pruner, self.definition.first, self.definition.last))
            except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
                raise IoError(f"{_first_damaged_line(journal)}: cannot be read as Optuna's journal ({type(error).__name__}: {error}); remove the "
                              "line to lose its trial alone") from None
            if points and not self.optuna.get_trials(deepcopy=False):
                # In a random order, so that the first trials, which all others are compared with, are not of one corner.
                for index in np.random.default_rng(self.definition.seed).permutation(len(points)):
                    self.optuna.enqueue_trial(points[index])
        self._mine = {}  # descriptors of the locks of the trials that this process runs

    def _path(self, *names):
        return os.path.join(self.folder, *names)

    def trial_folder(self, number):
        return self._path(f"{number:04}")

    def _check_folder(self, is_new):
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        if "sweep.lock" in names:  # another process may be writing sweep.json
            with locked(self._path("sweep.lock")):
                names = os.listdir(self.folder)
        if not is_new and not names:
            raise InvalidArgument(f"{self.folder}: {_NO_SWEEP}")
        others = [name for name in names if name != "sweep.lock" and not _is_half_written(name)]
        if others and "sweep.json" not in names:
            raise InvalidArgument(f"{self.folder}: is a folder with something else than a sweep in it; give another --output")

    def _defined(self, wanted):
        file = self._path("sweep.json")
        try:
            with open(file, encoding="utf-8") as text:
                found = json.load(text)
            if found.get("version", 0) > _VERSION:
                raise InvalidArgument(f"{file}: was written by a newer version of this program")
            found = Definition(**found)
            _check_types(found)
        except FileNotFoundError:
            if wanted is None:
                raise InvalidArgument(f"{self.folder}: {_NO_SWEEP}") from None
            found = wanted
        except (ValueError, TypeError, AttributeError) as error:
            raise IoError(f"{file}: cannot be read: {error}") from None
        if wanted is not None:
            self._require_same(found, wanted)
            found.trials, found.precision = wanted.trials, wanted.precision
            write_whole(file, json.dumps(dataclasses.asdict(found), indent=1))
        return found

    def _require_same(self, found, wanted):
        # The digest, which is also of the precision, last: it says least.
        for field in sorted(dataclasses.fields(Definition), key=lambda field: field.name == "digest"):
            before, now = getattr(found, field.name), getattr(wanted, field.name)
            if field.name in _FREE or before == now or (field.name == "precision" and before is None):
                continue
            if field.name == "digest":
                raise InvalidArgument(f"{self.folder}: holds a sweep of {found.solver} as it was before its solver or net changed; give "
                                      "another --output")
            raise InvalidArgument(f"{self.folder}: holds a sweep whose {field.name} is {_shown(before)}, not {_shown(now)}; continue it with "
                                  "the same words, or give another --output")

    @staticmethod
    def _drop_torn_line(journal):
        """Removes the line that a killed process was writing."""
        if not os.path.exists(journal):
            return
        with locked(journal + ".flock"), open(journal, "r+b") as file:
            content = file.read()
            if content and not content.endswith(b"\n"):
                file.truncate(content.rfind(b"\n") + 1)

    def next(self):
        """A trial to run, with its values by field, or None at the end. First those that another process has begun and cannot
        end any more."""
        with locked(self._path("ask.lock")):
            trial = self._left() or self._new()
            if trial is None:
                return None
            values = {}
            for index, parameter in enumerate(self.parameters):
                if not parameter.holds(values):
                    continue
                # Draws depend on seed, trial and field, and on what other trials have given, but not on which process draws.
                self._use_sampler(trial.number, index + 1)
                values[parameter.field] = parameter.draw(trial)
            return trial, values

    def _use_sampler(self, *place):
        seed = np.random.SeedSequence([self.definition.seed, *place]).generate_state(1)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self.optuna.sampler = self._make_sampler(int(seed))

    def _left(self):
        for found in self.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if found.number not in self._mine and self._lock(found.number):
                return optuna.Trial(self.optuna, found._trial_id)  # pylint: disable=protected-access  # as Optuna's own tools do
        return None

    def _new(self):
        trials = self.optuna.get_trials(deepcopy=False)
        begun = sum(trial.state != TrialState.WAITING for trial in trials)
        if begun >= self.definition.trials or (self.definition.sampler == "grid" and begun == len(trials)):
            return None
        self._use_sampler(begun, 0)
        trial = self.optuna.ask()
        if not self._lock(trial.number):
            raise IoError(f"{self.trial_folder(trial.number)}: another process has locked it")
        return trial

    def _lock(self, number):
        """Takes a trial, unless another process has it. If that process has died, waits until the training that it has left
        has ended: it stops by itself after its iteration."""
        os.makedirs(self.trial_folder(number), exist_ok=True)
        mine = open_lock(os.path.join(self.trial_folder(number), "lock"))
        if not try_lock(mine):
            os.close(mine)
            return False
        of_training = open_lock(os.path.join(self.trial_folder(number), "training.lock"))
        wait_for_lock(of_training)
        self._mine[number] = (mine, of_training)
        return True

    def lock_of_training(self, number):
        """The descriptor of a lock that the training of a trial has to hold too."""
        return self._mine[number][1]

    def end(self, trial, state, value=None, **why):
        """Stores what has become of a trial."""
        for key, text in why.items():
            trial.set_user_attr(key, text)
        self.optuna.tell(trial, value, state=state, skip_if_finished=True)
        self.leave(trial)

    def leave(self, trial):
        """Gives a trial back, unfinished or not."""
        for descriptor in self._mine.pop(trial.number):
            os.close(descriptor)


def _check_types(definition):
    for field in dataclasses.fields(definition):
        value = getattr(definition, field.name)
        if not isinstance(value, field.type) or (isinstance(value, bool) and field.type is int):
            raise TypeError(f"{field.name} is {value!r}, which is not of type {getattr(field.type, '__name__', field.type)}")
    if not all(isinstance(word, str) for word in definition.parameters):
        raise TypeError(f"parameters are {definition.parameters!r}, which are not all texts")


def _first_damaged_line(journal):
    """FILE:LINE of the first line that is not a JSON object, or the file alone."""
    with open(journal, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if isinstance(json.loads(line), dict):
                    continue
            except ValueError:
                pass
            return f"{journal}:{number}"
    return journal


def _shown(value):
    return " ".join(value) if isinstance(value, list) else value

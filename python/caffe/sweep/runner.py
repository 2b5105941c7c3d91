"""Runs the trials of a sweep, several at a time."""
import dataclasses
import math
import os
import threading

from optuna.trial import TrialState

from .. import Error
from .trial import Training

_MAY_FAIL = 3  # trials in a row from the start; then the sweep itself is wrong
_TRIES = 2  # of a training that somebody else kills, such as the system when memory runs out


@dataclasses.dataclass
class Place:
    """Where trials run, one at a time: words for `caffe train`, and the cores (none: all)."""
    options: tuple = ()
    cores: tuple = ()


class Runner:
    """Runs trials until the study has enough of them.

    command: words before the options of a trial, working: the folder they are for
    places: a Place for each trial that runs at a time
    say: is called with a line of text about each trial that has ended
    """

    def __init__(self, study, command, working, places, say):
        self._study, self._command, self._working, self._places, self._say = study, command, working, places, say
        self._stop = threading.Event()
        self._ended, self._failed = 0, []
        self._problem = None

    def run(self):
        """Returns when all trials have ended. Raises Error if the first ones all fail, and what a thread has raised."""
        threads = [threading.Thread(target=self._work, args=(place,)) for place in self._places]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            self._stop.set()  # after Ctrl-C too: trainings stop after their iteration, with a snapshot
            for thread in threads:
                thread.join()
        if self._problem:
            raise self._problem

    def _work(self, place):
        try:
            while not self._stop.is_set() and (found := self._study.next()) is not None:
                self._run(*found, place)
        except BaseException as error:  # pylint: disable=broad-except  # raised again by run()
            self._problem = self._problem or error
            self._stop.set()

    def _run(self, trial, values, place):
        definition = self._study.definition
        for _ in range(_TRIES):
            training = Training([*self._command, *place.options], self._study.trial_folder(trial.number), self._working, values,
                                self._study.lock_of_training(trial.number), place.cores)
            try:
                best, pruned = self._follow(training, trial)
            finally:
                training.end()
            if pruned or self._stop.is_set() or not training.killed_by:
                break
        iterations = training.run.iteration
        if pruned:
            self._end(trial, values, TrialState.PRUNED, None, best, iterations)
        elif training.status == 0 and training.run.state in ("finished", "early stopping") and best is not None:
            self._end(trial, values, TrialState.COMPLETE, best, best, iterations)
        elif self._stop.is_set():
            self._study.leave(trial)  # continues with the next `caffe sweep`
        elif training.killed_by:
            why = f"killed by {training.killed_by} each time; see whether the system has run out of memory"
            self._end(trial, values, TrialState.FAIL, None, best, iterations, why=why)
            self._require_success(why)
        elif training.status and iterations > 0:
            # Optuna learns nothing from a trial that has failed, but takes one that was ended early for a bad one.
            self._end(trial, values, TrialState.PRUNED, None, best, iterations, why=training.last_words())
        else:
            why = training.last_words() if training.status or best is not None else f"no test has given a finite {definition.metric}"
            self._end(trial, values, TrialState.FAIL, None, None, iterations, why=why)
            self._require_success(why)

    def _follow(self, training, trial):
        """Reports the tests of a training, and ends it if it is worse than others. Returns the best value, and true if it was ended."""
        definition = self._study.definition
        better = min if definition.falls else max
        known = dict(self._study.optuna.trials[trial.number].intermediate_values)
        best = better(known.values(), default=None)
        if known and self._falls_behind(trial, max(known)):  # the process that reported this did not get to decide
            return best, True
        names = [f"{phase}/{definition.metric}" for phase in ("test", "test0")]
        for step, value in training.tests(names, self._stop):
            if step == 0 or step in known or not math.isfinite(value):  # before iteration 1 nothing has been learned
                continue
            best = value if best is None else better(best, value)
            trial.report(value, step)
            if self._falls_behind(trial, step):
                return best, True
        return best, False

    def _falls_behind(self, trial, step):
        return step < self._study.definition.last and trial.should_prune()

    def _end(self, trial, values, state, value, best, iterations, **why):
        self._study.end(trial, state, value, iterations=iterations, **why)
        self._ended += 1
        words = {TrialState.COMPLETE: "", TrialState.PRUNED: " diverged" if why else " behind", TrialState.FAIL: " failed"}[state]
        number = "" if best is None else f" {self._study.definition.metric} {best:.6g}"
        self._say(f"trial {trial.number}{words}{number} after {iterations} iterations: "
                  + " ".join(f"{field}={chosen}" for field, chosen in values.items()) + "".join(f": {text}" for text in why.values()))

    def _require_success(self, why):
        self._failed.append(why)
        if len(self._failed) == self._ended >= _MAY_FAIL:
            raise Error(f"the first {self._ended} trials have all failed, the last one because of: {why}; see log.txt in the folders "
                        f"of the trials below {self._study.folder}")


def make_places(jobs, gpus):
    """Places for trials side by side: one for each GPU, or `jobs` with equal parts of this process's cores. jobs: None for
    one trial at a time, or one for each GPU."""
    if gpus:
        return [Place((f"--gpu={gpus[index % len(gpus)]}",)) for index in range(jobs or len(gpus))]
    cores = sorted(os.sched_getaffinity(0))
    if jobs in (None, 1):
        return [Place()]
    share = max(1, len(cores) // jobs)
    return [Place(cores=tuple(cores[index * share % len(cores):][:share])) for index in range(jobs)]

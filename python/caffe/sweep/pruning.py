"""Ends trials that are worse than others."""
import optuna

from .. import InvalidArgument


class Halving(optuna.pruners.BasePruner):
    """Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2020).

    A trial that reaches a rung goes on if its value is among the best 1/factor of those that have reached this rung.
    Rungs are at `least`, least x factor, least x factor^2, ... steps.

    Optuna's pruner of this kind stores in a trial which rungs it has passed, before it decides; if the process is killed
    in between, the decision is lost. This one depends on the reported values alone, so a sweep that is killed and
    continued decides as one that was not.
    """

    def __init__(self, least, factor=4):
        self._least = least
        self._factor = factor

    def prune(self, study, trial):
        rung = self._reached(trial)
        if rung is None:
            return False
        falls = study.direction == optuna.study.StudyDirection.MINIMIZE
        values = [value for other in study.get_trials(deepcopy=False) if (value := self._value_at(other, rung)) is not None]
        values.sort(reverse=not falls)
        worst_kept = values[max(len(values) // self._factor, 1) - 1]
        value = trial.intermediate_values[trial.last_step]
        return value > worst_kept if falls else value < worst_kept

    def _reached(self, trial):
        """The rung that the trial's last report was the first to reach, or None."""
        steps = sorted(trial.intermediate_values)
        if not steps:
            return None
        before = steps[-2] if len(steps) > 1 else -1
        found, rung = None, self._least
        while rung <= steps[-1]:
            found = rung if rung > before else None
            rung *= self._factor
        return found

    @staticmethod
    def _value_at(trial, rung):
        """The value that a trial reported when it reached the rung."""
        return next((value for step, value in sorted(trial.intermediate_values.items()) if step >= rung), None)


def make_pruner(name, first, last):
    """The pruner of a name. first, last: iterations of a trial's first test that counts, and of its last one."""
    least = max(first, last // 16, 1)
    makers = {"halving": lambda: Halving(least),
              "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=least, max_resource=max(last, least + 1)),
              "median": lambda: optuna.pruners.MedianPruner(n_warmup_steps=least),
              "none": optuna.pruners.NopPruner}
    if name not in makers:
        raise InvalidArgument(f"there is no pruner '{name}'; there are {', '.join(makers)}")
    return makers[name]()


_SAMPLERS = {"tpe": lambda seed: optuna.samplers.TPESampler(seed=seed), "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
             "cmaes": lambda seed: optuna.samplers.CmaEsSampler(seed=seed), "grid": lambda seed: optuna.samplers.RandomSampler(seed=seed)}


def sampler_maker(name):
    """A function from a seed to a sampler. A grid's points are all queued, so its sampler has nothing to draw."""
    if name not in _SAMPLERS:
        raise InvalidArgument(f"there is no sampler '{name}'; there are {', '.join(_SAMPLERS)}")
    return _SAMPLERS[name]

"""Ends trials that are worse than others."""
import optuna

from .. import InvalidArgument


class Halving(optuna.pruners.BasePruner):
    """Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2020).

    A trial that reaches a rung goes on if its value is among the best 1/factor of those that have reached this rung; of equal values
    the first ones are the best. rungs: steps in ascending order.

    Optuna's pruner of this kind stores in a trial which rungs it has passed, before it decides; if the process is killed
    in between, the decision is lost. This one depends on the reported values alone, so a sweep that is killed and
    continued decides as one that was not.
    """

    def __init__(self, rungs, factor=4):
        self._rungs = rungs
        self._factor = factor

    def prune(self, study, trial):
        rung = self._reached(trial)
        if rung is None:
            return False
        value = trial.intermediate_values[trial.last_step]
        falls = study.direction == optuna.study.StudyDirection.MINIMIZE
        others = [found for other in study.get_trials(deepcopy=False)
                  if other.number != trial.number and (found := self._value_at(other, rung)) is not None]
        ahead = sum(other <= value if falls else other >= value for other in others)
        return ahead >= max((len(others) + 1) // self._factor, 1)

    def _reached(self, trial):
        """The highest rung that the trial's last report was the first to reach, or None."""
        steps = sorted(trial.intermediate_values)
        if not steps:
            return None
        before = steps[-2] if len(steps) > 1 else -1
        return max((rung for rung in self._rungs if before < rung <= steps[-1]), default=None)

    @staticmethod
    def _value_at(trial, rung):
        """The value that a trial reported when it reached the rung."""
        return next((value for step, value in sorted(trial.intermediate_values.items()) if step >= rung), None)


def _rungs(first, last):
    """The tests nearest to a sixteenth and a quarter of the iterations."""
    return sorted({max(1, round(last / share / first)) * first for share in (16, 4)})


def make_pruner(name, first, last):
    """The pruner of a name. first, last: iterations of a trial's first test that counts, and of its last one."""
    least = max(first, last // 16, 1)
    makers = {"halving": lambda: Halving(_rungs(max(first, 1), last)),
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

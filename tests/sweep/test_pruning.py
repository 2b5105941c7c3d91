"""Which trials go on."""
import optuna
import pytest

import caffe
from caffe.sweep.pruning import Halving, make_pruner, sampler_maker


def run(pruner, curves, direction="maximize"):
    """Reports the curves one trial after the other. Returns for each the step at which it was ended, or None."""
    study = optuna.create_study(direction=direction, pruner=pruner)
    ends = []
    for curve in curves:
        trial = study.ask()
        end = None
        for step, value in curve:
            trial.report(value, step)
            if trial.should_prune():
                end = step
                break
        study.tell(trial, state=optuna.trial.TrialState.PRUNED if end else None, values=None if end else curve[-1][1])
        ends.append(end)
    return ends


def curve(value, steps=range(1, 17)):
    return [(step, value) for step in steps]


@pytest.mark.parametrize("direction, sign", [("maximize", 1), ("minimize", -1)])
def test_the_best_quarter_goes_on(direction, sign):
    values = [5, 4, 6, 3, 7, 2, 8, 1]
    ends = run(Halving([1, 4, 16], 4), [curve(sign * value) for value in values], direction)
    # One that is the best so far always goes on; of eight, the two best would.
    assert ends == [None, 1, None, 1, None, 1, None, 1]


def test_a_trial_of_the_best_quarter_goes_on_though_it_is_not_the_best():
    ends = run(Halving([1, 4, 16], 4), [curve(value) for value in (9, 1, 1, 1, 1, 1, 1, 8)])
    assert ends == [None, 1, 1, 1, 1, 1, 1, 4], "second of eight at the first rung, second of two at the next"


@pytest.mark.parametrize("direction, sign", [("maximize", 1), ("minimize", -1)])
def test_of_equal_trials_the_first_one_goes_on(direction, sign):
    ends = run(Halving([1, 4, 16], 4), [curve(sign * 0.5) for _ in range(6)], direction)
    assert ends == [None, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("first, last, rungs", [(50, 1000, [50, 250]), (20, 320, [20, 80]), (100, 1000, [100, 200]), (500, 1000, [500]),
                                                (1000, 1000, [1000]), (3, 1000, [63, 249])])
def test_rungs_are_the_tests_nearest_to_a_sixteenth_and_a_quarter(first, last, rungs):
    class Trial:
        intermediate_values = {}

    pruner, found = make_pruner("halving", first, last), []
    for step in range(first, last + 1, first):
        Trial.intermediate_values = {**Trial.intermediate_values, step: 0.5}
        found += [step] if pruner._reached(Trial) else []
    assert found == rungs


def test_rungs_between_tests():
    """Tests each 3 iterations, rungs at 2, 8, 32."""
    first, second = [(step, 1.0) for step in (3, 6, 9, 12)], [(step, 0.5) for step in (3, 6, 9, 12)]
    assert run(Halving([2, 8, 32], 4), [first, second]) == [None, 3]
    late = [(3, 2.0), (6, 2.0), (9, 0.5), (12, 0.5)]
    assert run(Halving([2, 8, 32], 4), [first, late]) == [None, 9]


def test_the_decision_depends_on_the_reports_alone():
    """A process that continues the sweep of a killed one decides the same."""
    study = optuna.create_study(direction="maximize", pruner=Halving([1, 4, 16], 4))
    for value in (3.0, 2.0, 1.0):
        trial = study.ask()
        trial.report(value, 1)
        assert [trial.should_prune() for _ in range(3)] == [value < 3] * 3
        study.tell(trial, value)


def test_trials_without_reports_go_on():
    study = optuna.create_study(pruner=Halving([1, 4]))
    assert not study.ask().should_prune()


@pytest.mark.parametrize("name", ["halving", "hyperband", "median", "none"])
def test_pruners_by_name(name):
    assert len(run(make_pruner(name, 1, 16), [curve(value) for value in range(8)])) == 8


def test_names_that_there_are_not():
    with pytest.raises(caffe.InvalidArgument, match="there is no pruner 'axe'; there are halving, hyperband, median, none"):
        make_pruner("axe", 1, 2)
    with pytest.raises(caffe.InvalidArgument, match="there is no sampler 'dice'; there are tpe, random, cmaes, grid"):
        sampler_maker("dice")

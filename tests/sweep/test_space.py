"""What varies in a sweep, as users write it."""
import optuna
import pytest

import caffe
from caffe.sweep.space import grid, read_parameters


@pytest.mark.parametrize("text, kind, low, high, log, step", [
    ("base_lr=0.001..0.1:log", "FloatDistribution", 0.001, 0.1, True, None),
    ("base_lr=1e-4..1e-1:log", "FloatDistribution", 1e-4, 1e-1, True, None),
    ("momentum=0.5..0.9", "FloatDistribution", 0.5, 0.9, False, None),
    ("momentum=.5...9", "FloatDistribution", 0.5, 0.9, False, None),
    ("momentum=0.5..0.9:step=0.15", "FloatDistribution", 0.5, 0.8, False, 0.15),
    ("iter_size=1..8", "IntDistribution", 1, 8, False, 1),
    ("iter_size=1..64:log", "IntDistribution", 1, 64, True, 1),
    ("weight_decay=-2..3:step=2", "IntDistribution", -2, 2, False, 2),
    ("layer[fc].inner_product_param.num_output=16..128:step=16", "IntDistribution", 16, 128, False, 16)])
def test_ranges(text, kind, low, high, log, step):
    parameter, = read_parameters([text])
    found = parameter.distribution
    assert parameter.field == text.partition("=")[0]
    assert (type(found).__name__, found.low, found.log, found.step) == (kind, low, log, step) and found.high == pytest.approx(high)


def test_values():
    of_type, of_layer = read_parameters(["type=SGD,Adam", "layer[a=b].param.lr_mult=1,2.5"])
    assert of_type.distribution.choices == ("SGD", "Adam")
    assert of_layer.field == "layer[a=b].param.lr_mult" and of_layer.distribution.choices == ("1", "2.5")


def test_conditions():
    parameters = read_parameters(["type=SGD,Adam,Nesterov", "momentum=0.5..0.9 if type=SGD,Nesterov"])
    assert parameters[1].holds({"type": "SGD"}) and parameters[1].holds({"type": "Nesterov"}) and not parameters[1].holds({"type": "Adam"})
    assert not parameters[1].holds({})


def test_conditions_compare_numbers():
    texts = ["base_lr=0.1..0.3:step=0.1", "momentum=0.5,0.9 if base_lr=0.30,2e-1", "iter_size=1,2 if momentum=.5"]
    assert [len(point) for point in grid(read_parameters(texts))] == [1, 3, 3, 2, 3, 3, 2]
    study = optuna.create_study()
    study.enqueue_trial({"base_lr": 0.1 + 2 * 0.1})
    assert read_parameters(texts)[0].draw(study.ask()) == 0.3


@pytest.mark.parametrize("earlier, condition, why", [
    ("type=SGD,Nesterov", "type=Sgd", "type is never 'Sgd', but one of SGD, Nesterov"), ("base_lr=0.1..0.2", "base_lr=0.3", "but from 0.1 to 0.2"),
    ("base_lr=0.1..0.5:step=0.2", "base_lr=0.2", "but from 0.1 to 0.5 in steps of 0.2"), ("iter_size=1..4", "iter_size=x", "'x' is not a number")])
def test_conditions_that_never_hold(earlier, condition, why):
    with pytest.raises(caffe.InvalidArgument, match=why):
        read_parameters([earlier, f"momentum=0.5,0.9 if {condition}"])


@pytest.mark.parametrize("text, why", [
    ("base_lr", "is not of the form FIELD=VALUE,VALUE or FIELD=LOW..HIGH"), ("=1", "is not of the form"), ("base_lr=", "is not of the form"),
    ("base_lr=1,,2", "one of the values is empty"), ("type=SGD,SGD", "a value is given twice"), ("base_lr=0.1..0.01", "give the smaller number first"),
    ("base_lr=1..1", "the range begins at 1 and ends at 1"), ("base_lr=a..b", "'a' is not a number"), ("base_lr=0..inf", "'inf' is not finite"),
    ("base_lr=0..1:log", "begins at 0; a logarithmic range needs positive numbers"), ("base_lr=1..2:step=0", "the step is 0"),
    ("base_lr=1..9:log:step=2", "a range has :log or :step, not both"), ("base_lr=1..2:step=x", "'x' is not a number"),
    ("momentum=1,2 if type", "its condition 'type' is not of the form FIELD=VALUE"),
    ("momentum=1,2 if type=SGD", "its condition names 'type', which is none of the fields before it")])
def test_words_that_are_wrong(text, why):
    with pytest.raises(caffe.InvalidArgument) as error:
        read_parameters([text])
    assert why in str(error.value) and text.partition(" if ")[0] in str(error.value)


def test_a_field_that_is_given_twice():
    with pytest.raises(caffe.InvalidArgument, match="'base_lr=3,4': base_lr is given twice"):
        read_parameters(["base_lr=1,2", "base_lr=3,4"])


def test_a_grid_leaves_out_what_a_condition_forbids():
    points = grid(read_parameters(["type=SGD,Adam", "momentum=0..0.5:step=0.25 if type=SGD", "iter_size=1..2"]))
    assert points == [{"type": "SGD", "momentum": momentum, "iter_size": size} for momentum in (0, 0.25, 0.5) for size in (1, 2)] + [
        {"type": "Adam", "iter_size": size} for size in (1, 2)]


@pytest.mark.parametrize("text", ["base_lr=0.1..0.2", "base_lr=0.1..0.2:log", "iter_size=1..64:log"])
def test_a_grid_needs_values(text):
    with pytest.raises(caffe.InvalidArgument, match="a grid needs values, or a range with :step="):
        grid(read_parameters([text]))


def test_draws_are_within_the_range():
    study = optuna.create_study()
    parameters = read_parameters(["base_lr=0.001..0.1:log", "iter_size=1..4", "type=SGD,Adam"])
    for _ in range(20):
        trial = study.ask()
        rate, size, kind = (parameter.draw(trial) for parameter in parameters)
        assert 0.001 <= rate <= 0.1 and size in (1, 2, 3, 4) and kind in ("SGD", "Adam")
        study.tell(trial, rate)

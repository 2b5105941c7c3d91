"""The space of a sweep: values and ranges of fields of the solver and its net."""
import dataclasses
import decimal
import math
import re

import optuna

from .. import InvalidArgument

_RANGE = re.compile(r"(?P<low>[^.:]*(?:\.\d[^.:]*)?)\.\.(?P<high>[^:]*)(?P<log>:log)?(?::step=(?P<step>[^:]*))?")


@dataclasses.dataclass(frozen=True)
class Condition:
    """Holds if a field has one of these values."""
    field: str
    values: tuple

    def __str__(self):
        return f"{self.field}={','.join(self.values)}"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field, by the path that `--set` takes, and how its values are drawn: an Optuna distribution."""
    field: str
    distribution: optuna.distributions.BaseDistribution
    condition: Condition | None = None

    def holds(self, chosen):
        """True if the condition, if there is one, holds for the fields that are chosen already."""
        if self.condition is None:
            return True
        value = chosen.get(self.condition.field)
        return value is not None and any(_is(value, text) for text in self.condition.values)

    def draw(self, trial):
        """The field's value in an Optuna trial."""
        kind = self.distribution
        if isinstance(kind, optuna.distributions.CategoricalDistribution):
            return trial.suggest_categorical(self.field, kind.choices)
        draw = trial.suggest_int if isinstance(kind, optuna.distributions.IntDistribution) else trial.suggest_float
        value = draw(self.field, kind.low, kind.high, step=kind.step, log=kind.log)
        return _on_grid(value, kind)


def _number(text, what):
    """An int if it is written as one, else a float."""
    try:
        value = int(text)
    except ValueError:
        try:
            value = float(text)
        except ValueError:
            raise InvalidArgument(f"{what}: '{text}' is not a number") from None
    if not math.isfinite(value):
        raise InvalidArgument(f"{what}: '{text}' is not finite")
    return value


def _is(value, text):
    """True if a text names a value, as it is written or as a number."""
    try:
        return str(value) == text or float(value) == float(text)
    except ValueError:
        return False


def _on_grid(value, kind):
    """The value of a range with steps as one would write it: 0.3, where the sum of the steps is 0.30000000000000004."""
    if isinstance(value, int) or kind.step is None:
        return value
    return round(value, max(-decimal.Decimal(str(number)).as_tuple().exponent for number in (kind.low, kind.step)))


def _range(found, what):
    low, high = _number(found["low"], what), _number(found["high"], what)
    step = _number(found["step"], what) if found["step"] is not None else None
    if low >= high:
        raise InvalidArgument(f"{what}: the range begins at {low} and ends at {high}; give the smaller number first")
    if step is not None and step <= 0:
        raise InvalidArgument(f"{what}: the step is {step}; it must be positive")
    is_log = bool(found["log"])
    if is_log and low <= 0:
        raise InvalidArgument(f"{what}: begins at {low}; a logarithmic range needs positive numbers")
    if is_log and step is not None:
        raise InvalidArgument(f"{what}: a range has :log or :step, not both")
    if all(isinstance(number, int) for number in (low, high, 1 if step is None else step)):
        return optuna.distributions.IntDistribution(low, high - (high - low) % (step or 1), is_log, step or 1)
    if step is None:
        return optuna.distributions.FloatDistribution(low, high, is_log)
    exact_low, exact_step = (decimal.Decimal(str(number)) for number in (low, step))
    steps = (decimal.Decimal(str(high)) - exact_low) // exact_step
    return optuna.distributions.FloatDistribution(low, float(exact_low + steps * exact_step), is_log, step)


def _condition(text, earlier, what):
    field, equals, values = text.partition("=")
    field = field.strip()
    if not equals:
        raise InvalidArgument(f"{what}: its condition '{text}' is not of the form FIELD=VALUE")
    if field not in earlier:
        raise InvalidArgument(f"{what}: its condition names '{field}', which is none of the fields before it")
    condition = Condition(field, tuple(value.strip() for value in values.split(",")))
    for value in condition.values:
        _require_possible(value, earlier[field], what)
    return condition


def _require_possible(text, parameter, what):
    """Raises InvalidArgument if a field never has the value that a condition asks for."""
    kind = parameter.distribution
    if isinstance(kind, optuna.distributions.CategoricalDistribution):
        possible, known = any(_is(choice, text) for choice in kind.choices), f"one of {', '.join(kind.choices)}"
    else:
        value = _number(text, what)
        is_step = kind.step is None or any(_is(listed, text) for listed in _listed(parameter))
        possible, known = kind.low <= value <= kind.high and is_step, f"from {kind.low:g} to {kind.high:g}"
        known += "" if kind.step is None else f" in steps of {kind.step:g}"
    if not possible:
        raise InvalidArgument(f"{what}: its condition never holds: {parameter.field} is never '{text}', but {known}")


def read_parameters(texts):
    """Parameters of words such as base_lr=0.001..0.1:log, type=SGD,Adam, and "momentum=0.8..0.99 if type=SGD".

    Raises InvalidArgument, which says which word is wrong.
    """
    parameters = {}
    for text in texts:
        assignment, _, condition = text.partition(" if ")
        # A field may hold an index or a name with an equals sign in brackets.
        field, equals, values = re.match(r"((?:\[[^\]]*\]|[^=\[])*)(=?)(.*)", assignment.strip(), re.S).groups()
        what = f"'{text}'"
        if not equals or not field or not values:
            raise InvalidArgument(f"{what} is not of the form FIELD=VALUE,VALUE or FIELD=LOW..HIGH")
        if field in parameters:
            raise InvalidArgument(f"{what}: {field} is given twice")
        found = _RANGE.fullmatch(values)
        kind = _range(found, what) if found else optuna.distributions.CategoricalDistribution(_values(values, what))
        parameters[field] = Parameter(field, kind, _condition(condition, parameters, what) if condition else None)
    return list(parameters.values())


def _values(text, what):
    values = [value.strip() for value in text.split(",")]
    if not all(values):
        raise InvalidArgument(f"{what}: one of the values is empty")
    if len(set(values)) < len(values):
        raise InvalidArgument(f"{what}: a value is given twice")
    return values


def grid(parameters):
    """All combinations of the values, each a dict. A field whose condition does not hold is not in it. Raises
    InvalidArgument for a range without a step."""
    points = [{}]
    for parameter in parameters:
        values = _listed(parameter)
        points = [{**point, **({parameter.field: value} if value is not None else {})} for point in points
                  for value in (values if parameter.holds(point) else [None])]
    return points


def count_at_most(parameters):
    """The number of combinations, without regard to conditions; infinity if there is a range without a step."""
    try:
        return math.prod(len(_listed(parameter)) for parameter in parameters)
    except InvalidArgument:
        return math.inf


def _listed(parameter):
    kind = parameter.distribution
    if isinstance(kind, optuna.distributions.CategoricalDistribution):
        return list(kind.choices)
    if isinstance(kind, optuna.distributions.IntDistribution) and not kind.log:
        return list(range(kind.low, kind.high + 1, kind.step))
    if kind.step is None or kind.log:
        raise InvalidArgument(f"{parameter.field}: a grid needs values, or a range with :step=")
    return [_on_grid(kind.low + number * kind.step, kind) for number in range(round((kind.high - kind.low) / kind.step) + 1)]

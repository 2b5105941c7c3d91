"""The page of a sweep: a table, and a plot with an axis for each field. One HTML file that needs nothing else."""
import math
import pathlib

import optuna

from .._output import write_whole
from .._page import render
from .report import _text, rows

_WIDTH, _HEIGHT, _TOP, _BOTTOM, _SIDE = 960, 320, 44, 26, 60
_NOT_SET = 0.15  # share of an axis that separates trials without its field from the least value


def write_page(study, file):
    """Replaces the file."""
    found = rows(study)
    text = render(
        pathlib.Path(__file__).with_name("page.html"), {}, study=study, definition=study.definition,
        fields=[parameter.field for parameter in study.parameters], rows=found, text=_text,
        plot=_Plot(study, found), budget=sum(row["iterations"] for row in found), best=found[0] if found and found[0]["value"] is not None else None)
    write_whole(file, text)


class _Axis:
    """Maps the values of a field to places from 0 at the bottom to 1. Trials whose condition does not set the field, with the value None,
    have a place of their own at the bottom."""

    def __init__(self, name, x, values, distribution):
        self.name, self.x = name, x
        self._least = _NOT_SET if None in values else 0
        self._is_log = bool(getattr(distribution, "log", False))
        self._places = None
        if isinstance(distribution, optuna.distributions.CategoricalDistribution):
            choices = list(distribution.choices)
            self._places = {choice: (index + 0.5) / len(choices) for index, choice in enumerate(choices)}
            ticks = [(self._places[choice], str(choice)) for choice in choices]
        else:
            finite = [value for value in values if value is not None]
            self._low, self._high = (distribution.low, distribution.high) if distribution else (min(finite, default=0), max(finite, default=1))
            ticks = [(share, f"{self._value(share):.3g}") for share in (0, 0.25, 0.5, 0.75, 1)]
        self.ticks = [(self._raised(share), label) for share, label in ticks] + ([(0, "not set")] if self._least else [])

    def _value(self, share):
        if self._is_log:
            return math.exp(math.log(self._low) + share * (math.log(self._high) - math.log(self._low)))
        return self._low + share * (self._high - self._low)

    def _raised(self, share):
        return self._least + (1 - self._least) * share

    def place(self, value):
        return 0 if value is None else self._raised(self._share(value))

    def _share(self, value):
        if self._places is not None:
            return self._places.get(value, 0)
        if self._high == self._low:
            return 0.5
        if self._is_log:
            return (math.log(value) - math.log(self._low)) / (math.log(self._high) - math.log(self._low))
        return (value - self._low) / (self._high - self._low)

    @staticmethod
    def y(share):
        return round(_TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM), 1)


class _Plot:
    """Parallel coordinates: a line for each trial, an axis for each field, the metric last."""
    width, height = _WIDTH, _HEIGHT

    def __init__(self, study, found):
        kinds = [(parameter.field, parameter.distribution) for parameter in study.parameters] + [(study.definition.metric, None)]
        gap = (_WIDTH - 2 * _SIDE) / max(1, len(kinds) - 1)
        shown = [row for row in found if row["value"] is not None and math.isfinite(row["value"])]
        cells = [{**dict.fromkeys(name for name, _ in kinds), **row["values"], study.definition.metric: row["value"]} for row in shown]
        self.axes = [_Axis(name, round(_SIDE + index * gap, 1), [cell[name] for cell in cells], kind)
                     for index, (name, kind) in enumerate(kinds)]
        values = sorted((row["value"] for row in shown), reverse=not study.definition.falls)
        self.lines = []
        for row, cell in reversed(list(zip(shown, cells))):  # the best on top
            points = " ".join(f"{axis.x},{axis.y(axis.place(cell[axis.name]))}" for axis in self.axes)
            rank = values.index(row["value"]) / max(1, len(values) - 1)
            title = f"trial {row['number']}: " + ", ".join(f"{name} {'not set' if value is None else _text(value)}" for name, value in cell.items())
            self.lines.append((points, round(1 - rank, 2), title))

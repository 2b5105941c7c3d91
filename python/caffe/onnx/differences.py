"""How far two arrays are apart: numbers, decisions by what they choose, and rows as sets.

Each function returns a Difference. `expected` is the net's array, `got` the other side's.
"""
from dataclasses import dataclass

import numpy as np

_MISSING_ROWS = 0.01  # share that may be missing: boxes whose scores or overlaps are a rounding from a threshold
_CHUNK = 256  # rows that are compared with all others at once


@dataclass
class Difference:
    """relative: the largest difference, in units of the largest number expected (for decisions: of the numbers decided about);
    infinity where nothing can be compared. text: how the arrays differ, for an error. decided: what was decided otherwise, as
    in "3 of 40"; "" where nothing was."""
    relative: float
    text: str = ""
    decided: str = ""


def numbers(expected, got, tolerance=0):
    """Element by element."""
    expected, got = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    if expected.shape != got.shape:
        return _other_shape(expected, got)
    finite = np.isfinite(expected) & np.isfinite(got)
    unlike = ~finite & ~((expected == got) | (np.isnan(expected) & np.isnan(got)))
    if unlike.any():
        return Difference(np.inf, f"{int(unlike.sum())} of {unlike.size} numbers are infinite or NaN on one side only, as "
                          + _at(unlike.argmax(), expected, got))
    distances = np.abs(np.subtract(expected, got, where=finite, out=np.zeros_like(expected)))
    largest = np.abs(expected[finite]).max(initial=0)
    relative = float(distances.max(initial=0) / (largest or 1))
    if relative == 0:
        return Difference(0.0)
    count = int((distances > tolerance * (largest or 1)).sum())
    return Difference(relative, f"{count} of {expected.size} numbers do, by up to {relative:.3g} of the largest one, "
                      f"{largest:.6g}: " + _at(distances.argmax(), expected, got))


def choices(expected, got, values):
    """Decisions: equal as far as the numbers that both have chosen are equal.

    values: function of an array of decisions; the numbers that they choose, of the same shape, NaN for what cannot be chosen.
    """
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape:
        return _other_shape(expected, got)
    otherwise = expected != got
    chosen, other = values(expected), values(got)
    unlike = otherwise & (np.isnan(chosen) != np.isnan(other))
    distances = np.where(otherwise & ~np.isnan(chosen - other), np.abs(chosen - other), 0)
    distances[unlike] = np.inf
    largest = np.abs(chosen[np.isfinite(chosen)]).max(initial=0)
    relative = float(distances.max(initial=0) / (largest or 1))
    count = int(otherwise.sum())
    if count == 0:
        return Difference(0.0)
    decided = f"{count} of {expected.size}"
    return Difference(relative, f"{decided} are decided otherwise, between numbers up to {relative:.3g} of the largest one apart: "
                      + _at(distances.argmax(), expected, got), decided)


def rows(expected, got, scales, tolerance):
    """Rows (R, columns) and (S, columns) as sets: of nearly equal scores either may come first.

    scales: what a difference of each column is divided by. Rows further apart than the tolerance are different ones; up to 1
    percent of them may be missing on each side.
    """
    expected, got = (np.asarray(array, np.float64) / scales for array in (expected, got))
    distances = _nearest(expected, got, tolerance), _nearest(got, expected, tolerance)
    missing = [np.flatnonzero(~(near <= tolerance)) for near in distances]
    count, total = max(map(len, missing)), max(len(expected), len(got))
    decided = f"{count} of {total} rows" if count else ""
    if count <= _MISSING_ROWS * total:
        near = np.concatenate(distances)
        return Difference(float(near[near <= tolerance].max(initial=0)), decided=decided)
    side, array = (0, expected) if len(missing[0]) else (1, got)
    row = np.array2string(array[missing[side][0]] * scales, precision=5, separator=", ", suppress_small=True)
    text = (f"{len(missing[0])} of the net's {len(expected)} rows are not among the other {len(got)}, and {len(missing[1])} the other "
            f"way round, as {'the net' if side == 0 else 'the model'}'s row {row}")
    return Difference(float(np.concatenate(distances).max()), text, decided)


def _nearest(those, others, tolerance):
    """Of each row the distance to the nearest among the others: the largest of its columns'."""
    if len(others) == 0:
        return np.full(len(those), np.inf)
    if those.shape == others.shape:  # the usual case, and faster
        distances = np.abs(those - others).max(axis=1, initial=0)
        if (distances <= tolerance).all():
            return distances
    chunks = [those[first:first + _CHUNK] for first in range(0, len(those), _CHUNK)]
    return np.concatenate([np.abs(chunk[:, None] - others[None]).max(axis=2).min(axis=1) for chunk in chunks] or [np.zeros(0)])


def _other_shape(expected, got):
    return Difference(np.inf, f"the net's shape is {_shape(expected)}, the other one {_shape(got)}")


def _shape(array):
    return "x".join(map(str, array.shape)) or "scalar"


def _at(place, expected, got):
    """The two numbers at an index of the flat arrays."""
    indices = [int(index) for index in np.unravel_index(place, expected.shape)]
    return f"at {indices} the net has {expected.flat[place]:.6g}, the other side {got.flat[place]:.6g}"

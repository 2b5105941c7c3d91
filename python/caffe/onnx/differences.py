"""Measures the difference between two arrays: of numbers, of decisions by their chosen values, and of rows as sets.

Each function returns a Difference. `expected` is the net's array, `got` the other side's.
"""
from dataclasses import dataclass

import numpy as np

_MISSING_ROWS = 0.01  # share of rows that may be missing: boxes whose scores or overlaps differ from a threshold by rounding
_CHUNK = 256  # rows compared with all others at once


@dataclass
class Difference:
    """relative: the largest difference, divided by the largest number expected (for decisions: of the numbers decided about);
    infinity if no comparison is possible. text: how the arrays differ, for errors. decided: number of different decisions, as
    in "3 of 40"; "" if none."""
    relative: float
    text: str = ""
    decided: str = ""


def numbers(expected, got, tolerance=0):
    """Compares element by element."""
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
    """Compares decisions: they are as close as the values that they chose.

    values: a function that maps an array of decisions to the chosen values, of the same shape, with NaN for invalid choices.
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
    """Compares rows (R, columns) and (S, columns) as sets, because rows with nearly equal scores may be in either order.

    scales: a divisor for the differences of each column. Two rows within the tolerance are the same; up to 1 percent of the rows may
    be missing on each side.
    """
    expected, got = (np.asarray(array, np.float64) / scales for array in (expected, got))
    partners, owners = _pairs(expected, got, tolerance)
    missing = [np.flatnonzero(side < 0) for side in (partners, owners)]
    count, total = max(map(len, missing)), max(len(expected), len(got))
    decided = f"{count} of {total} rows" if count else ""
    if count <= _MISSING_ROWS * total:
        is_paired = partners >= 0
        return Difference(float(np.abs(expected[is_paired] - got[partners[is_paired]]).max(initial=0)), decided=decided)
    side, array = (0, expected) if len(missing[0]) else (1, got)
    row = np.array2string(array[missing[side][0]] * scales, precision=5, separator=", ", suppress_small=True)
    text = (f"{len(missing[0])} of the net's {len(expected)} rows are not among the other {len(got)}, and {len(missing[1])} the other "
            f"way round, as {'the net' if side == 0 else 'the model'}'s row {row}")
    nearest = [chunk.min(axis=1, initial=np.inf) for chunk in _distances(expected[missing[0]], got[missing[1]])]
    return Difference(float(np.concatenate(nearest or [[np.inf]]).max()), text, decided)


def _pairs(those, others, tolerance):
    """A maximum matching of rows of both sides that lie within the tolerance. Returns for each row of `those` its partner's index in
    `others`, and vice versa; -1 for none."""
    if those.shape == others.shape and (np.abs(those - others) <= tolerance).all():  # the usual case, and faster
        return np.arange(len(those)), np.arange(len(those))
    near = [np.flatnonzero(row <= tolerance) for chunk in _distances(those, others) for row in chunk]
    partners, owners = np.full(len(those), -1), np.full(len(others), -1)
    for start in range(len(those)):
        free, reached_from = _nearest_free(start, near, owners)
        while free >= 0:  # each row on the augmenting path takes the next partner
            row = reached_from[free]
            owners[free] = row
            partners[row], free = free, partners[row]
    return partners, owners


def _nearest_free(start, near, owners):
    """Breadth-first search for a row without an owner, from row `start` along rows that are near; -1 if there is none. Also returns
    from which row each was reached."""
    reached_from, queue = {}, [start]
    for row in queue:
        for other in near[row]:
            if other in reached_from:
                continue
            reached_from[other] = row
            if owners[other] < 0:
                return other, reached_from
            queue.append(owners[other])
    return -1, reached_from


def _distances(those, others):
    """Yields chunks of rows: distances of each row of `those` to each of the others, the maximum over columns."""
    for first in range(0, len(those), _CHUNK):
        distances = np.zeros((len(those[first:first + _CHUNK]), len(others)))
        for ours, theirs in zip(those[first:first + _CHUNK].T, others.T):
            np.maximum(distances, np.abs(np.subtract.outer(ours, theirs)), out=distances)
        yield distances


def _other_shape(expected, got):
    return Difference(np.inf, f"the net's shape is {_shape(expected)}, the other one {_shape(got)}")


def _shape(array):
    return "x".join(map(str, array.shape)) or "scalar"


def _at(place, expected, got):
    """The two numbers at an index of the flat arrays."""
    indices = [int(index) for index in np.unravel_index(place, expected.shape)]
    return f"at {indices} the net has {expected.flat[place]:.6g}, the other side {got.flat[place]:.6g}"

"""Values of one figure over the iterations of a run."""
import array
import bisect

import numpy as np


class Phase:
    """The lines of one kind: their iterations, which never fall, times, and a Series for each figure."""

    def __init__(self):
        self.steps, self.times, self.series = array.array("q"), array.array("d"), {}

    def add(self, step, time, figures):
        """A line with a dict of numbers. What belongs to this iteration or later ones is replaced."""
        if self.steps and self.steps[-1] >= step:
            self.cut(step)
        row = len(self.steps)
        self.steps.append(step)
        self.times.append(time)
        for name, value in figures.items():
            series = self.series.get(name)
            if series is None:
                series = self.series[name] = Series(self)
            series.append(row, value)

    def cut(self, step):
        """Removes what belongs to this iteration and later ones."""
        keep = bisect.bisect_left(self.steps, step)
        del self.steps[keep:], self.times[keep:]
        for series in self.series.values():
            series.cut(keep)


class Series:
    """Grows at its end. Unpacks into (steps, values): int64 and float64 arrays."""

    def __init__(self, phase):
        self._phase, self._values = phase, array.array("d")
        self._rows = None  # numbers of the phase's lines that have the figure; None: the first ones

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        return iter((self.steps, self.values))

    def _of_lines(self, values):
        return values[:len(self._values)] if self._rows is None else values[np.array(self._rows, np.int64)]

    @property
    def steps(self):
        """Iterations."""
        return self._of_lines(np.array(self._phase.steps, np.int64))

    @property
    def times(self):
        """Seconds since 1970."""
        return self._of_lines(np.array(self._phase.times, np.float64))

    @property
    def values(self):
        return np.array(self._values, np.float64)

    @property
    def last(self):
        """The newest value, or None."""
        return self._values[-1] if self._values else None

    def append(self, row, value):
        """Adds the value of a line, which is the newest one."""
        if self._rows is not None:
            self._rows.append(row)
        elif len(self._values) != row:
            self._rows = array.array("q", [*range(len(self._values)), row])
        self._values.append(value)

    def cut(self, lines):
        """Keeps the values of the first lines of the phase."""
        keep = lines if self._rows is None else bisect.bisect_left(self._rows, lines)
        del self._values[keep:]
        if self._rows is not None:
            del self._rows[keep:]

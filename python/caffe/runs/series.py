"""Values of one figure over the iterations of a run."""
import array
import bisect

import numpy as np


class Series:
    """Grows at its end. Iterations never fall.

    Unpacks into (steps, values): int64 and float64 arrays.
    """

    def __init__(self):
        self._steps, self._times, self._values = array.array("q"), array.array("d"), array.array("d")

    def __len__(self):
        return len(self._steps)

    def __iter__(self):
        return iter((self.steps, self.values))

    @property
    def steps(self):
        """Iterations."""
        return np.array(self._steps, np.int64)

    @property
    def times(self):
        """Seconds since 1970."""
        return np.array(self._times, np.float64)

    @property
    def values(self):
        return np.array(self._values, np.float64)

    @property
    def last(self):
        """The newest value, or None."""
        return self._values[-1] if self._values else None

    def append(self, step, time, value):
        if self._steps and self._steps[-1] >= step:
            self.cut(step)  # a step that is written twice counts once
        self._steps.append(step)
        self._times.append(time)
        self._values.append(value)

    def cut(self, step):
        """Removes what belongs to this iteration and later ones."""
        keep = bisect.bisect_left(self._steps, step)
        del self._steps[keep:], self._times[keep:], self._values[keep:]

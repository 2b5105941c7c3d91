"""Histogram of the absolute values of a blob."""
import numpy as np

BINS = 2048


class Histogram:
    """Counts absolute values in equal bins from 0. Zeros are counted separately, because 8 bits represent them exactly.

    lowest, highest: of all values added. When a larger value comes, the range doubles and neighbouring bins are merged, so the
    range need not be known in advance.
    """

    def __init__(self):
        self.lowest, self.highest = np.inf, -np.inf
        self.zeros = 0
        self.limit = 0.0  # upper end of the last bin
        self.counts = np.zeros(BINS, np.int64)

    def add(self, array):
        """Raises ValueError if a value is not finite."""
        numbers = np.asarray(array, np.float32).ravel()
        if numbers.size == 0:
            return
        lowest, highest = float(numbers.min()), float(numbers.max())
        if not np.isfinite([lowest, highest]).all():
            raise ValueError("has numbers that are not finite")
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)
        sizes = np.abs(numbers[numbers != 0])
        self.zeros += numbers.size - sizes.size
        if sizes.size == 0:
            return
        self._reach(float(sizes.max()))
        places = np.minimum((sizes.astype(np.float64) * (BINS / self.limit)).astype(np.int64), BINS - 1)
        self.counts += np.bincount(places, minlength=BINS)

    def _reach(self, size):
        if self.limit == 0:
            self.limit = size
        while self.limit < size:
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(axis=1), np.zeros(BINS // 2, np.int64)])
            self.limit *= 2

    @property
    def width(self):
        return self.limit / BINS

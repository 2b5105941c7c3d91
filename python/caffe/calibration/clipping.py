"""Where to clip: from a histogram to the largest absolute value that 8 bits should still hold."""
import numpy as np

from .histogram import BINS

METHODS = {}

# Levels of 8 bits without a sign, and with one on each side.
_UNSIGNED, _SIGNED = 255, 127


def method(name):
    """Decorator of `function(histogram, percentile)` that returns such a value."""
    def register(function):
        METHODS[name] = function
        return function
    return register


@method("min-max")
def all_numbers(histogram, _percentile):
    return max(abs(histogram.lowest), abs(histogram.highest))


@method("percentile")
def most_numbers(histogram, percentile):
    """All but the largest of those that are not 0: `percentile` percent of them."""
    place = int(np.searchsorted(np.cumsum(histogram.counts), histogram.counts.sum() * percentile / 100))
    return min((place + 1) * histogram.width, all_numbers(histogram, percentile))


@method("entropy")
def least_information_lost(histogram, _percentile):
    """The clipping whose distribution over the levels diverges least from the numbers' own (Kullback-Leibler), as in S. Migacz,
    "8-bit Inference with TensorRT", GTC 2017."""
    levels = _UNSIGNED if histogram.lowest >= 0 else _SIGNED
    candidates = range(levels + 1, BINS + 1, 8)
    best = min(candidates, key=lambda bins: _divergence(histogram.counts, bins, levels))
    return min(best * histogram.width, all_numbers(histogram, None))


def _divergence(counts, bins, levels):
    """Of the numbers, those above `bins` clipped to the last one, from what `levels` equal steps keep of them."""
    kept = counts[:bins].astype(np.float64)
    clipped = kept.copy()
    clipped[-1] += counts[bins:].sum()
    level = np.arange(bins) * levels // bins
    is_filled = kept > 0
    filled = np.bincount(level, is_filled, levels)
    spread = np.where(is_filled, (np.bincount(level, kept, levels) / np.maximum(filled, 1))[level], 0)
    if spread.sum() == 0:
        return np.inf
    p, q = clipped / clipped.sum(), spread / spread.sum()
    q = np.where((p > 0) & (q == 0), 1e-12, q)  # numbers that were clipped to an empty bin
    there = p > 0
    return float((p[there] * np.log(p[there] / q[there])).sum())

"""Clipping methods: each maps a histogram to the largest absolute value that 8 bits should represent."""
import numpy as np

from .histogram import BINS

METHODS = {}

# Numbers of 8-bit levels: unsigned, and on each side of zero if signed.
_UNSIGNED, _SIGNED = 255, 127


def method(name):
    """Registers a `function(histogram, percentile)` that returns such a value."""
    def register(function):
        METHODS[name] = function
        return function
    return register


@method("min-max")
def all_numbers(histogram, _percentile):
    return max(abs(histogram.lowest), abs(histogram.highest))


@method("percentile")
def most_numbers(histogram, percentile):
    """Keeps `percentile` percent of the values other than 0, and clips the largest."""
    place = int(np.searchsorted(np.cumsum(histogram.counts), histogram.counts.sum() * percentile / 100))
    return min((place + 1) * histogram.width, all_numbers(histogram, percentile))


@method("entropy")
def least_information_lost(histogram, _percentile):
    """Minimizes the Kullback-Leibler divergence between the values and their quantized distribution (S. Migacz, "8-bit Inference
    with TensorRT", GTC 2017)."""
    levels = _UNSIGNED if histogram.lowest >= 0 else _SIGNED
    candidates = range(levels + 1, BINS + 1, 8)
    best = min(candidates, key=lambda bins: _divergence(histogram.counts, bins, levels))
    return min(best * histogram.width, all_numbers(histogram, None))


def _divergence(counts, bins, levels):
    """Divergence of the values, those above `bins` clipped into the last bin, from their quantization to `levels` equal steps."""
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
    q = np.where((p > 0) & (q == 0), 1e-12, q)  # values clipped into an empty bin
    there = p > 0
    return float((p[there] * np.log(p[there] / q[there])).sum())

"""Curves for ECharts."""
import math

import numpy as np

_POINTS = 2000  # of a curve; more than a screen has columns
_MOST = 60  # figures at a time; with thousands, which a net with a wide output has, a browser stands still

COLORS = ["#1f6fb2", "#d9480f", "#2b8a3e", "#9c36b5", "#c92a2a", "#0b7285", "#e67700", "#5f3dc4", "#495057", "#a61e4d"]


def smoothed(values, weight):
    """Exponential means with a correction of their start, as TensorBoard's. weight: from 0 (none) to below 1. Values that are not
    finite are left out of the means."""
    if not weight or len(values) < 2:
        return values
    result, mean, share = np.empty(len(values)), 0.0, 1.0
    for index, value in enumerate(values.tolist()):
        if math.isfinite(value):
            mean = weight * mean + (1 - weight) * value
            share *= weight
        result[index] = mean / (1 - share) if share < 1 else value
    return result


def thinned(x, y, points=_POINTS):
    """Fewer points, among them the least and largest values of each part, so that the curve looks the same."""
    if len(x) <= points:
        return x, y
    try:
        from tsdownsample import MinMaxLTTBDownsampler
    except ImportError:
        kept = np.unique(np.linspace(0, len(x) - 1, points).astype(int))
        return x[kept], y[kept]
    finite = np.isfinite(y)
    kept = MinMaxLTTBDownsampler().downsample(x.astype(np.float64), np.where(finite, y, 0.0), n_out=points)
    return x[kept], y[kept]


def chosen(figures, search=""):
    """The figures to show, which have a text in their names, tests and losses first; and how many have it."""
    found = [name for name in figures if search.lower() in name.lower()]
    found.sort(key=lambda name: (not name.startswith("test"), "loss" not in name, name))
    return found[:_MOST], len(found)


def x_of(series, axis, per_epoch=None):
    """Places on the x axis. axis: "iterations", "epochs" or "hours" since the first value."""
    if axis == "epochs" and per_epoch:
        return series.steps / per_epoch
    if axis == "hours":
        times = series.times
        return (times - times[0]) / 3600 if len(times) else times
    return series.steps


def options(title, curves, axis="iterations", is_log=False, weight=0.0):
    """An ECharts option of one chart.

    curves: (name, x, y) of each
    axis: the name of the x axis
    weight: see smoothed; the curve itself is then shown pale
    """
    series = []
    for index, (name, x, y) in enumerate(curves):
        color = COLORS[index % len(COLORS)]
        if weight:
            series.append(_line(name + " ", *thinned(x, y), color, 0.25, is_log))
        series.append(_line(name, *thinned(x, smoothed(y, weight)), color, 1, is_log))
    return themed({
        "animation": False, "title": {"text": title, "textStyle": {"fontSize": 13}, "left": 8, "top": 4}, "aria": {"enabled": True},
        "grid": {"left": 56, "right": 16, "top": 40, "bottom": 40},
        "tooltip": {"trigger": "axis", "confine": True, "axisPointer": {"type": "line"}},
        "legend": {"show": len(curves) > 1, "type": "scroll", "bottom": 0, "data": [name for name, _, _ in curves]},
        "xAxis": {"type": "value", "min": "dataMin", "max": "dataMax", "name": "" if len(curves) > 1 else axis, "nameLocation": "middle", "nameGap": 24},
        "yAxis": {"type": "log" if is_log else "value", "scale": True},
        "dataZoom": [{"type": "inside", "filterMode": "none"}],
        "series": series})


def themed(option):
    """An ECharts option with the page's colours for its texts and lines, which browsers look up: they depend on light and dark."""
    text, line = ({":color": f"getComputedStyle(document.body).getPropertyValue('--{name}').trim()"} for name in ("soft", "line"))
    for part in ("title", "legend"):
        if part in option:
            option[part]["textStyle"] = {**option[part].get("textStyle", {}), **text}
    for axis in ("xAxis", "yAxis"):
        option[axis]["axisLabel"] = {**option[axis].get("axisLabel", {}), **text}
        option[axis].update(nameTextStyle=text, splitLine={"lineStyle": line}, axisLine={"lineStyle": text})
    return option


def _line(name, x, y, color, opacity, is_log):
    shown = [[float(at), float(value) if math.isfinite(value) and not (is_log and value <= 0) else None] for at, value in zip(x, y)]
    return {"name": name, "type": "line", "showSymbol": len(shown) < 2, "data": shown, "color": color, "silent": opacity < 1,
            "lineStyle": {"width": 1.5, "opacity": opacity}}

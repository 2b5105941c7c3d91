"""One run: its curves, plan, definitions and sessions; stop, snapshot and resume."""
import datetime
import os
import signal
import time
from urllib.parse import quote

import numpy as np
from nicegui import run as threads
from nicegui import ui

from ..._log_ends import end_of
from ...runs.plan import read_plan
from ...runs.processes import is_alive
from .. import charts, drawing
from ..resuming import require_own
from ..workspace import files_like
from . import page
from .errors import every, failure, shown_here
from .removing import remove_button
from .resuming import refused, resume_button

_EVERY = 2  # seconds
_MOST_BEST = 10
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size(count):
    """Bytes for people."""
    return next((f"{count / unit:.3g} {name}" for unit, name in _UNITS if count >= unit), f"{count} B")


def _begin(session):
    """The start of a session in seconds since 1970, 0 if it is unknown."""
    try:
        return datetime.datetime.fromisoformat(str(session.get("start", "")).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0


def time_left(one, now):
    """Seconds to the end at the speed of the newest session's last iterations, or None. now: seconds since 1970."""
    stop, series = one.stop_iteration, one.series.get("train/learning_rate")
    if one.state != "running" or not stop or series is None:
        return None
    first = np.searchsorted(series.times, _begin(one.session))  # before it, nothing may have been trained for days
    steps, times = series.steps[first:][-20:], series.times[first:][-20:]
    if len(steps) < 2:
        return None
    rate = (steps[-1] - steps[0]) / max(times[-1] - times[0], 1e-9)
    return max(0.0, (stop - one.iteration) / rate - (now - times[-1])) if rate > 0 else None


def _clock(seconds):
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def best_of(series):
    """A text with the best value of the figures of a test: the smallest loss, and the largest of all others."""
    found, tests = [], [figure for figure in series if figure.startswith("test")]
    for figure in charts.chosen(tests)[0][:_MOST_BEST]:
        numbers = [(value, step) for value, step in zip(series[figure].values, series[figure].steps) if value == value]  # not NaN
        if numbers:
            value, step = min(numbers) if "loss" in figure else max(numbers, key=lambda pair: (pair[0], -pair[1]))
            found.append(f"{figure} {value:.5g} after iteration {step}")
    more = f", and {len(tests) - _MOST_BEST:,} figures more" if len(tests) > _MOST_BEST else ""
    return "Best: " + ", ".join(found) + more if found else ""


class _View:
    """The user's choices for the curves."""

    def __init__(self):
        self.axis, self.is_log, self.weight = "iterations", False, 0.0
        self.search = ""
        self.charts, self.length = {}, -1


@page("/runs/{name:path}")
async def show(studio, name):
    one = await threads.io_bound(studio.workspace.run, name)
    with ui.row().classes("items-center w-full"):
        ui.link("Runs", "/").classes("soft")
        ui.label(name).classes("title")
        state = ui.badge(one.state)
        progress = ui.linear_progress(0, show_value=False).props('aria-label="Share of the training that is done"').style("width: 12rem")
        left = ui.label("").classes("soft")
        ui.space()
        enable = _buttons(studio, one)
    for problem in one.problems:
        failure(problem)
    if one.session.get("error"):
        failure(str(one.session["error"]))
    with ui.tabs().props("dense no-caps align=left") as tabs:
        for title in ("Curves", "Plan", "Log", "Definitions", "Sessions"):
            ui.tab(title)
    waiting = {"Plan": _plan, "Log": _log, "Definitions": _definitions, "Sessions": _sessions}
    panels = {}
    with ui.tab_panels(tabs, value="Curves", animated=False).classes("w-full"):
        with ui.tab_panel("Curves"):
            update = _curves(one)
        for title in waiting:
            with ui.tab_panel(title) as panels[title]:
                pass

    def fill(event):
        show_tab = waiting.pop(event.value, None)
        if show_tab:
            with panels[event.value], shown_here():
                show_tab(one)

    tabs.on_value_change(fill)

    def tell():
        state.text = one.state
        enable()
        stop = one.stop_iteration
        progress.value = min(1, one.iteration / stop) if stop else 0
        seconds = time_left(one, time.time())
        left.text = f"iteration {one.iteration}" + (f" of {stop}" if stop else "") + (f", {_clock(seconds)} left" if seconds is not None else "")

    async def refresh():
        await threads.io_bound(studio.workspace.run, name)
        tell()
        update()

    tell()
    every(_EVERY, refresh)


def _runs_here(one):
    """True if the training of a Run goes on, on this machine."""
    return one.state == "running" and is_alive(one.session) and one.session.get("host") == os.uname().nodename


def _buttons(studio, one):
    """Returns a function that enables what is possible now."""
    async def send(number, what):
        with refused(studio):
            await threads.io_bound(require_own, one)
            signal_to(number, what)

    def signal_to(number, what):
        if _runs_here(one):
            os.kill(int(one.session["process"]), number)
            ui.notify(what)
        else:
            ui.notify("The training does not run on this machine.", type="warning")

    with ui.row().classes("items-center"):
        snapshot = ui.button("Snapshot", on_click=lambda: send(signal.SIGHUP, "A snapshot follows the iteration.")).props("dense flat no-caps")
        stop = ui.button("Stop", on_click=lambda: send(signal.SIGINT, "It stops after the iteration, with a snapshot.")).props("dense flat no-caps")
        resume_button(studio, one)
        remove_button(studio, studio.workspace.relative(one.folder), "/")

    def enable():
        for button in (snapshot, stop):
            button.set_enabled(_runs_here(one))

    return enable


def _curves(one):
    """The controls and charts. Returns a function that shows what was added."""
    view = _View()
    with ui.row().classes("items-center"):
        ui.label("Smoothing").classes("soft")
        ui.slider(min=0, max=0.99, step=0.01, value=0, on_change=lambda event: change(weight=event.value)).props('aria-label="Smoothing"').style("width: 10rem")
        ui.toggle(["iterations", "epochs", "hours"], value="iterations", on_change=lambda event: change(axis=event.value)).props("dense no-caps unelevated")
        ui.switch("Logarithmic", on_change=lambda event: change(is_log=event.value))
        search = ui.input(placeholder="Search figures", on_change=lambda event: change(search=event.value or "")).props(
            'dense outlined clearable debounce=300 aria-label="Search figures"')
    best = ui.label().classes("soft")
    note = ui.label().classes("soft")
    place = ui.element("div").classes("charts")
    empty = ui.label("No figures yet.").classes("soft")

    def per_epoch(epochs):
        """Iterations in an epoch."""
        return epochs.steps[-1] / epochs.last if epochs is not None and epochs.last else None

    def option(figure, series, per_epoch):
        axis = view.axis if view.axis != "epochs" or per_epoch else "iterations"
        return charts.options(figure, [(figure, charts.x_of(series, axis, per_epoch), series.values)], axis, view.is_log, view.weight)

    def change(**values):
        for key, value in values.items():
            setattr(view, key, value)
        update(force=True)

    def update(force=False):
        series = one.series
        length = sum(map(len, series.values()))
        if length == view.length and not force:
            return
        view.length = length
        empty.set_visibility(not series)
        best.text = best_of(series)
        names, found = charts.chosen((figure for figure in series if figure != "train/epoch"), view.search)
        search.set_visibility(len(series) > 1)
        note.text = f"{len(names)} of {found:,} figures are shown; search for others." if found > len(names) else ""
        for figure in view.charts.keys() - set(names):
            view.charts.pop(figure).delete()
        epoch = per_epoch(series.get("train/epoch"))
        for index, figure in enumerate(names):
            options = option(figure, series[figure], epoch)
            if figure not in view.charts:
                with place:
                    view.charts[figure] = ui.echart(options).classes("chart")
                view.charts[figure].move(target_index=index)
            else:
                view.charts[figure].options.clear()
                view.charts[figure].options.update(options)
                view.charts[figure].update()

    update()
    return update


def _plan(one):
    plan = read_plan(one.folder)
    if not plan:
        ui.label("The run has no plan.").classes("soft")
        return
    with ui.row():
        for what, count in plan["memory"].items():
            if count and what != "running":
                with ui.column().classes("panel").style("gap: 0"):
                    ui.label(what.replace("_", " ")).classes("soft")
                    ui.label(size(count)).classes("number")
    columns = [{"name": key, "label": label, "field": key, "sortable": True, "align": "left" if key in ("name", "types", "kernels") else "right"}
               for key, label in (("name", "layers"), ("ms", "ms"), ("gflop", "GFLOP"), ("moved", "MiB moved"), ("types", "types"), ("steps", "steps"),
                                  ("kernels", "kernels"))]
    rows = [{"name": layer["name"], "ms": None if layer["milliseconds"] is None else round(layer["milliseconds"], 3),
             "gflop": round(layer["flops"] / 1e9, 4), "moved": round(layer["bytes"] / (1 << 20), 2), "types": ", ".join(layer["types"]),
             "steps": layer["steps"], "kernels": ", ".join(layer["kernels"])} for layer in plan["layers"]]
    with shown_here():
        _graph(one, plan)
    ui.table(columns=columns, rows=rows, row_key="name", pagination=25).props("dense flat wrap-cells").classes("w-full")


def shares_of(layers):
    """({name: share of the largest time}, True), or shares of the largest number of operations, and False, if no layer of a plan has a time."""
    is_timed = any(layer["milliseconds"] for layer in layers)
    costs = {layer["name"]: (layer["milliseconds"] or 0) if is_timed else layer["flops"] for layer in layers}
    most = max(costs.values(), default=0) or 1
    return {name: cost / most for name, cost in costs.items()}, is_timed


def _graph(one, plan):
    try:
        net = drawing.read_net(os.path.join(one.folder, "train_net.prototxt"))
    except FileNotFoundError:
        return
    shares, is_timed = shares_of(plan["layers"])
    about = {layer["name"]: f"{layer['name']}: " + (f"{layer['milliseconds']:.3g} ms, " if layer["milliseconds"] is not None else "")
             + f"{layer['flops'] / 1e9:.3g} GFLOP, {size(layer['bytes'])} moved, {', '.join(layer['types'])}" for layer in plan["layers"]}
    for layer in net.layer:  # a fused step has the names of several layers
        for names, share in list(shares.items()):
            if layer.name in names.split(","):
                shares[layer.name] = max(shares.get(layer.name, 0), share)
                about.setdefault(layer.name, about.get(names, layer.type))
    ui.label("Darker layers take more time." if is_timed else "Darker layers compute more.").classes("soft")
    with ui.element("div").classes("scroll").props('tabindex="0" role="region" aria-label="Graph of the net"'):
        ui.html(drawing.svg(net, shares, about), sanitize=False)


def _log(one):
    text = ui.label().classes("log panel").props('role="log" tabindex="0"')

    def refresh():
        now = end_of(os.path.join(one.folder, "log.txt")) or "The run has no log.txt."
        if text.text != now:
            text.text = now

    refresh()
    every(_EVERY, refresh)


def _definitions(one):
    for file in files_like(one.folder, "*.prototxt"):
        with ui.expansion(os.path.basename(file)).classes("w-full"), shown_here():
            with open(file, encoding="utf-8", errors="replace") as text:
                ui.code(text.read(1 << 20), language="text").classes("w-full")


def _sessions(one):
    for number, session in enumerate(reversed(one.sessions)):
        with ui.expansion(f"session {len(one.sessions) - number}: {session.get('start', '')}", value=number == 0).classes("w-full"):
            rows = [{"key": key.replace("_", " "), "value": str(value)} for key, value in session.items()]
            ui.table(columns=[{"name": key, "label": "", "field": key, "align": "left"} for key in ("key", "value")], rows=rows, row_key="key").props(
                "dense flat hide-header wrap-cells")
    if one.snapshots:
        ui.label("Snapshots").classes("title")
        ui.table(columns=[{"name": key, "label": key, "field": key, "align": "left"} for key in ("iteration", "file")],
                 rows=[{"iteration": step, "file": file} for step, file in reversed(one.snapshots)], row_key="file", pagination=10).props("dense flat")

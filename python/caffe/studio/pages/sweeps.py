"""Sweeps: which there are, their trials, and a form that queues one."""
import pathlib
from urllib.parse import quote

from nicegui import ui

from ... import InvalidArgument
from .. import commands
from . import page
from .errors import every

_EVERY = 10  # seconds
_SAMPLERS = {"tpe": "tpe: learns from the trials before", "random": "random", "grid": "grid: all combinations"}
_PRUNERS = {"halving": "halving: the worse ones end early", "none": "none: all to their end"}


@page("/sweeps", "Sweeps", "tune", 4)
def show(studio):
    ui.label("Sweeps").classes("title")
    ui.label("A sweep trains a model with many settings, and shows which are best.").classes("soft")
    for name in studio.workspace.sweeps():
        with ui.row().classes("items-center panel w-full"):
            ui.icon("tune").props("aria-hidden=true")
            ui.link(name, f"/sweeps/{quote(name)}")
    _form(studio)


def _form(studio):
    models = studio.workspace.models()
    if not models:
        ui.label("Make a model under Data first.").classes("soft")
        return
    with ui.expansion("New sweep", value=True).classes("w-full panel"):
        with ui.row().classes("items-end"):
            model = ui.select(models, value=models[0], label="Model").props("dense outlined").style("min-width: 12rem")
            trials = ui.number("Trials", value=16, min=1, max=100000, precision=0).props("dense outlined").style("width: 7rem")
            sampler = ui.select(_SAMPLERS, value="tpe", label="Settings are chosen by").props("dense outlined")
            pruner = ui.select(_PRUNERS, value="halving", label="Trials end early by").props("dense outlined")
        fields = ui.textarea("What varies, one field a line", value="base_lr=0.001..0.1:log\nweight_decay=0.00001..0.001:log"
                             ).props("dense outlined autogrow").classes("w-full").style("font-family: monospace")
        ui.label("base_lr=0.001..0.1:log is a range, type=SGD,Adam a choice, momentum=0.5..0.99 if type=SGD has a condition, and "
                 "layer[fc].inner_product_param.num_output=16..128:step=16 is a field of the net.").classes("soft")

        async def queue():
            words = [line.strip() for line in (fields.value or "").splitlines() if line.strip()]
            if not words or any(word.startswith("-") or "=" not in word for word in words):
                raise InvalidArgument("give lines such as base_lr=0.001..0.1:log")
            folder = f"{model.value}/sweep"
            if pathlib.Path(studio.workspace.inside(folder)).exists():
                raise InvalidArgument(f"{folder}: already exists; move it away, or continue it on its page")
            button.disable()
            try:
                await commands.look("sweep", studio.workspace.inside(model.value), *words)
            finally:
                button.enable()
            _queue(studio, folder, f"sweep of {model.value}", model.value, *words, f"--trials={int(trials.value or 16)}", f"--sampler={sampler.value}",
                   f"--pruner={pruner.value}")

        button = ui.button("Sweep", on_click=queue).props("no-caps unelevated")


@page("/sweeps/{name:path}")
async def show_one(studio, name):
    folder = pathlib.Path(studio.workspace.inside(name))
    if not (folder / "sweep.json").exists():
        raise InvalidArgument(f"{name}: holds no sweep")
    with ui.row().classes("items-center w-full"):
        ui.link("Sweeps", "/sweeps").classes("soft")
        ui.label(name).classes("title")
        ui.space()
        ui.button("Continue", on_click=lambda: _continue(studio, name)).props("dense flat no-caps")
    place, seen = ui.column().classes("w-full"), {}

    async def refresh():
        stamp = (folder / "journal.log").stat().st_mtime_ns
        if seen.get("stamp") == stamp:
            return
        await commands.answer(studio.program, "sweep", folder)  # writes its page
        seen["stamp"] = stamp
        _show_page(studio, folder, place, stamp)

    await refresh()
    every(_EVERY, refresh)


def _show_page(studio, folder, place, stamp):
    relative = studio.workspace.relative(folder / "sweep.html")
    place.clear()
    with place:
        ui.html(f'<iframe src="/file?path={quote(relative)}&amp;of={stamp}" title="Trials of {quote(folder.name)}" sandbox="" '
                'style="width: 100%; height: 40rem; border: 0"></iframe>', sanitize=False).classes("w-full")
        with ui.row().classes("items-center"):
            for trial in sorted(folder.glob("[0-9]*/run")):
                run = studio.workspace.relative(trial)
                ui.link(f"trial {int(trial.parent.name)}", f"/runs/{quote(run)}").classes("soft")


def _continue(studio, name):
    _queue(studio, name, f"sweep {name}", name, "--resume")


def _queue(studio, name, title, *words):
    """Queues a job that fills the folder of a sweep, unless there is one."""
    result = f"/sweeps/{quote(name)}"
    for job, state in studio.jobs.all():
        if job.kind == "sweep" and job.result == result and state in ("queued", "running", "paused"):
            what = "and is paused. Press Go on under Jobs." if state == "paused" else "already."
            ui.notify(f"Job {job.id} works on {name} {what}", type="warning")
            return
    job = studio.jobs.add("sweep", title, [studio.program, "sweep", *words], studio.workspace.root, result)
    ui.notify(f"Job {job.id} is queued.")

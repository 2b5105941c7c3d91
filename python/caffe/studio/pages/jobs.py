"""The queue of this machine."""
import datetime

from nicegui import ui

from . import page
from .errors import every, failure

_EVERY = 2  # seconds
_ICONS = {"queued": "schedule", "running": "play_arrow", "pausing": "pause", "paused": "pause", "done": "check", "failed": "error_outline",
          "cancelling": "close", "cancelled": "close"}
_ENDING = {"pause": "pausing", "cancel": "cancelling"}


def _shown(job, state):
    """The state, also that of a job that was asked to stop and still runs: a training ends after its iteration."""
    return _ENDING.get(job.wish, state) if state == "running" else state


@page("/jobs", "Jobs", "queue", 5)
def show(studio):
    with ui.row().classes("items-center"):
        ui.label("Jobs").classes("title")
        ui.label(f"{studio.jobs.slots} at a time. They go on when the studio ends.").classes("soft")
    place = ui.column().classes("w-full")
    seen = {}

    def refresh():
        found = [(job, _shown(job, state)) for job, state in reversed(studio.jobs.all())]
        if seen.get("shown") == (found, studio.trouble):
            return
        seen["shown"] = (found, studio.trouble)
        place.clear()
        with place:
            if studio.trouble:
                failure(f"The queue waits, because no job can be started: {studio.trouble}")
            if not found:
                ui.label("Nothing is queued.").classes("soft")
            for job, state in found:
                _line(studio, job, state, refresh)

    refresh()
    every(_EVERY, refresh)


def _line(studio, job, state, refresh):
    def act(what, *values):
        what(job.id, *values)
        refresh()

    with ui.row().classes("items-center w-full panel no-wrap"):
        ui.icon(_ICONS[state]).props(f'aria-label="{state}"')
        ui.link(job.title, f"/jobs/{job.id}")
        ui.badge(state)
        if state == "failed":
            ui.label(studio.jobs.reason(job))
        ui.label(datetime.datetime.fromtimestamp(job.made).strftime("%Y-%m-%d %H:%M")).classes("soft")
        if job.result:
            ui.link("result", job.result)
        ui.space()
        if state in ("queued", "running"):
            if job.resume or job.kind == "train":
                ui.button("Pause", on_click=lambda: act(studio.jobs.stop, "pause")).props("dense flat no-caps")
            ui.button("Cancel", on_click=lambda: act(studio.jobs.stop, "cancel")).props("dense flat no-caps")
        elif state in ("paused", "failed", "cancelled"):
            ui.button("Go on", on_click=lambda: act(studio.jobs.go_on)).props("dense flat no-caps")
            if state == "paused":
                ui.button("Cancel", on_click=lambda: act(studio.jobs.stop, "cancel")).props("dense flat no-caps")


@page("/jobs/{identity}")
def show_one(studio, identity):
    job = studio.jobs.get(identity)
    with ui.row().classes("items-center"):
        ui.link("Jobs", "/jobs").classes("soft")
        ui.label(job.title).classes("title")
        state, reason = ui.badge(_shown(job, studio.jobs.state(job))), ui.label()
        if job.result:
            ui.link("result", job.result)
    ui.label(f"in {job.working}").classes("soft")
    log = ui.label().classes("log panel").props('role="log" tabindex="0"')

    def refresh():
        now = studio.jobs.get(identity)
        standing = studio.jobs.state(now)
        state.text, reason.text = _shown(now, standing), studio.jobs.reason(now) if standing == "failed" else ""
        text = studio.jobs.log(now)
        if log.text != text:
            log.text = text

    refresh()
    every(_EVERY, refresh)

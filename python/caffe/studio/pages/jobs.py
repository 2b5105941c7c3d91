"""The queue of this machine."""
import datetime

from nicegui import ui

from ..jobs import done_since
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
    trouble = ui.column().classes("w-full")
    empty = ui.label("Nothing is queued.").classes("soft")
    place = ui.column().classes("w-full")
    seen, lines = {}, {}  # by job; a line of the page stays the same element, for the focus in it

    def refresh():
        if seen.get("trouble") != studio.trouble:
            seen["trouble"] = studio.trouble
            trouble.clear()
            if studio.trouble:
                with trouble:
                    failure(f"The queue waits, because no job can be started: {studio.trouble}")
        queue = studio.jobs.all()
        since = done_since(queue)
        found = {job.id: (job, _shown(job, state), since.get(job.id)) for job, state in queue}
        for identity in lines.keys() - found.keys():
            lines.pop(identity).delete()
        for identity, shown in found.items():
            if identity not in lines:
                with place:
                    lines[identity] = ui.row().classes("items-center w-full panel no-wrap")
            elif seen.get(identity) == shown:
                continue
            seen[identity] = shown
            lines[identity].clear()
            with lines[identity]:
                _line(studio, *shown, refresh)
        for index, identity in enumerate(reversed(found)):
            if place.default_slot.children[index] is not lines[identity]:
                lines[identity].move(target_index=index)
        empty.set_visibility(not found)

    refresh()
    every(_EVERY, refresh)


def _line(studio, job, state, later, refresh):
    def act(what, *values):
        what(job.id, *values)
        refresh()

    ui.icon(_ICONS[state]).props(f'aria-label="{state}"')
    ui.link(job.title, f"/jobs/{job.id}")
    ui.badge(state)
    if state == "failed":
        ui.label(studio.jobs.reason(job)).style("min-width: 0; overflow-wrap: anywhere")
    ui.label(datetime.datetime.fromtimestamp(job.made).strftime("%Y-%m-%d %H:%M")).classes("soft")
    if job.result:
        ui.link("result", job.result)
    ui.space()
    if state in ("queued", "running"):
        if job.resume or job.kind in ("train", "sweep"):  # the command continues what it has begun
            ui.button("Pause", on_click=lambda: act(studio.jobs.stop, "pause")).props("dense flat no-caps")
        ui.button("Cancel", on_click=lambda: act(studio.jobs.stop, "cancel")).props("dense flat no-caps")
    elif state in ("paused", "failed", "cancelled"):
        if later:  # nothing is left to do
            ui.link(f"done by job {later.id}", f"/jobs/{later.id}")
        else:
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

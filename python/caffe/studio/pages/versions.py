"""The versions of a data set, as a part of its page."""
import datetime
from urllib.parse import quote

from nicegui import run, ui

from ..messages import shown

_MOST_NAMES = 200


def note_model(studio, name, model):
    """Records the set as it is, and that a model is made of it. Raises Error, OSError."""
    version = studio.versions.record(name, studio.workspace.inside(name))
    studio.versions.made(name, version.number, model)


def show(studio, name):
    """A table of the versions, and a button that records what is there now."""
    async def record():
        button.disable()
        try:
            version = await run.io_bound(studio.versions.record, name, studio.workspace.inside(name))
        finally:
            button.enable()
        ui.notify(f"The set is at version {version.number}." + _left_out(version), multi_line=True)
        await read()

    async def read():
        found = await run.io_bound(studio.versions.all, name)
        _fill(place, found)

    async def opened(event):
        if event.value:
            await read()

    with ui.expansion("Versions", on_value_change=opened).classes("w-full panel"):
        ui.label("A version keeps the names and marks of all files, so that you see which data a model was made of and what has changed since. "
                 "Making a model records one. It keeps no copies of the images.").classes("soft")
        place = ui.column().classes("w-full")
        button = ui.button("Look for changes", on_click=record).props("dense outline no-caps")


def _left_out(version):
    """A sentence about what is not a file, "" if there is nothing of the kind."""
    if not version.skipped:
        return ""
    more = f" and {len(version.skipped) - 3:,} more" if len(version.skipped) > 3 else ""
    return shown(f" Left out, as they are not regular files: {', '.join(version.skipped[:3])}{more}.")


def _fill(place, versions):
    place.clear()
    with place:
        for before, version in reversed(list(zip([None, *versions], versions))):
            _row(version, before)


def _row(version, before):
    added, removed, changed = version.differences(before)
    what = [f"{len(names):,} {word}" for names, word in ((added, "added"), (removed, "removed"), (changed, "changed")) if names]
    title = f"Version {version.number}, {datetime.datetime.fromtimestamp(version.time):%Y-%m-%d %H:%M}: {len(version.files):,} files"
    if before:
        title += ", " + ", ".join(what)
    with ui.row().classes("items-center"):
        for model in version.models:
            ui.link(model, f"/models/{quote(model)}").classes("soft")
    with ui.expansion(title).props("dense").classes("w-full"):
        if version.skipped:
            ui.label(_left_out(version)).classes("soft")
        if not before:
            ui.label("The first version.").classes("soft")
            return
        for names, word in ((added, "added"), (removed, "removed"), (changed, "changed")):
            for file in names[:_MOST_NAMES]:
                ui.label(shown(f"{word}: {file}")).classes("soft")
            if len(names) > _MOST_NAMES:
                ui.label(f"{word}: {len(names) - _MOST_NAMES:,} more").classes("soft")

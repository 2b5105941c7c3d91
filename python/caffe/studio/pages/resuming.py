"""The button that continues a run from its newest snapshot."""
import contextlib
from urllib.parse import quote

from nicegui import run, ui

from ..messages import shown
from ..resuming import CannotResume, is_done, resumption


def resume_button(studio, one):
    """Queues the training of a Run; says why if it cannot continue, and asks for how long if nothing is left to train."""
    name = studio.workspace.relative(one.folder)

    def queue(found):
        job = studio.jobs.add("train", f"train {name}", [studio.program, *found.words], found.working, f"/runs/{quote(name)}")
        ui.notify(f"Job {job.id} is queued.")

    async def resume():
        with refused(studio):
            found = await run.io_bound(resumption, one)
            if is_done(one):
                _ask(one, found, queue)
            else:
                queue(found)

    ui.button("Resume", on_click=resume).props("dense flat no-caps")


@contextlib.contextmanager
def refused(studio):
    """Says why a run cannot continue, with a link to the one that can, if this page may show it."""
    try:
        yield
    except CannotResume as error:
        _refuse(studio, error)


def _refuse(studio, error):
    with ui.dialog(value=True) as dialog, ui.card():
        ui.label(shown(str(error))).style("overflow-wrap: anywhere")
        with ui.row().classes("justify-end items-center w-full"):
            name = studio.workspace.relative(error.run) if error.run else ".."
            if name.split("/")[0] != "..":
                ui.link(f"Open {name}", f"/runs/{quote(name)}")
            ui.button("Close", on_click=dialog.close).props("dense flat no-caps")


def _ask(one, found, queue):
    """Offers a longer training."""
    def act():
        if not dialog.value:  # a second Enter, before the browser has closed it
            return
        longer = found.until(value.value)
        dialog.close()
        queue(longer)

    with ui.dialog(value=True) as dialog, ui.card():
        ui.label("Nothing is left to train").classes("title")
        ui.label(f"The run has trained for all of its {one.iteration} iterations. Raise {found.field} to continue from its newest snapshot; it is "
                 f"{found.value} now. A learning rate that depends on the length, such as onecycle, follows the new length.")
        value = ui.number(found.field, value=2 * found.value, min=found.value + 1, precision=0).props("dense outlined autofocus")
        value.on("keydown.enter", act)
        with ui.row().classes("justify-end w-full"):
            ui.button("Close", on_click=dialog.close).props("dense flat no-caps")
            ui.button("Train further", on_click=act).props("dense unelevated no-caps")

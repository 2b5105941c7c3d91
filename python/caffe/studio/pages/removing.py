"""The button that removes what a page shows."""
from nicegui import run, ui

from ..removal import remove


def remove_button(studio, name, back):
    """Asks first, and then shows the page `back`."""
    async def act():
        dialog.close()
        target = await run.io_bound(remove, studio.workspace, studio.jobs, name)
        ui.notify(f"It is now {target}.")
        ui.navigate.to(back)

    with ui.dialog() as dialog, ui.card():
        ui.label(f"Remove {name} from the page?").classes("title")
        ui.label(f"The folder is moved to {studio.workspace.relative(studio.workspace.path('removed'))}. Move it back to have it again; delete it "
                 "there to have its room on the disk.").classes("soft")
        with ui.row().classes("justify-end w-full"):
            ui.button("Keep", on_click=dialog.close).props("dense flat no-caps")
            ui.button("Remove", on_click=act).props("dense unelevated no-caps color=negative")
    ui.button("Remove", on_click=dialog.open).props("dense flat no-caps")

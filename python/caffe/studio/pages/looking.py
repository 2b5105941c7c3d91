"""Parts of pages that show answers of the inspector."""
from html import escape

from nicegui import ui

from .. import commands
from .errors import shown_here


async def fill(place, show, *question):
    """Asks the inspector and shows its answer in `place`, or the error."""
    place.clear()
    with place:
        spinner = ui.spinner(size="lg")
    with place, shown_here():
        found = await commands.look(*question)
        if not spinner.is_deleted:  # no other question has come meanwhile, and the browser has not left
            show(found)
    if not spinner.is_deleted:
        spinner.delete()


def gallery(uris, names=()):
    """Pictures, as data URIs, with their names under them if they have any."""
    with ui.element("div").classes("gallery"):
        for index, uri in enumerate(uris):
            name = escape(names[index]) if index < len(names) else ""
            ui.html(f'<figure><img src="{uri}" alt="{name or index}" style="image-rendering: pixelated"><figcaption>{name}</figcaption></figure>', sanitize=False)

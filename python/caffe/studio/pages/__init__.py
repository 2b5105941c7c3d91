"""The pages of the studio: a module for each, and modules of their parts. A new module in this folder is found by itself."""
import dataclasses
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable

from nicegui import ui
from starlette.convertors import PathConvertor, register_url_convertor

from ..messages import shown
from . import focus
from .errors import notify_of_handlers, shown_here


@dataclasses.dataclass(frozen=True)
class Page:
    """A page. title: in the menu, "" for a page that is not in it; order: its place there."""
    path: str
    title: str
    icon: str
    order: int
    show: Callable


class _AnyPath(PathConvertor):
    """The rest of an address, also with line ends, which names of files may have."""
    regex = r"[\s\S]*"


register_url_convertor("path", _AnyPath())  # for our pages, and for the application in which NiceGUI puts them
_PAGES = []


def page(path, title="", icon="", order=99):
    """Makes a function the page at a path. It is called with the Studio, and what is in braces in the path."""
    def register(show):
        _PAGES.append(Page(path, title, icon, order, show))
        return show
    return register


def add_pages(studio):
    """Adds all pages to the server."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for one in _PAGES:
        _add(one, studio)


def _add(one, studio):
    async def show(**values):
        await _within_frame(one, studio, values)

    # FastAPI takes what is in the path from the function's parameters.
    names = [part[1:-1].partition(":")[0] for part in one.path.split("/") if part.startswith("{")]
    show.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=str) for name in names])
    ui.page(one.path, title="Cortado studio")(show)


async def _within_frame(one, studio, values):
    """The page with the menu, and errors as text on it."""
    ui.add_head_html("<style>" + _STYLE + "</style>" + focus.SCRIPT)
    ui.dark_mode(None)
    ui.colors(primary=_MARK)
    with ui.header(elevated=False).classes("items-center q-py-xs bar"):
        ui.link("Cortado", "/").classes("brand")
        with ui.element("nav").classes("row items-center").props('aria-label="Pages"'):
            for entry in sorted((entry for entry in _PAGES if entry.title), key=lambda entry: entry.order):
                link = ui.link(entry.title, entry.path).classes("entry")
                if entry is one:
                    link.props('aria-current="page"')
        ui.space()
        ui.label(shown(os.path.basename(studio.workspace.root))).classes("soft ellipsis").tooltip(shown(studio.workspace.root))
    with ui.column().classes("w-full body").props("role=main"):
        notify_of_handlers()
        with shown_here():
            result = one.show(studio, **values)
            if result is not None:  # it takes time, so the frame is shown first
                spinner = ui.spinner(size="lg")
                await ui.context.client.connected()
                if spinner.is_deleted:  # the browser has left meanwhile
                    result.close()
                    return
                spinner.delete()
                await result


_MARK = "#1f5fa8"  # buttons and links; NiceGUI's own blue is too pale for texts (WCAG AA: a contrast of 4.5)
_STYLE = """
:root { --line: #d9d7d2; --soft: #5c5c5c; --panel: #f6f5f2; --mark: """ + _MARK + """; }
.body--dark { --line: #3a3d42; --soft: #a8a6a2; --panel: #212429; --mark: #7fb2ec; }
body { font-family: system-ui, sans-serif; }
.bar { background: #2b211c !important; color: #f3ede6; gap: 1.25rem; }
.brand { font-weight: 700; color: #f3ede6 !important; text-decoration: none; }
.entry { color: #d8cfc6 !important; text-decoration: none; padding: .25rem .6rem; border-radius: .3rem; }
.entry[aria-current] { background: #4a3a31; color: #fff !important; }
a.nicegui-link { color: var(--mark); }
.body--dark .text-primary { --q-primary: var(--mark); }
.cm-activeLine { background: #99999918 !important; }
.codehilite .c1 { color: var(--soft) !important; }
a:focus-visible, button:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
.body { padding: .25rem .5rem; gap: .75rem; }
.soft, a.soft { color: var(--soft); font-size: .85rem; }
.bar .soft { color: #c5b9ae; }
.title { font-size: 1.25rem; font-weight: 600; overflow-wrap: anywhere; }
.panel { background: var(--panel); border-radius: .5rem; padding: .6rem .8rem; }
.failure { border-left: 4px solid #c92a2a; background: var(--panel); padding: .5rem .75rem; gap: .5rem; overflow-wrap: anywhere; white-space: pre-wrap; }
.code { font-family: ui-monospace, monospace; font-size: .85rem; }
.q-tab-panels, .q-panel { height: auto !important; overflow: visible !important; }
.q-tab-panels { background: transparent; }
.number { font-size: 1.2rem; font-variant-numeric: tabular-nums; }
.log { font: 12px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 28rem; overflow-y: auto; width: 100%; }
.chart { width: 100%; height: 17rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); gap: .75rem; width: 100%; }
.ag-cell a { color: var(--mark); }
.scroll { overflow: auto; max-height: 32rem; width: 100%; }
.graph path { fill: none; stroke: #8a8a8a; }
.graph rect { stroke: #8a8a8a; }
.graph text { font: 11px system-ui, sans-serif; text-anchor: middle; }
.graph .type { font-size: 9px; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr)); gap: .5rem; width: 100%; }
.gallery img { width: 100%; height: 7rem; object-fit: contain; background: var(--panel); border-radius: .3rem; image-rendering: auto; }
.gallery figure { margin: 0; }
.gallery figcaption { color: var(--soft); font-size: .8rem; text-align: center; overflow-wrap: anywhere; }
"""

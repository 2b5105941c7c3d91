"""All runs in a table; several of them compared."""
import datetime

from nicegui import run, ui

from ...runs.definitions import differences
from .. import charts
from ..messages import shown
from ..storage import note_in
from . import page
from .errors import every, shown_here

_EVERY = 6  # seconds
_SHOWN_FIRST = ("test/accuracy", "test/detection_eval", "test/loss", "train/smoothed_loss")

_ADDRESS = "'/runs/' + p.data.run.split('/').map(encodeURIComponent).join('/')"
_LINK = f"""p => {{
    const link = document.createElement('a');
    link.textContent = p.value;
    link.href = {_ADDRESS};
    link.tabIndex = -1;
    return link;
}}"""
# Enter in a cell opens the run, or edits the cell where that is possible.
_KEY = f"p => {{ if (p.event.key === 'Enter' && !p.colDef.editable) window.location.href = {_ADDRESS}; }}"
# Tab leaves the table, and the arrows move in it. Rows are skipped, because Shift+Tab would stop at each.
_TAB = {":tabToNextCell": "() => false", ":tabToNextHeader": "() => false",
        ":processRowPostCreate": "p => { for (const row of [p.eRow, p.ePinnedLeftRow]) if (row) row.tabIndex = -1; }"}


def _row(studio, summary, notes):
    name = studio.workspace.relative(summary.folder)
    notes = note_in(notes, name)
    session = summary.session
    figures, _ = charts.chosen(summary.figures)
    return {"id": name, "run": name, "state": summary.state, "iteration": summary.iteration, "share": summary.share,
            "begun": str(session.get("start", "")).replace("T", " ").rstrip("Z"), "type": str(session.get("solver_type", "")),
            "last": _time(summary.time), "tags": shown(", ".join(notes["tags"])), "note": shown(notes["note"]),
            **{figure.replace("/", " ").replace(".", "·"): summary.figures[figure] for figure in figures}}


def _time(seconds):
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S") if seconds else ""


class _Table:
    """The rows of all runs, which are made again only if something has changed."""

    def __init__(self, studio):
        self._studio, self._seen, self._rows = studio, None, []

    def rows(self):
        """A list of dicts, the same one as long as nothing changes."""
        summaries, notes = self._studio.workspace.summaries(), self._studio.workspace.notes.all()
        seen = [id(one) for one in (notes, *summaries)]
        if seen != self._seen:
            # Their being held keeps the numbers from being those of other objects later.
            self._seen, self._held = seen, (notes, summaries)
            self._rows = [_row(self._studio, summary, notes) for summary in summaries]
        return self._rows


def _columns(rows):
    """A column for each figure that any run has, the usual ones first."""
    known = ("id", "run", "state", "iteration", "share", "begun", "type", "last", "tags", "note")
    figures = list(dict.fromkeys(key for row in rows for key in row if key not in known))
    first = [name.replace("/", " ") for name in _SHOWN_FIRST]
    figures.sort(key=lambda name: (first.index(name) if name in first else len(first), name))
    number = {"filter": "agNumberColumnFilter", "type": "rightAligned", ":valueFormatter": "p => p.value == null ? '' : Number(p.value).toPrecision(5)"}
    return [
        {"field": "run", "headerName": "run", "pinned": "left", "width": 260, "filter": "agTextColumnFilter",
         ":cellRenderer": _LINK},
        {"field": "state", "headerName": "state", "filter": "agTextColumnFilter", "width": 110},
        {"field": "iteration", "headerName": "iteration", "filter": "agNumberColumnFilter", "type": "rightAligned", "width": 110},
        {"field": "share", "headerName": "done", "width": 90, "type": "rightAligned",
         ":valueFormatter": "p => p.value == null ? '' : Math.round(100 * p.value) + '%'"},
        *({"field": name, "headerName": name, "width": 170, **number} for name in figures),
        {"field": "tags", "headerName": "tags", "filter": "agTextColumnFilter", "editable": True, "width": 130},
        {"field": "note", "headerName": "note", "filter": "agTextColumnFilter", "editable": True, "width": 200},
        {"field": "begun", "headerName": "begun (UTC)", "filter": "agTextColumnFilter", "width": 160},
        {"field": "last", "headerName": "newest line", "filter": "agTextColumnFilter", "width": 160},
        {"field": "type", "headerName": "type", "filter": "agTextColumnFilter", "width": 100}]


@page("/", "Runs", "show_chart", 1)
async def show(studio):
    table = _Table(studio)
    rows = await run.io_bound(table.rows)
    with ui.column() as empty:
        ui.label("No run yet").classes("title")
        ui.label("A training writes one with --run_dir, and caffe train FOLDER always. Make a model of photographs under Data.").classes("soft")
    empty.set_visibility(not rows)
    with ui.row().classes("items-center w-full"):
        search = ui.input(placeholder="Search").props('dense outlined clearable aria-label="Search all columns"')
        compare = ui.button("Compare").props("dense no-caps unelevated")
        compare.disable()
        chosen_label = ui.label("Select runs to compare them.").classes("soft")
    grid = ui.aggrid({
        "columnDefs": _columns(rows), "rowData": rows, "rowSelection": {"mode": "multiRow", "enableClickSelection": False},
        "selectionColumnDef": {"pinned": "left", "width": 44},
        "defaultColDef": {"sortable": True, "resizable": True, "floatingFilter": False}, ":getRowId": "p => p.data.id", ":onCellKeyDown": _KEY,
        **_TAB, "suppressFieldDotNotation": True, "animateRows": False, "ensureDomOrder": True},
        auto_size_columns=False).classes("w-full").style("height: max(24rem, 60vh)")
    comparison = ui.column().classes("w-full")
    search.on_value_change(lambda event: grid.run_grid_method("setGridOption", "quickFilterText", event.value or ""))

    async def chosen():
        return [row["id"] for row in await grid.get_selected_rows()]

    async def select():
        names = await chosen()
        compare.set_enabled(bool(names))
        chosen_label.text = f"{len(names)} selected" if names else "Select runs to compare them."

    async def note(event):
        row = event.args["data"]
        tags = [tag.strip() for tag in (row.get("tags") or "").split(",") if tag.strip()]
        await run.io_bound(studio.workspace.notes.set, row["id"], tags, row.get("note") or "")

    # Writing to grid.options would make the browser build the grid again, without its sorting and selection.
    sent = {"rows": rows, "columns": _columns(rows)}

    async def refresh():
        found = await run.io_bound(table.rows)
        if found is sent["rows"]:
            return
        empty.set_visibility(not found)
        columns, before = _columns(found), {row["id"]: row for row in sent["rows"]}
        if columns != sent["columns"]:
            grid.run_grid_method("setGridOption", "columnDefs", columns)
        if {row["id"] for row in found} != before.keys():
            grid.run_grid_method("setGridOption", "rowData", found)  # a transaction would show added rows twice
        elif changed := [row for row in found if row != before[row["id"]]]:
            grid.run_grid_method("applyTransaction", {"update": changed})
        sent.update(columns=columns, rows=found)

    async def show_comparison():
        await _compare(studio, comparison, await chosen())

    grid.on("selectionChanged", select)
    grid.on("cellValueChanged", note)
    compare.on_click(show_comparison)
    every(_EVERY, refresh)
    hidden = ui.element("div").style("display: none").props("aria-hidden=true")
    ui.timer(1, lambda: _load_charts(hidden), once=True)


def _load_charts(place):
    """Makes the browser load the library of charts, which a run's page needs at once."""
    with place:
        ui.echart({})


async def _compare(studio, place, names):
    """Curves of the runs in one chart for each figure, and the fields that differ."""
    place.clear()
    if not names:
        return
    with place, shown_here():
        runs = await run.io_bound(lambda: [studio.workspace.run(name) for name in names])
        fields = await run.io_bound(differences, [one.folder for one in runs])
        series = [one.series for one in runs]
        figures, count = charts.chosen(dict.fromkeys(figure for found in series for figure in found))
        figures.sort(key=lambda figure: figure not in _SHOWN_FIRST)
        ui.label("Differences").classes("title")
        if fields:
            columns = [{"name": "field", "label": "field", "field": "field", "align": "left", "sortable": True}]
            columns += [{"name": str(index), "label": name, "field": str(index), "align": "left"} for index, name in enumerate(names)]
            ui.table(columns=columns, rows=[{"field": field, **{str(index): value for index, value in enumerate(values)}} for field, values in fields.items()],
                     row_key="field", pagination=20).props("dense flat").classes("w-full")
        else:
            ui.label("Solver and net are the same.").classes("soft")
        if count > len(figures):
            ui.label(f"{len(figures)} of {count:,} figures are shown.").classes("soft")
        with ui.element("div").classes("charts"):
            for figure in figures:
                curves = [(name, *found[figure]) for name, found in zip(names, series) if figure in found]
                ui.echart(charts.options(figure, curves)).classes("chart")

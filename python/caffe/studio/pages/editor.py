"""The editor of a model's definitions, which completes what one types. A file is saved if the program can read it."""
import functools
import os

from nicegui import ui

from ... import Error
from .. import commands
from ..completion import script
from . import failure


def definitions(studio, folder):
    """An editor for each prototxt of a model."""
    for file in ("solver.prototxt", "train_val.prototxt", "deploy.prototxt"):
        path = folder / file
        if not path.exists():
            continue
        with ui.expansion(file, value=file == "train_val.prototxt").classes("w-full"):
            text = path.read_text(encoding="utf-8", errors="replace")
            editor = _editor(text, "SolverParameter" if file == "solver.prototxt" else "NetParameter")
            save = ui.button("Check and save").props("dense outline no-caps")
            message = ui.column().classes("w-full")
            save.on_click(functools.partial(_save, studio, path, editor, message, [text]))


def _editor(text, message):
    """An editor that completes fields, values and types of layers of a message."""
    def complete(event):
        if not event.focused or editor.id in completing:
            return
        completing.add(editor.id)
        ui.run_javascript(f"import('nicegui-codemirror').then((CM) => {script(message)}(getElement({editor.id}).editor, CM))")

    completing = set()
    editor = ui.codemirror(text, language="ProtoBuf", on_focus_change=complete).classes("w-full")
    return editor.style("max-height: 30rem")


async def _save(studio, path, editor, message, seen):
    """seen: [the text as it was read or saved last]"""
    message.clear()
    if path.read_text(encoding="utf-8", errors="replace") != seen[0]:
        with message:
            failure(f"{path.name} has changed on the disk since you opened it. Copy your changes, load the page again and repeat them there.")
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.prototxt")
    partial.write_text(editor.value, encoding="utf-8")
    words = ["--solver", partial.name] if path.name == "solver.prototxt" else [partial.name]
    try:
        text = await commands.answer(studio.program, "plan", *words, working=path.parent)
        os.replace(partial, path)
        seen[0] = editor.value
    except (Error, OSError) as error:
        partial.unlink(missing_ok=True)
        with message:
            failure(str(error).replace(partial.name, path.name))
        return
    with message:
        ui.label(f"Saved. {text.strip().splitlines()[-1] if text.strip() else ''}").classes("soft")

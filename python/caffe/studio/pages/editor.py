"""The editor of a model's definitions, which completes what one types. A file is saved if the program can read it."""
import functools
import os
import tempfile

from nicegui import run, ui

from ... import Error
from .. import commands
from ..completion import script
from ..texts import EditedText
from .errors import shown_here


def definitions(studio, folder):
    """An editor for each prototxt of a model."""
    for file in ("solver.prototxt", "train_val.prototxt", "deploy.prototxt"):
        path = folder / file
        if not path.is_file():
            continue
        with ui.expansion(file, value=file == "train_val.prototxt").classes("w-full"), shown_here():
            edited = EditedText(path)
            editor = _editor(edited.text, "SolverParameter" if file == "solver.prototxt" else "NetParameter")
            save = ui.button("Check and save").props("dense outline no-caps")
            message = ui.column().classes("w-full")
            save.on_click(functools.partial(_save, studio, edited, editor, message))


def _editor(text, message):
    """An editor that completes fields, values and types of layers of a message."""
    def complete(event):
        if not event.focused or editor.id in completing:
            return
        completing.add(editor.id)
        ui.run_javascript(f"import('nicegui-codemirror').then((CM) => {script(message)}(getElement({editor.id}).editor, CM))")

    completing = set()
    # R has the comments, strings and numbers of text format; ProtoBuf is the language of .proto files, where comments begin with //.
    editor = ui.codemirror(text, language="R", theme="vscodeLight", on_focus_change=complete).classes("w-full")
    return editor.style("max-height: 30rem")


async def _save(studio, edited, editor, message):
    message.clear()
    text = editor.value
    with message, shown_here():
        edited.require_same()  # before the check, which takes time, and again when it has passed
        plan = await _check(studio, edited, text)
        await run.io_bound(edited.save, text, studio.workspace.path("editor.lock"))
        ui.label(f"Saved. {plan.strip().splitlines()[-1] if plan.strip() else ''}").classes("soft")


async def _check(studio, edited, text):
    """The plan that the program makes of a text. Raises Error with its message, OSError."""
    folder, name = os.path.split(edited.path)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", suffix=".prototxt") as trial:  # its paths are relative to the folder
        trial.write(edited.bytes_of(text))
        trial.flush()
        partial = os.path.basename(trial.name)
        try:
            return await commands.answer(studio.program, "plan", *(["--solver", partial] if name == "solver.prototxt" else [partial]), working=folder)
        except Error as error:
            raise type(error)(str(error).replace(partial, name)) from None

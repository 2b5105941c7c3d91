#!/usr/bin/env python3
"""Writes examples/notebooks/*.ipynb: the .py files there, executed.

  scripts/notebooks.py [NAME...] [--check]

In a .py file `# %%` starts a cell of code and `# %% [markdown]` a cell of text. Cells run in a copy of the repository's
definitions, so the files that they write do not remain. --check writes nothing: it executes, and fails if a cell raises,
or if a notebook has other cells, or outputs of other kinds, than its .py file gives now. Needs the built package (found
as by python/find_caffe.py), matplotlib and Debian's python3-nbclient and python3-ipykernel.
"""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "notebooks"
TIMEOUT_SECONDS = 600


def read_cells(text):
    """A notebook without outputs, from the text of a .py file."""
    cells = []
    parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError("there is text before the first line '# %%'")
    for number, (kind, body) in enumerate(zip(parts[1::2], parts[2::2])):
        body = body.strip("\n")
        if kind.strip() == "[markdown]":
            cell = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.MULTILINE))
        else:
            cell = nbformat.v4.new_code_cell(body)
        cell["id"] = f"cell-{number}"  # the same each time
        cells.append(cell)
    return nbformat.v4.new_notebook(cells=cells, metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})


def tidy(outputs):
    """Removes what is not a result: messages of programs, and the kernel's splits of printed text."""
    tidied = []
    for output in outputs:
        if output.get("name") == "stderr":
            continue
        if "image/png" in output.get("data", {}):
            output.data.pop("text/plain", None)  # text with the figure's size
        if tidied and output.get("name") == "stdout" == tidied[-1].get("name"):
            tidied[-1].text += output.text
        else:
            tidied.append(output)
    return tidied


def execute(notebook):
    """Fills in the outputs. Raises nbclient's CellExecutionError."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "models", "scripts"):
            shutil.copytree(ROOT / name, pathlib.Path(folder, name),
                            ignore=shutil.ignore_patterns("*_lmdb*", "*_iter_*", "__pycache__"))
        nbclient.NotebookClient(notebook, timeout=TIMEOUT_SECONDS, kernel_name="python3",
                                resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time of execution
        if cell.cell_type == "code":
            cell.outputs = tidy(cell.outputs)
    notebook.metadata.pop("language_info", None)  # the version of this Python
    return notebook


def shape(notebook):
    """The parts that must stay equal: cells, and the kinds of their outputs (numbers and pixels may differ between processors)."""
    return [(cell.cell_type, cell.source, [(output.output_type, sorted(output.get("data", {})))
                                           for output in cell.get("outputs", [])]) for cell in notebook.cells]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="notebooks (default: all)")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    # The kernel looks for the package in the same places as this interpreter.
    sys.path.insert(0, str(ROOT / "python"))
    import find_caffe  # noqa: F401
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # silences the kernel's debugger
    os.environ["GLOG_minloglevel"] = "2"
    failures = []
    for source in sorted(FOLDER.glob("*.py")):
        if args.names and source.stem not in args.names:
            continue
        target = source.with_suffix(".ipynb")
        try:
            notebook = execute(read_cells(source.read_text(encoding="utf-8")))
        except (ValueError, nbclient.exceptions.CellExecutionError) as error:
            failures.append(f"{source.name}: {error}")
            continue
        if not args.check:
            nbformat.write(notebook, target)
            print(f"Wrote {target.relative_to(ROOT)}")
        elif not target.exists() or shape(nbformat.read(target, as_version=4)) != shape(notebook):
            failures.append(f"{target.name} is not what {source.name} gives: run scripts/notebooks.py {source.stem}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()

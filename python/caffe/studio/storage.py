"""Small files that several processes may change."""
import json
import os

from .._locks import locked
from .._output import write_whole


def read_json(file, default):
    """The content of a JSON file; `default` if there is none, or it is damaged."""
    try:
        with open(file, encoding="utf-8") as text:
            return json.load(text)
    except (OSError, ValueError, RecursionError):
        return default


def write_json(file, content):
    """Replaces a file as a whole, and makes its folder. Raises IoError."""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    write_whole(file, json.dumps(content, indent=1))


def end_of(file, most=65536):
    """The text at the end of a file, "" if it cannot be read. most: bytes."""
    try:
        with open(file, "rb") as content:
            size = content.seek(0, os.SEEK_END)
            content.seek(max(0, size - most))
            return content.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def note_in(notes, run):
    """{"tags": [...], "note": ...} of a run, from Notes.all()."""
    found = notes.get(run)
    return found if isinstance(found, dict) and {"tags", "note"} <= found.keys() else {"tags": [], "note": ""}


class Notes:
    """Tags and notes of runs, in a file of the workspace: run folders are not changed.

    {run: {"tags": [text], "note": text}}, runs by their paths in the workspace
    """

    def __init__(self, file):
        self._file = file
        self._stamp, self._content = None, {}

    def all(self):
        """All notes, the same dict as long as nothing changes."""
        try:
            stamp = os.stat(self._file).st_mtime_ns
        except OSError:
            stamp = 0
        if stamp != self._stamp:
            content = read_json(self._file, {})
            self._content = content if isinstance(content, dict) else {}
            self._stamp = stamp
        return self._content

    def of(self, run):
        """{"tags": [...], "note": ...} of a run."""
        return note_in(self.all(), run)

    def set(self, run, tags, note):
        os.makedirs(os.path.dirname(self._file), exist_ok=True)
        with locked(self._file + ".lock"):
            self._stamp = None
            content = {**self.all(), run: {"tags": list(tags), "note": note}}
            write_json(self._file, content)

"""Small files that several processes may change."""
import contextlib
import json
import os

from .. import InvalidArgument
from .._locks import locked
from .._output import write_whole


def read_json(file, default):
    """The content of a JSON file; `default` if there is none, or it is damaged."""
    try:
        with open(file, encoding="utf-8") as text:
            return json.load(text)
    except (OSError, ValueError, RecursionError):
        return default


def read_object(file):
    """The object in a JSON file; {} if there is none, or the file is damaged."""
    found = read_json(file, {})
    return found if isinstance(found, dict) else {}


def write_json(file, content):
    """Replaces a file as a whole, and makes its folder. Raises IoError, OSError."""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    write_whole(file, json.dumps(content, indent=1))


@contextlib.contextmanager
def changed_object(file):
    """Gives the object in a JSON file, {} if there is no file, and writes it back afterwards. Others wait meanwhile.

    Raises InvalidArgument for a damaged file: nothing else may have what is in it, so it is not replaced.
    """
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with locked(file + ".lock"):
        content = _strictly(file)
        yield content
        write_json(file, content)


def _strictly(file):
    wish = "fix the file, or move it away to begin with an empty one"
    try:
        with open(file, encoding="utf-8") as text:
            content = json.load(text)
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{file}:{error.lineno}:{error.colno}: {error.msg}; {wish}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{file}: {error}; {wish}") from None
    if not isinstance(content, dict):
        raise InvalidArgument(f"{file}: holds {type(content).__name__} instead of an object; {wish}")
    return content


def note_in(notes, run):
    """{"tags": [...], "note": ...} of a run, from Notes.all()."""
    found = notes.get(run)
    is_whole = isinstance(found, dict) and isinstance(found.get("tags"), list) and isinstance(found.get("note"), str)
    return {"tags": [str(tag) for tag in found["tags"]], "note": found["note"]} if is_whole else {"tags": [], "note": ""}


class Notes:
    """Tags and notes of runs, in a file of the workspace: run folders are not changed.

    {run: {"tags": [text], "note": text}}, runs by their paths in the workspace
    """

    def __init__(self, file):
        self._file = file
        self._stamp, self._content = None, {}

    def all(self):
        """All notes, the same dict as long as nothing changes. Those of a damaged file are not shown."""
        try:
            status = os.stat(self._file)
            stamp = (status.st_mtime_ns, status.st_ino)
        except OSError:
            stamp = ()
        if stamp != self._stamp:
            self._content = read_object(self._file)
            self._stamp = stamp
        return self._content

    def of(self, run):
        """{"tags": [...], "note": ...} of a run."""
        return note_in(self.all(), run)

    def set(self, run, tags, note):
        """Raises InvalidArgument if the file is damaged, IoError, OSError."""
        with changed_object(self._file) as content:
            content[run] = {"tags": list(tags), "note": note}

    def move(self, old, new):
        """Gives the notes of a folder, and of all runs in it, to another path. Raises as set()."""
        with changed_object(self._file) as content:
            for run in [run for run in content if run == old or run.startswith(old + "/")]:
                content[new + run[len(old):]] = content.pop(run)

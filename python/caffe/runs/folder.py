"""Finds run folders."""
import os

_DEEPEST = 6
_FILES = ("run.json", "metrics.jsonl")


def find_runs(root):
    """Folders at or below `root` that have a run.json or metrics.jsonl, sorted. Links to folders are not followed, hidden
    folders and those below a run are not visited, and neither is anything more than six folders down."""
    found, waiting = [], [(os.fspath(root), 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                names, folders = set(), []
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry)
                    elif entry.name in _FILES and entry.is_file():  # a pipe would never end
                        names.add(entry.name)
        except OSError:
            continue
        if names:
            found.append(folder)
        elif depth < _DEEPEST:
            waiting += [(entry.path, depth + 1) for entry in folders if not entry.name.startswith(".")]
    return sorted(found)

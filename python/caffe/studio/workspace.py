"""The folder that the studio shows."""
import glob
import os
import threading

from .. import InvalidArgument
from ..runs import Run, find_runs, summarize
from .messages import has_address
from .storage import Notes

STUDIO_FOLDER = ".cortado"  # in the workspace: notes, jobs, uploads


class Workspace:
    """A folder with runs, models and data sets, which is read again when it is asked. Methods are thread-safe.

    Files and folders whose names are not UTF-8 are left out: no address of a page can have them.

    Raises InvalidArgument if there is no such folder.
    """

    def __init__(self, root):
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise InvalidArgument(f"{root}: is not a folder; give the folder with your runs, models and photographs")
        self.notes = Notes(os.path.join(self.root, STUDIO_FOLDER, "notes.json"))
        self._lock = threading.Lock()
        self._summaries = {}  # (stamp, Summary) by folder
        self._runs = {}

    def path(self, *names):
        """A path of the studio's own files."""
        return os.path.join(self.root, STUDIO_FOLDER, *names)

    def relative(self, path):
        return os.path.relpath(path, self.root)

    def inside(self, name):
        """The absolute path of something in the workspace. Raises InvalidArgument for what is outside, also through links, for what
        is hidden, such as the studio's own files, and for names that no address can have."""
        if not has_address(name) or "\0" in name:
            raise InvalidArgument(f"{name!r}: is not a name for this page, which has to be UTF-8")
        path = os.path.realpath(os.path.join(self.root, name))
        if path != self.root and not path.startswith(self.root + os.sep):
            raise InvalidArgument(f"{name}: is outside of {self.root}")
        if any(part.startswith(".") for part in path[len(self.root):].split(os.sep)):
            raise InvalidArgument(f"{name}: is hidden; the studio shows no files whose path has a name that begins with a dot")
        return path

    def summaries(self):
        """A Summary of each run, by the time of its last line, the newest first."""
        with self._lock:
            folders = [folder for folder in find_runs(self.root) if has_address(self.relative(folder))]
            kept = {}
            for folder in folders:
                stamp = _stamp(folder)
                known = self._summaries.get(folder)
                # A run that seems to go on may have been killed, which changes none of its files.
                is_known = known is not None and known[0] == stamp and known[1].state != "running"
                kept[folder] = known if is_known else (stamp, summarize(folder))
            self._summaries = kept
            return sorted((summary for _, summary in kept.values()), key=lambda summary: -summary.time)

    def folders(self):
        """Names of the folders in the workspace that are not models, sorted."""
        models = set(self.models())
        return sorted(entry.name for entry in _folders(self.root) if entry.name not in models)

    def models(self):
        """Names of the models' folders, at most three folders down, sorted."""
        return self._holding("solver.prototxt", "deploy.prototxt")

    def weights(self):
        """Names of all files of weights in the models' folders."""
        return [self.relative(file) for name in self.models() for pattern in ("*.caffemodel", "snapshots/*.caffemodel")
                for file in files_like(os.path.join(self.root, name), pattern)]

    def sweeps(self):
        """Names of the sweeps' folders, at most three folders down, sorted."""
        return self._holding("sweep.json", "journal.log")

    def _holding(self, *files):
        """Names of the folders with all of these files in them, at most three folders down, sorted. What lies in a folder of one
        kind may be of another: a sweep lies in its model."""
        found, waiting = [], [(self.root, 0)]
        while waiting:
            folder, depth = waiting.pop()
            if all(os.path.exists(os.path.join(folder, file)) for file in files):
                found.append(self.relative(folder))
            elif depth < 3:
                waiting += [(entry.path, depth + 1) for entry in _folders(folder)]
        return sorted(found)

    def run(self, name):
        """The Run in a folder of the workspace, with what is written until now. Raises InvalidArgument for what is none."""
        folder = self.inside(name)
        if not any(os.path.exists(os.path.join(folder, file)) for file in ("run.json", "metrics.jsonl")):
            raise InvalidArgument(f"{name}: holds no run")
        with self._lock:
            run = self._runs.pop(folder, None) or Run(folder)
            self._runs[folder] = run  # the newest last
            while len(self._runs) > _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            run.refresh()
            return run


_MOST_RUNS = 30  # whose series are kept in memory


def files_like(folder, pattern):
    """Paths of the files in a folder with names of a pattern, sorted. Links to nothing and pipes are left out."""
    found = glob.glob(os.path.join(glob.escape(folder), pattern))
    return sorted(file for file in found if os.path.isfile(file) and has_address(os.path.basename(file)))


def _folders(folder):
    """Those in a folder that are not hidden, nor links."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and has_address(entry.name)]
    except OSError:
        return []


def _stamp(folder):
    stamps = []
    for name in ("metrics.jsonl", "run.json"):
        try:
            status = os.stat(os.path.join(folder, name))
            stamps.append((status.st_mtime_ns, status.st_size))
        except OSError:
            stamps.append(None)
    return stamps

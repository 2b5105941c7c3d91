"""Takes folders out of the workspace, so that they can be put back."""
import os

from .. import InvalidArgument, IoError
from .._locks import locked
from ..runs import find_runs, summarize


def remove(workspace, jobs, name):
    """Moves a folder of the workspace to the studio's own folder, and its runs' notes with it. Returns its new path, relative to
    the workspace.

    Raises InvalidArgument if a training in it goes on, or a job that is not done needs it.
    """
    folder = workspace.inside(name)
    if folder == workspace.root or not os.path.isdir(folder):
        raise InvalidArgument(f"{name}: there is no such folder")
    for run in find_runs(folder):
        if summarize(run).state == "running":
            raise InvalidArgument(f"{name}: the training {workspace.relative(run)} goes on; stop it first")
    for job, state in jobs.all():
        if state in ("queued", "running", "paused") and _needs(job, folder):
            raise InvalidArgument(f"{name}: job {job.id} ({job.title}) is {state} and needs it; cancel the job first")
    place = workspace.path("removed")
    os.makedirs(place, exist_ok=True)
    with locked(place + ".lock"):
        number = max((int(entry) for entry in os.listdir(place) if entry.isdigit()), default=0) + 1
        target = os.path.join(place, str(number), os.path.basename(folder))
        names = workspace.relative(folder), workspace.relative(target)
        workspace.notes.move(*names)
        try:
            os.mkdir(os.path.dirname(target))
            os.rename(folder, target)
        except OSError as error:
            workspace.notes.move(*reversed(names))
            raise IoError(f"{name}: cannot be moved to {names[1]}: {error.strerror}") from None
    return names[1]


def _needs(job, folder):
    """True if a job works in a folder or has a path in it as an argument."""
    values = [word.partition("=")[2] if word.startswith("-") else word for word in job.words[1:]]
    paths = [job.working, *(os.path.join(job.working, value) for value in values if value)]
    return any(path == folder or path.startswith(folder + os.sep) for path in map(os.path.realpath, paths))

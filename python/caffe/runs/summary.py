"""Reads the newest figures of a run, without reading whole files."""
import dataclasses
import os

from .run import DAMAGED, Run, figures_of, parsed, stop_iteration_of

_TAIL = 1 << 16  # bytes at the end of metrics.jsonl that are read first
_LINES = 4  # whole lines, for which more bytes are read: a net with wide outputs has long ones
_MOST = 1 << 26  # bytes


@dataclasses.dataclass
class Summary:
    """The newest figures of a run.

    figures: by the names that Run.series has, from the end of metrics.jsonl
    """
    folder: str
    name: str
    state: str
    session: dict
    iteration: int = 0
    time: float = 0.0
    figures: dict = dataclasses.field(default_factory=dict)

    @property
    def stop_iteration(self):
        """Where the training is to end, 0 if that is unknown."""
        return stop_iteration_of(self.session)

    @property
    def share(self):
        """How much of the training is done, from 0 to 1; None if that is unknown."""
        return min(1.0, self.iteration / self.stop_iteration) if self.stop_iteration else None


def _tail(file):
    """Whole lines at the end of a file, the newest last."""
    try:
        with open(file, "rb") as content:
            size, length = content.seek(0, os.SEEK_END), _TAIL
            while True:
                content.seek(max(0, size - length))
                lines = content.read(length).split(b"\n")
                whole = lines[0 if size <= length else 1:-1]
                if len(whole) >= _LINES or length >= min(size, _MOST):
                    return whole
                length *= 4
    except OSError:
        return []


def summarize(folder):
    """The Summary of a run folder. Damaged lines are skipped."""
    run = Run(folder)
    found = Summary(run.folder, run.name, run.state, run.session)
    seen = set()
    for line in reversed(_tail(os.path.join(folder, "metrics.jsonl"))):
        try:
            kind, step, time, keys = parsed(line)
            figures = figures_of(keys) if kind in ("train", "test") and kind not in seen else None
        except DAMAGED:
            continue
        if not found.time:
            found.iteration, found.time = step, time
        if figures is not None:
            seen.add(kind)
            found.figures.update({f"{kind}/{name}": number for name, number in figures.items()})
        if len(seen) == 2:
            break
    return found

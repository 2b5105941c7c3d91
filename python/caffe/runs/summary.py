"""Reads the newest figures of a run, without reading whole files."""
import dataclasses
import os

from .run import Run, figures_of, loads

_TAIL = 1 << 16  # bytes at the end of metrics.jsonl, which hold the newest lines


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
        value = self.session.get("stop_iteration")
        return value if isinstance(value, int) else 0

    @property
    def share(self):
        """How much of the training is done, from 0 to 1; None if that is unknown."""
        return min(1.0, self.iteration / self.stop_iteration) if self.stop_iteration else None


def _tail(file):
    """Whole lines at the end of a file, the newest last."""
    try:
        with open(file, "rb") as content:
            size = content.seek(0, os.SEEK_END)
            content.seek(max(0, size - _TAIL))
            lines = content.read(_TAIL).split(b"\n")
    except OSError:
        return []
    return lines[0 if size <= _TAIL else 1:-1]


def summarize(folder):
    """The Summary of a run folder. Damaged lines are skipped."""
    run = Run(folder)
    found = Summary(run.folder, run.name, run.state, run.session)
    seen = set()
    for line in reversed(_tail(os.path.join(folder, "metrics.jsonl"))):
        try:
            event = loads(line)
            kind, step, time = event["event"], int(event["iteration"]), float(event["time"])
            if not found.time:
                found.iteration, found.time = step, time
            if kind not in ("train", "test") or kind in seen:
                continue
            seen.add(kind)
            found.figures.update({f"{kind}/{name}": number for name, number in figures_of(event).items()})
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
        if len(seen) == 2:
            break
    return found

"""One run folder."""
import json
import math
import os
import stat

try:  # three times as fast
    from orjson import loads
except ImportError:
    from json import loads

from .._counted import counted
from .lines import GrowingLines
from .processes import is_alive
from .series import Phase

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LARGEST = 16 << 20  # of run.json
# Keys of a line that are not figures.
_OTHERS = {"event", "time", "iteration", "outputs", "net"}


def parsed(line):
    """(event, iteration, time, all keys) of a line of metrics.jsonl. Raises one of DAMAGED."""
    keys = loads(line)
    event, step, time = keys["event"], int(keys["iteration"]), float(keys["time"])
    if not 0 <= step <= _LAST_ITERATION or not 0 <= time <= _LAST_TIME:  # also NaN
        raise ValueError(f"iteration {step} or time {time}")
    return event, step, time, keys


DAMAGED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
_LAST_ITERATION = 1 << 53  # above, browsers round
_LAST_TIME = 1 << 36  # seconds since 1970, within the dates that Python knows


def stop_iteration_of(session):
    """Where a session is to end, 0 if that is unknown."""
    value = session.get("stop_iteration")
    return value if isinstance(value, int) and 0 < value <= _LAST_ITERATION else 0


def number_of(value):
    """A float, or None for what is none."""
    if isinstance(value, str):
        return _NOT_FINITE.get(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def figures_of(line):
    """{name: number} of a line and its outputs, which come before figures of the same name."""
    merged = {**line, **line.get("outputs", {})}
    figures = {name: value for name, value in merged.items() if type(value) is float}  # pylint: disable=unidiomatic-typecheck  # most are
    figures.pop("time", None)
    for name in merged.keys() - figures.keys() - _OTHERS:
        number = number_of(merged[name])
        if number is not None:
            figures[name] = number
    return figures


class Run:
    """A run folder, as far as it could be read.

    series: Series by name: train/loss, train/learning_rate, train/NAME and test/NAME for outputs, as in TensorBoard; with
        several test nets test0/NAME, test1/NAME
    snapshots: (iteration, file) of each snapshot
    problems: what could not be read, in words
    """

    def __init__(self, folder):
        self.folder = os.fspath(folder)
        self.name = os.path.basename(os.path.abspath(self.folder))
        self._lines = GrowingLines(os.path.join(self.folder, "metrics.jsonl"))
        self._sessions, self._stamp = [], None
        self._clear()

    def _clear(self):
        self._phases, self.snapshots, self._damaged = {}, [], 0
        self._end = None
        self.iteration, self.time = 0, None

    @property
    def series(self):
        """Series by name, as the class says. A figure that is void has none."""
        return {f"{name}/{figure}": series for name, phase in self._phases.items() for figure, series in phase.series.items() if len(series)}

    @property
    def problems(self):
        found = [f"{counted(self._damaged, 'line')} of metrics.jsonl cannot be read"] if self._damaged else []
        return found + ([self._trouble] if self._trouble else [])

    @property
    def sessions(self):
        """Those of run.json (docs/runs.md), dicts, the oldest first. A resumed run has several."""
        self._read_sessions()
        return self._sessions

    @property
    def session(self):
        """The newest session, {} before there is one."""
        return self.sessions[-1] if self.sessions else {}

    @property
    def stop_iteration(self):
        """Where the newest session is to end, 0 if that is unknown."""
        return stop_iteration_of(self.session)

    @property
    def state(self):
        """"running", "killed", or why it has ended: "finished", "stopped", "early stopping", "failed"; "unknown" without a run.json."""
        session = self.session
        reason = session.get("reason") or (not session and self._end and self._end.get("reason"))
        if reason:
            return str(reason)
        if not session:
            return "unknown"
        return "running" if is_alive(session) else "killed"

    _trouble = ""

    def _read_sessions(self):
        file = os.path.join(self.folder, "run.json")
        try:
            status = os.stat(file)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp == self._stamp:
                return
            if not stat.S_ISREG(status.st_mode):  # a pipe would never end
                raise ValueError("it is not a file")
            if status.st_size > _LARGEST:
                raise ValueError("it is too large")
            with open(file, encoding="utf-8") as text:
                sessions = json.load(text)["sessions"]
            if not isinstance(sessions, list) or not all(isinstance(session, dict) for session in sessions):
                raise ValueError("'sessions' is not a list of objects")
            json.dumps(sessions, ensure_ascii=False).encode()  # texts that are not Unicode cannot be shown
        except FileNotFoundError:
            self._sessions, self._stamp = [], None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            self._trouble = f"run.json cannot be read: {error}"
        else:
            self._sessions, self._stamp, self._trouble = sessions, stamp, ""

    def refresh(self):
        """Reads what was added. Returns true if anything was. A line that is damaged or of an unknown kind is skipped."""
        changed = False
        for line in self._lines.next():
            if not changed and self._lines.restarted:
                self._clear()
            changed = True
            if not line.strip():
                continue
            try:
                self._take(*parsed(line))
            except DAMAGED:
                self._damaged += 1
        if not changed and self._lines.restarted:
            self._clear()
            return True
        return changed

    def _take(self, event, step, time, line):
        if event == "start":
            self._void(step)
        elif event == "train":
            self._add("train", line, step, time)
        elif event == "test":
            self._add(self._phase(int(line.get("net", 0))), line, step, time)
        elif event == "snapshot":
            self.snapshots.append((step, str(line["file"])))
        self._end = line if event == "end" else None
        self.iteration, self.time = step, time

    def _phase(self, net):
        """test for a single net. When the second one appears, the figures of the first get another name."""
        if net and "test" in self._phases:
            self._phases["test0"] = self._phases.pop("test")
        return f"test{net}" if net or "test0" in self._phases else "test"

    def _void(self, step):
        """A resumed run repeats the iterations from `step` on."""
        for phase in self._phases.values():
            phase.cut(step)
        self.snapshots = [snapshot for snapshot in self.snapshots if snapshot[0] <= step]

    def _add(self, phase, line, step, time):
        self._phases.setdefault(phase, Phase()).add(step, time, figures_of(line))

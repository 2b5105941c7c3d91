"""Trains one trial."""
import ctypes
import os
import shutil
import signal
import subprocess

from .._log_ends import end_of, last_words
from ..runs import Run

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_LOOKS_EVERY = 0.01  # seconds; a trial that has fallen back trains on for at most this long
_LOG_SHOWN = 4000  # bytes
_LIBC = ctypes.CDLL(None)


class Training:
    """A `caffe train` in a trial's folder, which it begins or resumes.

    command: words before the options of the trial
    folder: of the trial: log.txt, run, snapshots
    working: working folder of the command
    values: by field
    lock: descriptor that the training inherits, so that it is locked until the training ends, whatever becomes of this process
    cores: numbers of the processor cores to run on, or none for all
    """

    def __init__(self, command, folder, working, values, lock, cores=()):
        self.folder = folder
        self.run = Run(os.path.join(folder, "run"))
        os.makedirs(os.path.join(folder, "snapshots"), exist_ok=True)
        self._forget_unresumable()
        words = [*command, "--run_dir", self.run.folder, "--auto_resume", "--set", f"snapshot_prefix={folder}/snapshots/trial"]
        for field, value in values.items():
            words += ["--set", f"{field}={value}"]
        environment = dict(os.environ, **({"OMP_NUM_THREADS": str(len(cores))} if cores else {}))
        with open(os.path.join(folder, "log.txt"), "ab") as log:
            self._process = subprocess.Popen(words, cwd=working, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                             pass_fds=(lock,), start_new_session=True, preexec_fn=lambda: _prepare(cores))

    def _forget_unresumable(self):
        """A training that was killed before its first snapshot begins from the start, with a new run folder."""
        if not any(name.endswith((".solverstate", ".solverstate.h5")) for name in os.listdir(os.path.join(self.folder, "snapshots"))):
            shutil.rmtree(self.run.folder, ignore_errors=True)

    def tests(self, series, stop):
        """Yields (iteration, value) of each test, as they come, until the training ends. `series`: names of the metric; the run has
        one of them. `stop`: an Event that ends the training early."""
        seen = -1
        while True:
            ended = self._process.poll() is not None
            self.run.refresh()
            steps, values = next(((*self.run.series[name],) for name in series if name in self.run.series), ((), ()))
            for step, value in zip(steps, values):
                if step > seen:
                    seen = int(step)
                    yield seen, float(value)
            if ended:
                return
            if stop.wait(_LOOKS_EVERY):
                self.end()

    def end(self):
        """Ends the training after its iteration, with a snapshot, and waits for it. Then `run` has all that it has recorded."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self.run.refresh()

    @property
    def status(self):
        """The exit status, once the training has ended."""
        return self._process.returncode

    @property
    def killed_by(self):
        """The name of the signal that has ended the training, such as SIGKILL; "" if none has."""
        return signal.Signals(-self.status).name if self.status is not None and self.status < 0 else ""

    def last_words(self):
        """The last line of the log that says something."""
        return last_words(end_of(os.path.join(self.folder, "log.txt"), _LOG_SHOWN)) or f"status {self.status}"


def _prepare(cores):
    """In the new process: it ends with this one, and runs on the cores that it may."""
    _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
    if cores:
        os.sched_setaffinity(0, cores)


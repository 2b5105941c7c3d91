"""A queue of commands on this machine, which outlives the studio.

Each job is a folder: job.json (what to run), log.txt, and while it runs process.json and `lock`. The studio that starts a job takes
the lock and hands it to the keeper, a process that waits for the command, and to the command. They share the lock, which is held
until the last of them ends: a job runs exactly as long as its lock is held, for every studio, also if its keeper is killed.
"""
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from .. import InvalidArgument
from .._locks import is_locked, locked, open_lock, wait_for_lock
from .._log_ends import end_of, last_words
from .storage import read_json, read_object, write_json

_STOPPING = (signal.SIGINT, signal.SIGHUP)
_BEGIN_OF_LOG = "$ "  # of the line with the command, which each run of a job writes first


@dataclasses.dataclass
class Job:
    """A command. kind: "train", "evaluate" ..., title: for people, words: argv, working: its folder, result: a path in the
    workspace that is worth opening afterwards. order: the lowest runs first. wish: "", "pause" or "cancel"."""
    id: str
    kind: str
    title: str
    words: list
    working: str
    result: str = ""
    order: float = 0.0
    wish: str = ""
    made: float = 0.0
    resume: list = dataclasses.field(default_factory=list)  # words to add when a paused job goes on
    runs: int = 0  # how often it was started
    waits: bool = True  # in the queue
    after: str = ""  # id of a job that has to be done before


class Jobs:
    """The jobs in a folder. One process runs them, others only see them.

    folder: of the jobs
    slots: jobs that run at a time
    """

    def __init__(self, folder, slots=1):
        self.folder, self.slots = folder, slots
        os.makedirs(folder, exist_ok=True)
        self._lock = threading.Lock()
        self._children = []  # keepers, whose ends have to be read

    # Reading

    def all(self):
        """(Job, state) of each, in the order in which they run. States: "queued", "running", "paused", "done", "failed", "cancelled".
        Those that get() refuses are left out."""
        found = []
        for name in os.listdir(self.folder):
            try:
                job = self.get(name)
            except InvalidArgument:
                continue
            found.append((job, self.state(job)))
        return sorted(found, key=lambda pair: (pair[0].order, pair[0].id))

    def get(self, identity):
        """A Job. Raises InvalidArgument for an unknown one, and for one whose file is damaged or of a newer version."""
        if not _is_number(identity):
            raise InvalidArgument(f"'{identity}' is not a job")
        content = read_json(self._path(identity, "job.json"), None)
        if content is None:
            raise InvalidArgument(f"there is no job {identity}")
        job = _job(content)
        if job is None or job.id != identity:
            raise InvalidArgument(f"job {identity}: {self._path(identity, 'job.json')} is damaged, or of a newer version; remove its folder "
                                  "or start the newer version")
        return job

    def state(self, job):
        """The state of a job, as all() lists them."""
        if self._is_running(job.id):
            return "running"
        if job.wish:
            return "paused" if job.wish == "pause" else "cancelled"
        if job.waits:
            return "cancelled" if job.after and self._is_lost(job.after) else "queued"
        return "done" if self.status(job) == 0 else "failed"

    def _is_lost(self, identity):
        """True if a job will not be done, unless somebody lets it go on."""
        try:
            return self.state(self.get(identity)) in ("failed", "cancelled")
        except InvalidArgument:
            return True

    def _may_start(self, job):
        return not job.after or self.state(self.get(job.after)) == "done"

    def status(self, job):
        """Exit status of the newest run, None while it runs or if its process was killed."""
        found = read_object(self._path(job.id, "status.json"))
        return found.get("status") if found.get("run") == job.runs else None

    def reason(self, job):
        """Says why a job has failed: what has killed it, or else the last line of its log."""
        status = self.status(job)
        if status is None:
            return "killed, with the process that waited for it"
        if status < 0:
            return f"killed by {signal.Signals(-status).name}; see whether the system has run out of memory"
        words = last_words(self.log(job))
        return words if words and not words.startswith(_BEGIN_OF_LOG) else f"ended with status {status}; its log does not say why"

    def log(self, job):
        """The end of a job's log."""
        return end_of(self._path(job.id, "log.txt"))

    def _path(self, *names):
        return os.path.join(self.folder, *names)

    def _is_running(self, identity):
        return is_locked(self._path(identity, "lock"))

    # For users

    def add(self, kind, title, words, working, result="", resume=(), after=""):
        """Queues a command. Returns its Job. after: id of a job that has to be done before. Raises IoError, OSError; then there is no
        job."""
        with locked(self._path("queue.lock")):
            numbers = [int(name) for name in os.listdir(self.folder) if name.isdigit()]
            number = max(numbers, default=0) + 1
            job = Job(f"{number:04}", kind, title, list(words), working, result, float(number), "", time.time(), list(resume), after=after)
            os.makedirs(self._path(job.id))
            try:
                self._write(job)
            except BaseException:
                shutil.rmtree(self._path(job.id), ignore_errors=True)
                raise
        return job

    def _write(self, job):
        write_json(self._path(job.id, "job.json"), dataclasses.asdict(job))

    def change(self, identity, **fields):
        """Sets fields of a job."""
        with locked(self._path("queue.lock")):
            job = dataclasses.replace(self.get(identity), **fields)
            self._write(job)
        return job

    def stop(self, identity, wish):
        """Ends a job, or takes it from the queue. wish: "pause", after which it may go on, or "cancel". Trainings, also those of a
        sweep, stop after their iteration, with a snapshot."""
        self.change(identity, wish=wish)
        self.signal(identity, signal.SIGINT)

    def go_on(self, identity):
        """Queues a job that was paused, cancelled or has failed; a training resumes from its snapshot, a sweep with its
        interrupted trials."""
        job = self.get(identity)
        words = [word for word in job.resume if word not in job.words]
        self.change(identity, wish="", waits=True, words=[*job.words, *words])

    def signal(self, identity, number):
        """Sends a signal to a job that runs. Returns false if it does not."""
        if number not in _STOPPING:
            raise ValueError(f"signal {number}")
        if not self._is_running(identity):
            return False
        process = read_object(self._path(identity, "process.json")).get("process")
        if not isinstance(process, int) or not _holds(process, self._path(identity, "lock")):
            return False  # it has ended, and its number may be another's
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return False
        return True

    # For the studio

    def start_next(self):
        """Starts jobs as long as there are free slots. Returns those that were started. Call it often. Raises IoError, OSError; the jobs
        that were not started stay in the queue."""
        with self._lock, locked(self._path("queue.lock")):
            self._children = [child for child in self._children if child.poll() is None]
            jobs = self.all()
            free = self.slots - sum(state == "running" for _, state in jobs)
            started = []
            for job, state in jobs:
                if free < 1:
                    break
                if state == "queued" and self._may_start(job):
                    self._start(job)
                    started.append(job)
                    free -= 1
            return started

    def _start(self, job):
        lock = open_lock(self._path(job.id, "lock"))
        try:
            wait_for_lock(lock)  # for a moment, if somebody looks just now: only callers of start_next() hold it, and they exclude each other
            self._write(dataclasses.replace(job, runs=job.runs + 1, waits=False))
            keeper = [sys.executable, "-c", _KEEPER, self._path(job.id), str(job.runs + 1), str(lock)]
            try:
                self._children.append(subprocess.Popen(keeper, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                                       start_new_session=True, pass_fds=(lock,), env={**os.environ, "PYTHON": sys.executable}))
            except OSError:
                self._write(job)  # it stays in the queue
                raise
        finally:
            os.close(lock)


def done_since(found):
    """{id: Job} of jobs that did not end well, with the later Job that is done and did the same: it has the same title, resumed a run of
    the same model, or completed the same sweep. found: what Jobs.all() returns."""
    done, since = {}, {}
    for job, state in reversed(found):
        work = job.result if job.kind == "sweep" else job.title
        if state == "done":
            done[work] = done[work.partition("/runs/")[0]] = job
        elif work in done:
            since[job.id] = done[work]
    return since


def _job(content):
    """The Job that job.json holds, or None if that is damaged, or of a newer version."""
    try:
        job = Job(**content)
    except TypeError:
        return None
    is_sound = all(isinstance(getattr(job, field.name), (int, float) if field.type is float else field.type) for field in dataclasses.fields(Job))
    if not is_sound or not job.words or not all(isinstance(word, str) for word in (*job.words, *job.resume)):
        return None
    is_later = not job.after or _is_number(job.after) and _is_number(job.id) and int(job.after) < int(job.id)
    return job if is_later else None  # jobs that wait for each other cannot be asked for their states


def _is_number(identity):
    """True if a text is the id of a job."""
    return re.fullmatch(r"[0-9]{4,}", identity) is not None


def _holds(process, file):
    """True if a process has a file open."""
    folder = f"/proc/{process}/fd"
    try:
        return any(os.path.samefile(os.path.join(folder, number), file) for number in os.listdir(folder))
    except OSError:
        return False


# The process that waits for a job's command and writes the exit status. It has the job's lock, as its command has. It needs no
# package, so it starts at once and works if the studio's files change meanwhile.
_KEEPER = r"""
import json, os, signal, subprocess, sys
folder, run, lock = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def write(name, content):
    partial = os.path.join(folder, name + ".partial")
    with open(partial, "w") as file:
        json.dump(content, file)
    os.replace(partial, os.path.join(folder, name))
with open(os.path.join(folder, "job.json")) as file:
    job = json.load(file)
with open(os.path.join(folder, "log.txt"), "ab") as log:
    log.write(("$ " + " ".join(job["words"]) + "\n").encode("utf-8", "replace"))
    log.flush()
    def default():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        child = subprocess.Popen(job["words"], cwd=job["working"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=default,
                                 pass_fds=(lock,))
    except OSError as error:
        log.write(f"cannot start: {error}\n".encode())
        status = 127
    else:
        try:
            write("process.json", {"process": child.pid})
        except OSError:  # a full disk; nobody could stop the command
            child.send_signal(signal.SIGINT)
        with open(os.path.join(folder, "job.json")) as file:
            if json.load(file)["wish"]:  # somebody has stopped it, and did not find the number of its process
                child.send_signal(signal.SIGINT)
        status = child.wait()
write("status.json", {"run": run, "status": status})
"""

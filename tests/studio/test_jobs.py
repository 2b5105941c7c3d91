"""The files of the queue, also damaged ones, and on a full disk. Jobs that run are in tests/timing/test_studio_jobs.py."""
import asyncio
import json
import os
import subprocess

import pytest

import caffe
from caffe.studio import server, storage
from caffe.studio.jobs import Job, Jobs, done_since

FULL = caffe.IoError("job.json: cannot be written: No space left on device")


def refuse(*_values, **_names):
    raise FULL


@pytest.fixture
def jobs(tmp_path):
    return Jobs(str(tmp_path / "jobs"))


def add(jobs, **more):
    return jobs.add("train", "a", ["true"], "/", **more)


def damage(jobs, job, content):
    with open(os.path.join(jobs.folder, job.id, "job.json"), "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize("change", [
    "[]", "{", "7", "null", {"newer": 1}, {"order": "first"}, {"words": "true"}, {"words": []}, {"words": [7]}, {"id": "0009"}, {"wish": None},
    {"after": "0001"}, {"after": "0002"}, {"after": "x"}])
def test_a_damaged_job_stops_no_other(jobs, change):
    bad, good = add(jobs), add(jobs)
    after = add(jobs, after=bad.id)
    content = change if isinstance(change, str) else {**vars(bad), **change}
    damage(jobs, bad, content)
    assert [(job.id, state) for job, state in jobs.all()] == [(good.id, "queued"), (after.id, "cancelled")]
    with pytest.raises(caffe.InvalidArgument, match="job 0001|there is no job"):
        jobs.get(bad.id)


@pytest.mark.parametrize("name", ["status.json", "process.json"])
def test_a_damaged_file_of_a_process(jobs, name):
    job = add(jobs)
    jobs.change(job.id, waits=False, runs=1)
    with open(os.path.join(jobs.folder, job.id, name), "w", encoding="utf-8") as file:
        file.write("[1]")
    assert [state for _, state in jobs.all()] == ["failed"]
    jobs.stop(job.id, "cancel")


@pytest.mark.parametrize("status, reason", [
    (-9, "killed by SIGKILL; see whether the system has run out of memory"), (None, "killed, with the process that waited for it"),
    (1, "caffe train: a.prototxt:7:1: no such field"), (2, "ended with status 2; its log does not say why")])
def test_a_job_that_has_failed_says_why(jobs, status, reason):
    """Also if an earlier run of the job has said something else."""
    job = jobs.change(add(jobs).id, waits=False, runs=1)
    with open(os.path.join(jobs.folder, job.id, "log.txt"), "w", encoding="utf-8") as file:
        file.write("$ true\nearlier\n$ true\n")
        if status != 2:
            file.write("E1130 01:14:57.106088  5246 final_error.hpp:18] caffe train: a.prototxt:7:1: no such field\n  bla: 3\n  ^\n\n")
    if status is not None:
        with open(os.path.join(jobs.folder, job.id, "status.json"), "w", encoding="utf-8") as file:
            json.dump({"run": 1, "status": status}, file)
    assert jobs.state(job) == "failed" and jobs.reason(job) == reason


def test_jobs_whose_work_a_later_one_has_done():
    titles = [("train a", "done"), ("train a", "failed"), ("train b", "paused"), ("train c", "failed"), ("train a", "done"), ("train b/runs/1", "done"),
              ("train a", "cancelled"), ("train c", "failed"), ("train c/d", "done")]
    found = [(Job(f"{number:04}", "train", title, ["true"], "/"), state) for number, (title, state) in enumerate(titles)]
    found += [(Job(f"{number:04}", "sweep", title, ["true"], "/", "/sweeps/a"), state) for number, title, state in (
        (9, "sweep of a", "cancelled"), (10, "sweep a", "done"), (11, "sweep a", "failed"))]
    assert {identity: job.id for identity, job in done_since(found).items()} == {"0001": "0004", "0002": "0005", "0009": "0010"}


def test_a_job_that_cannot_be_written_leaves_nothing(jobs, monkeypatch):
    monkeypatch.setattr(storage, "write_whole", refuse)
    with pytest.raises(caffe.IoError, match="No space left"):
        add(jobs)
    assert os.listdir(jobs.folder) == ["queue.lock"]


def test_a_job_that_cannot_start_stays_in_the_queue(jobs, monkeypatch):
    job = add(jobs)
    for place, name, error in ((storage, "write_whole", FULL), (subprocess, "Popen", OSError(11, "Resource temporarily unavailable"))):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, lambda *_, error=error, **__: (_ for _ in ()).throw(error))
            with pytest.raises((caffe.IoError, OSError)):
                jobs.start_next()
        assert [state for _, state in jobs.all()] == ["queued"] and jobs.get(job.id).runs == 0


def test_the_queue_survives_a_full_disk(jobs, tmp_path, monkeypatch, caplog):
    """Errors of several kinds in turn: each is logged once, and the queue goes on after it."""
    studio = server.Studio(server.Workspace(tmp_path), jobs, "caffe")
    errors, told = [FULL, FULL, RuntimeError("defect"), None], []

    def start_next():
        told.append(studio.trouble)
        if not errors:
            raise asyncio.CancelledError
        error = errors.pop(0)
        if error:
            raise error

    monkeypatch.setattr(jobs, "start_next", start_next)
    monkeypatch.setattr(server, "_LOOKS_EVERY", 0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(server._run_jobs(studio))
    assert told == ["", str(FULL), str(FULL), "The studio has a defect (RuntimeError: defect). Its log says more; please report it.", ""]
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [told[1], told[3]]

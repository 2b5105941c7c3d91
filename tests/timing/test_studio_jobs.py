"""The studio's queue: jobs outlive the studio, stop with signals, and wait for each other."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("nicegui")

import caffe  # noqa: E402
from caffe.studio.jobs import Jobs  # noqa: E402

# Writes a line, then waits until a file is there; ends with status 3 after SIGINT.
WAITS = """
import os, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (print("stopped", flush=True), sys.exit(3)))
print("begun", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print("ended", flush=True)
"""


def wait_for(condition, limit=300):
    """Returns when it is true; the limit only ends a test that hangs."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it does not become true"
        time.sleep(0.02)


@pytest.fixture
def jobs(tmp_path):
    return Jobs(str(tmp_path / "jobs"))


def add(jobs, tmp_path, name, **more):
    return jobs.add("train", name, [sys.executable, "-c", WAITS, str(tmp_path / f"go{name}")], str(tmp_path), **more)


def states(jobs):
    return [state for _, state in jobs.all()]


def text_of(file):
    return file.read_text(encoding="utf-8") if file.exists() else ""


def run_all(jobs):
    wait_for(lambda: not jobs.start_next() and "running" not in states(jobs))


def test_one_after_the_other(jobs, tmp_path):
    first, second = (add(jobs, tmp_path, name) for name in "ab")
    assert states(jobs) == ["queued", "queued"]
    assert [job.id for job in jobs.start_next()] == [first.id]
    wait_for(lambda: "begun" in jobs.log(first))
    assert jobs.start_next() == [] and states(jobs) == ["running", "queued"]
    for name in "ab":
        (tmp_path / f"go{name}").touch()
    run_all(jobs)
    assert states(jobs) == ["done", "done"] and "ended" in jobs.log(second)


def test_several_at_a_time(tmp_path):
    jobs = Jobs(str(tmp_path / "jobs"), slots=2)
    for name in "abc":
        add(jobs, tmp_path, name)
    assert len(jobs.start_next()) == 2 and states(jobs) == ["running", "running", "queued"]
    for name in "abc":
        (tmp_path / f"go{name}").touch()
    run_all(jobs)
    assert states(jobs) == ["done"] * 3


def test_what_fails(jobs, tmp_path):
    bad = jobs.add("train", "bad", [sys.executable, "-c", "print('no good'); raise SystemExit(7)"], str(tmp_path))
    missing = jobs.add("train", "missing", [str(tmp_path / "missing")], str(tmp_path))
    after = jobs.add("evaluate", "after", ["true"], str(tmp_path), after=bad.id)
    run_all(jobs)
    assert states(jobs) == ["failed", "failed", "cancelled"]
    assert jobs.status(jobs.get(bad.id)) == 7 and "no good" in jobs.log(bad) and "cannot start" in jobs.log(missing)
    assert not jobs.log(after)


def test_a_job_waits_for_another(tmp_path):
    jobs = Jobs(str(tmp_path / "jobs"), slots=3)
    first = add(jobs, tmp_path, "a")
    jobs.add("evaluate", "after", ["true"], str(tmp_path), after=first.id)
    jobs.start_next()
    assert jobs.start_next() == [] and states(jobs) == ["running", "queued"]
    (tmp_path / "goa").touch()
    run_all(jobs)
    assert states(jobs) == ["done", "done"]


def test_pause_and_go_on(jobs, tmp_path):
    job = add(jobs, tmp_path, "a", resume=["--auto_resume"])
    jobs.start_next()
    wait_for(lambda: "begun" in jobs.log(job))
    jobs.stop(job.id, "pause")
    wait_for(lambda: states(jobs) == ["paused"])
    assert "stopped" in jobs.log(job) and jobs.start_next() == []
    jobs.go_on(job.id)
    assert states(jobs) == ["queued"] and jobs.get(job.id).words[-1] == "--auto_resume"
    (tmp_path / "goa").touch()
    run_all(jobs)
    assert states(jobs) == ["done"]


def test_a_sweep_is_paused_and_goes_on(jobs, tmp_path):
    """Its first trial stops with a snapshot, and is not begun again."""
    pytest.importorskip("optuna")
    program = pathlib.Path(caffe.__file__).resolve().parents[2] / "bin" / "caffe"
    if not program.exists():
        pytest.skip("caffe_tool is not built")
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 200000 display: 1000 test_interval: 100000 test_iter: 1')
    (tmp_path / "net.prototxt").write_text("""
        layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
          shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 } data_filler { value: 0.5 } data_filler { value: 1 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1 } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }""")
    trial = tmp_path / "sweep" / "0000"
    job = jobs.add("sweep", "sweep", [str(program), "sweep", "solver.prototxt", "base_lr=0.01,0.02"], str(tmp_path))
    jobs.start_next()
    wait_for(lambda: states(jobs) != ["running"] or "train" in text_of(trial / "run" / "metrics.jsonl"))
    jobs.stop(job.id, "pause")
    wait_for(lambda: states(jobs) == ["paused"])
    assert list((trial / "snapshots").glob("*.solverstate")) and not (tmp_path / "sweep" / "0001").exists()
    jobs.go_on(job.id)
    run_all(jobs)
    assert states(jobs) == ["done"], jobs.log(job)
    assert [len(json.loads(text_of(tmp_path / "sweep" / name / "run" / "run.json"))["sessions"]) for name in ("0000", "0001")] == [2, 1]


def test_cancel_before_and_after_the_start(jobs, tmp_path):
    first, second = (add(jobs, tmp_path, name) for name in "ab")
    jobs.stop(second.id, "cancel")
    jobs.start_next()
    wait_for(lambda: "begun" in jobs.log(first))
    jobs.stop(first.id, "cancel")
    run_all(jobs)
    assert states(jobs) == ["cancelled", "cancelled"] and not jobs.log(second)


def test_jobs_outlive_the_studio(jobs, tmp_path):
    """A process that starts a job and is killed; another one sees the job run, and its end."""
    job = add(jobs, tmp_path, "a")
    code = f"from caffe.studio.jobs import Jobs; Jobs({jobs.folder!r}).start_next(); import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for(lambda: "begun" in jobs.log(job))
    assert states(jobs) == ["running"] and jobs.start_next() == []
    (tmp_path / "goa").touch()
    wait_for(lambda: states(jobs) == ["done"])


def test_a_job_that_is_killed_has_failed(jobs, tmp_path):
    job = add(jobs, tmp_path, "a")
    jobs.start_next()
    wait_for(lambda: "begun" in jobs.log(job))
    file = os.path.join(jobs.folder, job.id, "process.json")
    wait_for(lambda: os.path.exists(file))
    os.kill(json.load(open(file, encoding="utf-8"))["process"], signal.SIGKILL)
    run_all(jobs)
    assert states(jobs) == ["failed"]


def test_two_studios_share_the_slots(jobs, tmp_path):
    """The other one sees a job run from the moment on at which it was started."""
    other = Jobs(jobs.folder)
    first, second = (add(jobs, tmp_path, name) for name in "ab")
    assert [job.id for job in jobs.start_next()] == [first.id]
    assert other.start_next() == [] and states(other) == states(jobs) == ["running", "queued"]
    for name in "ab":
        (tmp_path / f"go{name}").touch()
    wait_for(lambda: not jobs.start_next() and not other.start_next() and "running" not in states(other))
    assert states(jobs) == ["done", "done"] and all(jobs.get(job.id).runs == 1 for job in (first, second))


def test_a_job_whose_keeper_is_killed_runs_on_and_can_be_stopped(jobs, tmp_path):
    job = add(jobs, tmp_path, "a")
    jobs.start_next()
    file = os.path.join(jobs.folder, job.id, "process.json")
    wait_for(lambda: "begun" in jobs.log(job) and os.path.exists(file))
    command = json.load(open(file, encoding="utf-8"))["process"]
    with open(f"/proc/{command}/stat", encoding="utf-8") as text:
        keeper = int(text.read().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not jobs._children or jobs._children[0].poll() is not None)
    assert states(jobs) == ["running"] and jobs.start_next() == []
    jobs.stop(job.id, "cancel")
    wait_for(lambda: states(jobs) == ["cancelled"])
    assert "stopped" in jobs.log(job) and not jobs.signal(job.id, signal.SIGINT)


def test_no_signal_to_a_process_that_has_got_the_number(jobs, tmp_path):
    """The number that was recorded is that of a process which does not hold the job's lock."""
    with subprocess.Popen([sys.executable, "-c", "print('here', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        stranger.stdout.readline()
        job = add(jobs, tmp_path, "a")
        jobs.start_next()
        file = os.path.join(jobs.folder, job.id, "process.json")
        wait_for(lambda: "begun" in jobs.log(job) and os.path.exists(file))
        with open(file, "w", encoding="utf-8") as content:
            json.dump({"process": stranger.pid}, content)
        assert not jobs.signal(job.id, signal.SIGINT) and states(jobs) == ["running"]
        stranger.stdin.write(b"\n")
    (tmp_path / "goa").touch()
    run_all(jobs)
    assert states(jobs) == ["done"] and stranger.returncode == 0


def test_damaged_jobs_are_not_shown(jobs, tmp_path):
    add(jobs, tmp_path, "a")
    for name, text in (("0002", "{"), ("0003", '{"id": "0003"}'), ("0004", '{"id": "0009"}'), ("0005", "[]")):
        os.makedirs(os.path.join(jobs.folder, name))
        with open(os.path.join(jobs.folder, name, "job.json"), "w", encoding="utf-8") as file:
            file.write(text)
    assert states(jobs) == ["queued"]
    assert add(jobs, tmp_path, "b").id == "0006"

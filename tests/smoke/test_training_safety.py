"""What a run must never lose: exact resume, and whole snapshots whatever happens."""
import os
import pathlib
import random
import subprocess
import time


def test_a_resumed_run_ends_in_the_same_bytes(tmp_path, program, run, solver):
    """200 iterations at once, and 100 + restore + 100, with shuffling, dropout and momentum."""
    caffe = program("caffe")
    whole = solver("whole", max_iter=200)
    first, second = solver("first", max_iter=100), solver("second", max_iter=200)
    assert run(caffe, "train", f"--solver={whole}").returncode == 0
    assert run(caffe, "train", f"--solver={first}").returncode == 0
    done = run(caffe, "train", f"--solver={second}", f"--snapshot={tmp_path}/first_iter_100.solverstate")
    assert done.returncode == 0, done.stderr
    weights = (tmp_path / "whole_iter_200.caffemodel").read_bytes()
    assert weights == (tmp_path / "second_iter_200.caffemodel").read_bytes()
    assert weights != (tmp_path / "first_iter_100.caffemodel").read_bytes()


def test_snapshots_survive_being_killed(tmp_path, program, run, solver):
    """kill -9 at random moments: each snapshot that exists is whole, and each resume succeeds."""
    caffe = program("caffe")
    kills = 20 if os.environ.get("CAFFE_SLOW_TESTS") else 4
    endless = solver("run", max_iter=1000000, snapshot=10)
    moments = random.Random(20)
    resume = []
    for _ in range(kills):
        process = subprocess.Popen([caffe, "train", f"--solver={endless}", *resume], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.3 + 1.2 * moments.random())
        assert process.poll() is None, "the run ended by itself"
        process.kill()
        process.wait()
        states = sorted(tmp_path.glob("run_iter_*.solverstate"), key=lambda p: int(p.stem.split("_")[-1]))
        if not states:
            continue
        for state in states[-3:]:
            iteration = int(state.stem.split("_")[-1])
            short = solver("check", max_iter=iteration + 1, snapshot_after_train="false")
            done = run(caffe, "train", f"--solver={short}", f"--snapshot={state}")
            assert done.returncode == 0, done.stderr
        resume = [f"--snapshot={states[-1]}"]
        for old in states[:-3]:
            old.unlink()
            pathlib.Path(str(old).replace(".solverstate", ".caffemodel")).unlink()
    assert resume, "no run lived long enough to write a snapshot"


def test_a_full_disk_leaves_the_last_good_snapshot(tmp_path, program, run, solver):
    """A file size limit stands in for a full disk: the state no longer fits, the old one stays."""
    caffe = program("caffe")
    good = solver("run", max_iter=10)
    assert run(caffe, "train", f"--solver={good}").returncode == 0
    state = tmp_path / "run_iter_10.solverstate"
    before = state.read_bytes()
    more = solver("run", max_iter=20)
    limit = ["bash", "-c", 'trap "" XFSZ; ulimit -f 4; exec "$@"', "limited"]
    done = run(*limit, caffe, "train", f"--solver={more}", f"--snapshot={state}")
    assert done.returncode == 1
    assert "run_iter_20.caffemodel" in done.stderr
    assert state.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp.*"))

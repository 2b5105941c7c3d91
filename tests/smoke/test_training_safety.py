"""Guarantees of a run: exact resume, and complete snapshots whatever happens."""
import fcntl
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

import pytest

import simulated_disk
from programs import slow


def test_a_resumed_run_ends_in_the_same_bytes(tmp_path, program, run, solver):
    """200 iterations in one run, and 100 + restore + 100, with shuffling, dropout and momentum."""
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


@pytest.fixture(name="killed_training")
def training_on_a_simulated_disk(tmp_path, program, solver):
    """Trains a solver whose files are in `disk`, starting from the newest snapshot there; a fault kills it at an operation."""
    if not simulated_disk.LIBRARY.exists():
        pytest.skip(f"{simulated_disk.LIBRARY} is not built")
    place = simulated_disk.Place(tmp_path / "place")

    def train(file, files, fault="", workers=1):
        states = [(int(found[1]), path) for path in files
                  if (found := re.fullmatch(r"s_iter_(\d+)\.solverstate(\.h5)?", path))
                  and path.replace("solverstate", "caffemodel") in files]
        resume = [f"--snapshot=disk/{max(states)[1]}"] if states else []
        done, files = place.run([program("caffe"), "train", f"--solver={file}", f"--workers={workers}", *resume], files, fault)
        assert done.returncode == 0 or simulated_disk.was_killed(done), done.stderr[-3000:]
        return simulated_disk.was_killed(done), files

    train.operations = lambda: sum(simulated_disk.counts(simulated_disk.operations(place.log)).values())
    return train


def test_snapshots_survive_being_killed(killed_training, solver):
    """kill -9 at random disk operations: each snapshot that exists is complete, and each resume succeeds."""
    endless = solver("s", max_iter=100_000_000, snapshot=10, snapshot_prefix='"disk/s"')
    moments, files, resumed = random.Random(20), {}, 0
    for _ in range(4):
        was_killed, files = killed_training(endless, files, f"any:{moments.randrange(10, 120)}:kill")
        assert was_killed
        states = sorted((path for path in files if path.endswith(".solverstate")), key=lambda path: int(path.split(".")[0][7:]))
        for state in states[-3:]:
            short = solver("check", max_iter=int(state.split(".")[0][7:]) + 1, snapshot_after_train="false")
            pair = {path: data for path, data in files.items() if path.split(".")[0] == state.split(".")[0]}
            assert not killed_training(short, pair)[0]
            resumed += 1
    assert resumed > 6


CHAINS = {
    "Adam": {"type": '"Adam"', "momentum2": 0.999},
    "FP16": {"precision": "FP16"},  # its adaptive gradient scale is part of the state
    "plateau": {"lr_policy": '"plateau"', "gamma": 0.5, "plateau_winsize": 20, "average_loss": 5},
}


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_chains_of_killed_runs_end_in_the_same_bytes(killed_training, solver, format, workers, kind):
    """CAFFE_KILLS kills in all kinds of chains together (60): no incomplete file, no failed resume, no stray file at the end."""
    slow()
    kills_left = -(-int(os.environ.get("CAFFE_KILLS", 60)) // 18)
    file = solver("s", max_iter=300, snapshot=20, snapshot_prefix='"disk/s"', snapshot_format=format, **CHAINS[kind])
    _, whole = killed_training(file, {}, workers=workers)
    operations = killed_training.operations()
    assert len(whole) == 30
    moments, chains, kills, compared = random.Random(f"{format} {workers} {kind}"), 0, 0, 0
    while kills_left > 0:
        chains, files, was_killed = chains + 1, {}, True
        while kills_left > 0 and was_killed:
            fault = f"any:{moments.randrange(operations // 4, operations)}:{moments.choice(['kill', 'tear'])}"
            was_killed, files = killed_training(file, files, fault, workers)
            finals = {name: data for name, data in files.items() if ".tmp." not in name}
            assert finals.items() <= whole.items(), "a torn file"
            compared += len(finals)
            kills_left, kills = kills_left - was_killed, kills + was_killed
        assert killed_training(file, files, workers=workers)[1] == whole
    print(f"\n{format}, {workers} workers, {kind}: {kills} kills in {chains} chains, {compared} files compared")


def test_a_full_disk_leaves_the_last_good_snapshot(tmp_path, program, run, solver):
    """A file size limit stands in for a full disk: the state no longer fits, and the old one stays."""
    caffe = program("caffe")
    good = solver("run", max_iter=10)
    assert run(caffe, "train", f"--solver={good}").returncode == 0
    state = tmp_path / "run_iter_10.solverstate"
    before = state.read_bytes()
    more = solver("run", max_iter=20)
    limit = ["bash", "-c", 'ulimit -f 4; exec "$@"', "limited"]
    done = run(*limit, caffe, "train", f"--solver={more}", f"--snapshot={state}")
    assert done.returncode == 1
    assert "run_iter_20.caffemodel" in done.stderr and "ulimit -f" in done.stderr
    assert state.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp.*"))


def test_weights_are_not_left_without_their_state(tmp_path, program, run, solver):
    """Adam's state is twice as large as the weights: on a full disk neither appears, because each try would fill it more."""
    file = solver("run", max_iter=12, snapshot=5, snapshot_after_train="false", type='"Adam"', momentum2=0.999)
    run(program("caffe"), "train", f"--solver={solver('first', max_iter=1, snapshot_after_train='false')}")  # creates LMDB's lock
    size = 30  # kB: above the weights' 21 and below the state's 42
    limit = ["bash", "-c", f'ulimit -f {size}; exec "$@"', "limited"]
    done = run(*limit, program("caffe"), "train", f"--solver={file}")
    assert done.returncode == 0
    assert "run_iter_5.solverstate: cannot write" in done.stderr
    assert not list(tmp_path.glob("run_iter_*"))


@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_two_runs_write_the_same_bytes(tmp_path, program, run, solver, format):
    """Snapshots in HDF5 once differed by the time of day in them."""
    files = []
    for name in ("one", "two"):
        file = solver(name, max_iter=3, snapshot_format=format, snapshot_prefix=f'"{tmp_path}/{name}/run"')
        assert run(program("caffe"), "train", f"--solver={file}").returncode == 0
        files.append(sorted((tmp_path / name).iterdir()))
        time.sleep(1.1)  # times in HDF5 are in seconds
    assert [file.name for file in files[0]] == [file.name for file in files[1]] and len(files[0]) == 2
    weights = [next(file for file in both if "caffemodel" in file.name).read_bytes() for both in files]
    assert weights[0] == weights[1]


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path, program, run, solver):
    """Only half-written files of this prefix whose writer has died are removed; those of a living run stay."""
    file = solver("run", max_iter=3)
    left = [tmp_path / f"run_iter_{name}" for name in ("7.caffemodel.tmp.a1b2c3", "8.solverstate.h5.tmp.zzzzzz")]
    others = [tmp_path / name for name in ("other_iter_7.caffemodel.tmp.a1b2c3", "run_iter_x.caffemodel.tmp.a1b2c3",
                                           "run_iter_9.caffemodel.tmp.longer99", "run_iter_3.txt.tmp.a1b2c3")]
    living = tmp_path / "run_iter_6.caffemodel.tmp.d4e5f6"
    for one in [*left, *others, living]:
        one.write_bytes(b"half")
    with open(living) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run(program("caffe"), "train", f"--solver={file}").returncode == 0
    assert not [one for one in left if one.exists()]
    assert all(one.exists() for one in [*others, living])


def test_a_planted_link_is_not_written_through(tmp_path, program, run, solver):
    """Temporary names were once the file's name and the process id; a link there led to any file of the user."""
    victim = tmp_path / "victim"
    victim.write_text("original")
    file = solver("run", max_iter=3)
    plant = f'for name in caffemodel solverstate; do ln -s victim "{tmp_path}/run_iter_3.$name.tmp.$$"; done; exec "$@"'
    assert run("bash", "-c", plant, "planted", program("caffe"), "train", f"--solver={file}").returncode == 0
    assert victim.read_text() == "original"
    assert not (tmp_path / "run_iter_3.solverstate").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can become another user")
def test_resumes_where_the_recorded_folder_may_not_be_entered(tmp_path, program, run, solver):
    """The weights were written in another user's home; they are also next to the state."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    file = solver("run", max_iter=3, snapshot_prefix=f'"{private}/run"')
    assert run(program("caffe"), "train", f"--solver={file}").returncode == 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # pytest's own folder cannot be entered either
        os.chmod(folder, 0o777)
        for snapshot in private.iterdir():
            shutil.copy(snapshot, folder)
        shutil.copytree(tmp_path / "db", f"{folder}/db")
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        net = (tmp_path / "net.prototxt").read_text().replace(str(tmp_path / "db"), f"{folder}/db")
        pathlib.Path(f"{folder}/net.prototxt").write_text(net)
        again = solver("again", max_iter=4, net=f'"{folder}/net.prototxt"', snapshot_prefix=f'"{folder}/again"')
        shutil.copy(again, f"{folder}/solver.prototxt")
        command = [program("caffe"), "train", f"--solver={folder}/solver.prototxt", f"--snapshot={folder}/run_iter_3.solverstate"]
        done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command)
        assert done.returncode == 0, done.stderr[-2000:]


def test_a_prefix_in_use_is_refused(tmp_path, program, run, solver):
    """Two runs would alternately overwrite each other's snapshots. Here the other run is this process."""
    file = solver("run", max_iter=20)
    with open(tmp_path / "run.lock", "w", encoding="utf-8") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = run(program("caffe"), "train", f"--solver={file}")
        assert done.returncode == 1
        assert f"run.lock: another run (process {os.getpid()}) writes snapshots with this prefix" in done.stderr, done.stderr
    # The file that a killed run leaves is not a lock, and the next run removes it.
    assert run(program("caffe"), "train", f"--solver={file}").returncode == 0
    assert not (tmp_path / "run.lock").exists()
    (tmp_path / "run.lock").write_text("somebody's own")
    assert run(program("caffe"), "train", f"--solver={file}").returncode == 0
    assert (tmp_path / "run.lock").read_text() == "somebody's own"


@pytest.mark.parametrize("format, ending", [("BINARYPROTO", ""), ("HDF5", ".h5")])
def test_names_that_are_too_long_are_refused_at_the_start(format, ending, tmp_path, program, run, solver):
    """The temporary name of the last snapshot must fit."""
    written = f"_iter_100.solverstate{ending}.tmp." + 6 * "x"  # six random letters end a temporary name
    for surplus in (0, 1):
        name = "n" * (255 - len(written) + surplus)
        file = solver("long", max_iter=100, snapshot=50, snapshot_format=format, snapshot_prefix=f'"{tmp_path}/{name}"')
        done = run(program("caffe"), "train", f"--solver={file}")
        assert done.returncode == surplus, done.stderr
        assert not surplus or "cannot be written" in done.stderr and "File name too long" in done.stderr, done.stderr
    assert len(list(tmp_path.glob("n*_iter_100.*"))) == 2


@pytest.mark.parametrize("format, ending", [("BINARYPROTO", ""), ("HDF5", ".h5")])
def test_a_disk_that_is_full_at_the_end_keeps_the_weights(format, ending, tmp_path, program, run, solver):
    """Adam's state is twice as large as the weights; the file size limit is between the two."""
    whole = solver("whole", type='"Adam"', momentum2=0.999, max_iter=20, snapshot_format=format)
    assert run(program("caffe"), "train", f"--solver={whole}").returncode == 0
    weights, state = (tmp_path / f"whole_iter_20.{kind}{ending}" for kind in ("caffemodel", "solverstate"))
    limit = (weights.stat().st_size + state.stat().st_size) // 2
    assert weights.stat().st_size < limit < state.stat().st_size
    full = solver("full", type='"Adam"', momentum2=0.999, max_iter=20, snapshot_format=format)
    done = run("prlimit", f"--fsize={limit}", program("caffe"), "train", f"--solver={full}")
    assert done.returncode == 1
    assert f"the weights are in {tmp_path}/full_iter_20.caffemodel{ending}, but" in done.stderr, done.stderr
    assert (tmp_path / f"full_iter_20.caffemodel{ending}").read_bytes() == weights.read_bytes()
    assert not (tmp_path / f"full_iter_20.solverstate{ending}").exists()


def test_auto_resume_says_whose_snapshot_it_takes(tmp_path, program, run, solver):
    first = solver("run", max_iter=20)
    assert run(program("caffe"), "train", f"--solver={first}").returncode == 0
    other = solver("run", max_iter=30, random_seed=9, base_lr=0.001, display=10)
    done = run(program("caffe"), "train", f"--solver={other}", "-auto_resume")
    assert done.returncode == 0, done.stderr
    assert "run_iter_20.solverstate is of another run: its random_seed 7 goes on to be used, not this solver's 9" in done.stderr
    assert "run_iter_20.solverstate is of another run: this solver has base_lr: 0.001 (was base_lr: 0.01)" in done.stderr
    net = tmp_path / "net.prototxt"
    net.write_text(net.read_text().replace("mirror: true", "mirror: false"))
    again = solver("run", max_iter=40, display=20, random_seed=7, base_lr=0.001)
    done = run(program("caffe"), "train", f"--solver={again}", "-auto_resume")
    assert done.returncode == 0, done.stderr
    assert "run_iter_30.solverstate is of another run: it trained net 'safety' by another definition" in done.stderr
    assert "this solver" not in done.stderr.split("Restoring")[1]

"""Databases that break while they are read cause an error that names them."""
import os
import random
import shutil
import signal
import subprocess

from programs import BINARIES, Deadline, wait_for_line

PAGE = 4096


def start(caffe, file):
    return subprocess.Popen([caffe, "train", f"--solver={file}"], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def rest_of(process):
    with Deadline(process):
        return process.stderr.read()


def test_a_database_that_becomes_shorter_under_way(tmp_path, program, run, solver):
    """As if `cp` overwrote it: the pages are gone, and reading one raises SIGBUS."""
    shutil.copytree(tmp_path / "db", tmp_path / "whole")
    file = solver("run", max_iter=100_000_000, display=20, snapshot=20)
    with start(program("caffe"), file) as process:
        while len(list(tmp_path.glob("run_iter_*.solverstate"))) < 2:
            wait_for_line(process, r"Iteration \d+ \(")
        os.truncate(tmp_path / "db" / "data.mdb", 2 * PAGE)
        text = rest_of(process)
    assert process.returncode == 1, text
    assert f"{tmp_path}/db/data.mdb: cannot be read any more (SIGBUS)" in text.splitlines()[-1]
    assert "go on from the last snapshot" in text
    shutil.rmtree(tmp_path / "db")
    (tmp_path / "whole").rename(tmp_path / "db")
    states = sorted(tmp_path.glob("run_iter_*.solverstate"), key=lambda one: int(one.stem.split("_")[-1]))
    for state in random.Random(1).sample(states, min(3, len(states))) + states[-1:]:
        iteration = int(state.stem.split("_")[-1])
        short = solver("check", max_iter=iteration + 1, snapshot_after_train="false")
        done = run(program("caffe"), "train", f"--solver={short}", f"--snapshot={state}")
        assert done.returncode == 0, done.stderr[-2000:]


def test_a_fault_from_outside_accuses_no_database(tmp_path, program, solver):
    with start(program("caffe"), solver("run", max_iter=100_000_000, display=20)) as process:
        wait_for_line(process, "Iteration 20")
        process.send_signal(signal.SIGSEGV)
        text = rest_of(process)
    assert process.returncode == -signal.SIGSEGV
    assert "caffe: ended by SIGSEGV, which another process sent; snapshots" in text and "data.mdb is open" not in text


def test_a_fault_is_said_to_be_where_it_was(tmp_path, program, run, solver):
    library = BINARIES.parent / "lib" / "test_plugins" / "misbehaving.so"
    file = solver("run", max_iter=20)
    with open(tmp_path / "net.prototxt", "a", encoding="ascii") as text:
        text.write('layer { name: "faulty" type: "Faulty" bottom: "data" top: "faulty" }')
    done = run(program("caffe"), "train", f"--solver={file}", f"--plugin={library}")
    assert done.returncode == -signal.SIGSEGV, done.stderr
    assert f"caffe: ended by SIGSEGV in {library.resolve()}, at address 0x10; snapshots" in done.stderr, done.stderr
    assert "data.mdb is open" not in done.stderr

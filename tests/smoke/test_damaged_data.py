"""Databases that break while they are read, or before: an error that names them, and never a run that hangs."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

PAGE = 4096
DATABASE = re.compile(r"data\.mdb|/damaged(: |/)")


@pytest.fixture
def start(tmp_path, program):
    """Starts `caffe` with its log in a file."""
    started = []

    def call(*arguments):
        with open(tmp_path / "log", "w") as log:
            started.append(subprocess.Popen([program("caffe"), *map(str, arguments)], stdout=log, stderr=log))
        return started[-1]
    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_a_database_that_becomes_shorter_under_way(tmp_path, program, run, solver, start):
    """As by `cp` over it: the pages are gone, and reading one is SIGBUS."""
    shutil.copytree(tmp_path / "db", tmp_path / "whole")
    file = solver("run", max_iter=10000000, snapshot=20)
    process = start("train", f"--solver={file}")
    end = time.time() + 60
    while len(list(tmp_path.glob("run_iter_*.solverstate"))) < 2 and time.time() < end:
        time.sleep(0.05)
    os.truncate(tmp_path / "db" / "data.mdb", 2 * PAGE)
    assert process.wait(60) == 1
    text = (tmp_path / "log").read_text()
    assert f"{tmp_path}/db/data.mdb: cannot be read any more (SIGBUS)" in text.splitlines()[-1]
    assert "go on from the last snapshot" in text
    shutil.rmtree(tmp_path / "db")
    (tmp_path / "whole").rename(tmp_path / "db")
    states = list(tmp_path.glob("run_iter_*.solverstate"))
    for state in random.Random(1).sample(states, min(3, len(states))) + [max(states, key=lambda one: one.stat().st_mtime)]:
        iteration = int(state.stem.split("_")[-1])
        short = solver("check", max_iter=iteration + 1, snapshot_after_train="false")
        done = run(program("caffe"), "train", f"--solver={short}", f"--snapshot={state}")
        assert done.returncode == 0, done.stderr[-2000:]


def mutate(file, seed):
    """Changes a few bytes, mostly in the headers of pages and in their tables of records."""
    moments = random.Random(seed)
    data = bytearray(file.read_bytes())
    pages = len(data) // PAGE
    for _ in range(moments.choice([1, 2, 8])):
        page = moments.randrange(pages)
        within = moments.choice([moments.randrange(16), moments.randrange(128), moments.randrange(PAGE)])
        data[page * PAGE + within] = moments.choice([0, 1, 255, moments.randrange(256)])
    file.write_bytes(data)


def outcome_of(database, tmp_path, program, run, net):
    """None, or what is wrong with how training on the damaged database ended."""
    (tmp_path / "damaged.prototxt").write_text(net)
    (tmp_path / "damaged_solver.prototxt").write_text(
        f'net: "{tmp_path}/damaged.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 45 snapshot_after_train: false')
    try:
        done = run(program("caffe"), "train", f"--solver={tmp_path}/damaged_solver.prototxt", timeout=60,
                   errors="replace")  # keys may hold any bytes
    except subprocess.TimeoutExpired:
        return "hangs"
    text = done.stderr
    if done.returncode == 0:  # only values that nobody can check were damaged
        return None if "Optimization Done" in text else "ends without a word"
    names = DATABASE.search(text) is not None
    named = done.returncode == 1 and names and "InternalError" not in text and "src/caffe/" not in text
    return None if named else f"status {done.returncode}: {text[-600:]}"


@pytest.mark.parametrize("shuffle", ["true", "false"])
def test_damaged_pages(shuffle, tmp_path, program, run, database):
    """Each ends with an error that names the database; damaged values may be trained on."""
    net = """layer { name: "data" type: "Data" top: "data" top: "label"
        data_param { source: "%s/damaged" batch_size: 16 backend: LMDB shuffle: %s } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 10 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""" % (tmp_path, shuffle)
    wrong = {}
    for seed in range(175 if os.environ.get("CAFFE_SLOW_TESTS") else 30):
        shutil.rmtree(tmp_path / "damaged", ignore_errors=True)
        shutil.copytree(database, tmp_path / "damaged")
        mutate(tmp_path / "damaged" / "data.mdb", f"{shuffle} {seed}")
        problem = outcome_of(tmp_path / "damaged", tmp_path, program, run, net)
        if problem:
            wrong[seed] = problem
    assert not wrong


def test_a_fault_of_memory_names_the_open_databases(tmp_path, solver, start):
    """SIGSEGV from outside stands in for one within LMDB."""
    process = start("train", f"--solver={solver('run', max_iter=10000000, display=20)}")
    end = time.time() + 60
    while "Iteration 20" not in (tmp_path / "log").read_text() and time.time() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGSEGV)
    assert process.wait(60) == -signal.SIGSEGV
    text = (tmp_path / "log").read_text()
    assert "caffe: ended by SIGSEGV" in text and f"caffe: database {tmp_path}/db/data.mdb is open" in text

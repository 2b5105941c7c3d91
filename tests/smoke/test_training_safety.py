"""What a run must never lose: exact resume, and whole snapshots whatever happens."""
import os
import pathlib
import random
import struct
import subprocess
import time

import pytest
from conftest import BINARIES, ROOT, need_program


@pytest.fixture
def program():
    """Path of a built program; the test is skipped where it is missing."""
    def find(name):
        need_program(name)
        return str(BINARIES / name)
    return find


@pytest.fixture
def run():
    """Runs a command in the repository; returns the finished process."""
    def call(*command, timeout=300, **options):
        return subprocess.run([str(part) for part in command], cwd=ROOT, text=True, timeout=timeout, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return call


def write_idx(path, dims, values):
    header = bytes([0, 0, 8, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims)
    pathlib.Path(path).write_bytes(header + bytes(values))


@pytest.fixture
def database(tmp_path, program, run):
    """A small LMDB of 300 random 12x12 images with labels 0 to 9."""
    state, pixels, labels, count = 1, bytearray(), bytearray(), 300
    for _ in range(count):
        labels.append(state % 10)
        for _ in range(144):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            pixels.append(state >> 16 & 255)
    write_idx(tmp_path / "images", [count, 12, 12], pixels)
    write_idx(tmp_path / "labels", [count], labels)
    done = run(program("convert_mnist_data"), tmp_path / "images", tmp_path / "labels", tmp_path / "db")
    assert done.returncode == 0, done.stderr
    return tmp_path / "db"


NET = """
name: "safety"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.0039 mirror: true crop_size: 10 }
  data_param { source: "%s" batch_size: 16 backend: LMDB shuffle: true parser_threads: 2 }
}
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
layer {
  name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture
def solver(tmp_path, database):
    """Writes a solver for a small net with shuffling, dropout and momentum; returns its path."""
    (tmp_path / "net.prototxt").write_text(NET % database)

    def write(name, **fields):
        settings = {"base_lr": 0.01, "lr_policy": '"fixed"', "momentum": 0.9, "weight_decay": 0.001,
                    "random_seed": 7, "display": 0, "solver_mode": "CPU",
                    "net": f'"{tmp_path}/net.prototxt"', "snapshot_prefix": f'"{tmp_path}/{name}"', **fields}
        path = tmp_path / f"{name}.prototxt"
        path.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
        return path
    return write


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

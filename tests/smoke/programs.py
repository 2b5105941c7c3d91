"""Programs of a build, and small nets and solvers for them: helpers and fixtures of tests/smoke and tests/timing."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "bin"
PACKAGE = BINARIES.parent / "python"


class Workplace:
    """A folder with the definitions, in which programs run as in the repository."""

    def __init__(self, root):
        self.root = root
        leave_out = shutil.ignore_patterns("*_lmdb*", "*_iter_*", "*.binaryproto", "*.h5", "__pycache__")
        for folder in ("examples", "models", "benchmarks"):
            shutil.copytree(ROOT / folder, root / folder, ignore=leave_out)

    def run(self, program, *arguments, status=0):
        """Runs a program of the build, or a script of the examples; returns its output."""
        script = self.root / program
        command = ["bash", script] if program.endswith(".sh") else [BINARIES / program]
        return self._output([*command, *arguments], status, CAFFE_BIN=BINARIES)

    def run_python(self, *arguments, status=0):
        """Runs Python with the package of the build; returns its output."""
        if not list(PACKAGE.glob("caffe/_caffe*.so")):
            pytest.skip(f"package caffe is not built in {PACKAGE}")
        return self._output([sys.executable, *arguments], status, PYTHONPATH=PACKAGE)

    def _output(self, command, status, **environment):
        done = subprocess.run([str(part) for part in command], cwd=self.root, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **{name: str(value) for name, value in environment.items()}}, timeout=600)
        assert done.returncode == status, done.stdout[-4000:]
        return done.stdout

    def edit(self, path, **fields):
        """Sets existing top level fields of a prototxt."""
        file = self.root / path
        lines = file.read_text().splitlines()
        for name, value in fields.items():
            assert any(line.startswith(f"{name}:") for line in lines), f"{path} has no {name}"
            lines = [f"{name}: {value}" if line.startswith(f"{name}:") else line for line in lines]
        file.write_text("\n".join(lines) + "\n")
        return path


@pytest.fixture
def workplace(tmp_path):
    need_program("caffe")
    return Workplace(tmp_path)


def need_program(name):
    if not (BINARIES / name).exists():
        pytest.skip(f"{name} is not built in {BINARIES}")


def real_data(name):
    """A folder of CAFFE_TEST_DATA; the test is skipped if it does not exist."""
    folder = pathlib.Path(os.environ.get("CAFFE_TEST_DATA", "")) / name
    if "CAFFE_TEST_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(f"no real data: CAFFE_TEST_DATA names no folder with {name}/ in it")
    return folder


def slow():
    if not os.environ.get("CAFFE_SLOW_TESTS"):
        pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")


@pytest.fixture
def program():
    """The path of a built program; the test is skipped if it is missing."""
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


# Seconds until a test gives up. This is a safety net: neither load nor a paused test comes close to it.
PATIENCE = 300


class Deadline:
    """Kills processes that do not end within PATIENCE: `with Deadline(process) as deadline: ... deadline.has_struck`."""

    def __init__(self, *processes):
        self.has_struck, self._processes = False, processes
        self._timer = threading.Timer(PATIENCE, self._strike)
        self._timer.daemon = True

    def _strike(self):
        self.has_struck = True
        for process in self._processes:
            process.kill()

    def __enter__(self):
        self._timer.start()
        return self

    def __exit__(self, *_):
        self._timer.cancel()


def wait_for_line(process, pattern):
    """Reads the log of a process, its stderr, up to a line that matches; returns the match."""
    said = []
    with Deadline(process) as deadline:
        for line in process.stderr:
            said.append(line)
            if found := re.search(pattern, line):
                return found
    why = f"within {PATIENCE} s" if deadline.has_struck else "before the process ended"
    pytest.fail(f"no line like '{pattern}' came {why}: {''.join(said)[-4000:]}")


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

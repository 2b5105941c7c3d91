"""Shared by the tests that run the built programs from outside."""
import os
import pathlib
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAFFE_BUILD_DIR", ROOT / "build" / "cpu-release"))


def is_slow_run():
    return os.environ.get("CAFFE_SLOW_TESTS") == "1"


@pytest.fixture
def program():
    """Path of a built program; the test is skipped where it is missing."""
    def find(name):
        path = BUILD / "bin" / name
        if not path.exists():
            pytest.skip(f"{path} is not built")
        return str(path)
    return find


@pytest.fixture
def run():
    """Runs a command in the repository; returns the finished process."""
    def call(*command, timeout=300, **options):
        return subprocess.run([str(part) for part in command], cwd=ROOT, text=True, timeout=timeout,
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

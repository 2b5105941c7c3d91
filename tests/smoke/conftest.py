"""Smoke tests run the examples with the programs of a build, in a copy of the tree's definitions."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "bin"


class Workplace:
    """A folder with the definitions, in which programs run as they would in the repository."""

    def __init__(self, root):
        self.root = root
        leave_out = shutil.ignore_patterns("*_lmdb*", "*_iter_*", "*.binaryproto", "__pycache__")
        for folder in ("examples", "models", "benchmarks"):
            shutil.copytree(ROOT / folder, root / folder, ignore=leave_out)

    def run(self, program, *arguments, status=0):
        """Runs a program of the build, or a script of the examples; returns its output."""
        script = self.root / program
        command = ["bash", script] if program.endswith(".sh") else [BINARIES / program]
        done = subprocess.run([str(part) for part in (*command, *arguments)], cwd=self.root, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "CAFFE_BIN": str(BINARIES)}, timeout=600)
        assert done.returncode == status, done.stdout[-4000:]
        return done.stdout

    def edit(self, path, **fields):
        """Sets top level fields of a prototxt that are there already."""
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
    """A folder of CAFFE_TEST_DATA, or a skipped test."""
    folder = pathlib.Path(os.environ.get("CAFFE_TEST_DATA", "")) / name
    if "CAFFE_TEST_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(f"no real data: CAFFE_TEST_DATA names no folder with {name}/ in it")
    return folder


def slow():
    if not os.environ.get("CAFFE_SLOW_TESTS"):
        pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --slow)")

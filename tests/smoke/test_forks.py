"""Definitions as public repositories of Caffe's forks have them: they plan and run."""
import subprocess

import pytest

from conftest import BINARIES, ROOT

FILES = sorted((ROOT / "tests" / "smoke" / "forks").glob("*.prototxt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_definition_plans(path):
    done = subprocess.run([BINARIES / "caffe", "plan", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ignored" not in done.stderr, done.stderr


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_definition_runs(path):
    done = subprocess.run([BINARIES / "caffe", "time", "-model", path, "-iterations", "1"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr

"""Definitions of the kind that repositories of Caffe's forks have: each field is known, and the nets run."""
import json

import pytest

from programs import ROOT

FILES = sorted((ROOT / "tests/smoke/forks").glob("*.prototxt"))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_definitions_of_forks_plan(program, run, file, phase):
    done = run(program("caffe"), "plan", f"--model={file}", f"--phase={phase}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("precision", ["fp32", "fp64", "bf16", "fp16"])
def test_definitions_of_forks_run(program, run, file, precision):
    done = run(program("caffe"), "time", f"--model={file}", "--iterations=1", f"--precision={precision}")
    assert done.returncode == 0, done.stderr

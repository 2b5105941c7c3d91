"""Files that earlier versions have written, in tests/kept: scripts/keep_files.py writes them, docs/upgrading.md promises them."""
import json
import math
import pathlib
import shutil
import subprocess

import caffe
import numpy as np
import pytest
from caffe.runs import Run

from programs import BINARIES, need_program

KEPT = sorted(folder for folder in (pathlib.Path(__file__).parent.parent / "kept").iterdir() if folder.is_dir())


@pytest.fixture(params=KEPT, ids=lambda folder: folder.name)
def kept(request, tmp_path):
    """A copy of the files of a version."""
    shutil.copytree(request.param, tmp_path / "kept")
    return tmp_path / "kept"


def program(folder, name, *words):
    need_program(name)
    done = subprocess.run([BINARIES / name, *words], cwd=folder, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


def expected(folder, name="prob"):
    """The recorded answers to the images that images() gives."""
    return np.array(json.loads((folder / "outputs.json").read_text())[name], dtype=np.float32)


def images(shape):
    return (np.arange(math.prod(shape)) % 17 / 8.0 - 1).reshape(shape).astype(np.float32)


def run_in(folder):
    run = Run(folder)
    run.refresh()
    return run


@pytest.mark.parametrize("weights", ["sgd_iter_8.caffemodel", "hdf5_iter_8.caffemodel.h5"])
def test_weights(kept, weights):
    net = caffe.Net(str(kept / "deploy.prototxt"), caffe.TEST, weights=str(kept / weights))
    found = net.forward(data=images(net.blobs["data"].shape))["prob"]
    assert np.abs(found - expected(kept)).max() < 1e-5  # both solvers are the same but for the form of their files


@pytest.mark.parametrize("kind, ending", [("sgd", "solverstate"), ("adam", "solverstate"), ("hdf5", "solverstate.h5")])
def test_trainings_go_on(kept, kind, ending):
    said = program(kept, "caffe", "train", f"--solver={kind}_solver.prototxt", f"--snapshot={kind}_iter_8.{ending}", "--set", "max_iter=12",
                   f"--run_dir={kind}_run")
    assert "Iteration 8" in said and "Iteration 12" in said
    run = run_in(kept / f"{kind}_run")
    assert run.iteration == 12 and len(run.sessions) == 2 and not run.problems
    steps = run.series["train/loss"].steps.tolist()
    assert steps[0] == 0 and steps[-1] >= 10 and np.isfinite(run.series["train/loss"].values).all()


@pytest.mark.parametrize("name", ["float", "int8"])
def test_programs_of_the_runtime(kept, name):
    answers = expected(kept, "prob" if name == "float" else "int8")
    images((len(answers), 3, 12, 12)).tofile(kept / "input.raw")
    lines = program(kept, "cortado_run", f"{name}.cortado", "input.raw").splitlines()
    found = np.array([float(line) for line in lines[1:1 + answers.size]]).reshape(answers.shape)
    assert lines[0] == f"prob {len(answers)} 2" and np.abs(found - answers).max() < 1e-5


def test_ranges_for_8_bits(kept):
    assert "int8" in program(kept, "caffe", "plan", "deploy.prototxt", "--phase=TEST", "--precision=int8", "--calibration=calibration.json")


def test_databases(kept):
    assert "8" in program(kept, "caffe", "data", "stat", "images_lmdb")


def test_run_folders(kept):
    run = run_in(kept / "sgd_run")
    assert run.state == "finished" and run.iteration == 8 and not run.problems
    assert {"train/loss", "test/loss"} <= set(run.series)

"""How runs continue, also those that were copied: nothing may be written to the folder of the original."""
import json
import os
import shutil
import types

import numpy as np
import pytest

import caffe
from caffe.runs import Run
from caffe.studio.pages.run import time_left
from caffe.studio.resuming import CannotResume, finished_run, is_done, require_own, resumption


def write_run(place, command, working, iteration=40, snapshot="snapshots/m_iter_40.solverstate", solver='snapshot_prefix: "snapshots/m" max_iter: 40', **session):
    place.mkdir(parents=True, exist_ok=True)
    (place / "run.json").write_text(json.dumps({"sessions": [{"start": f"2026-01-01T00:00:{len(os.listdir(place.parent)):02}Z", "reason": "finished", "stop_iteration": 40,
                                                               "command": command, "folder": str(working), "run_dir": str(place), **session}]}))
    lines = [{"event": "train", "time": 1.0, "iteration": iteration, "loss": 0.5}, {"event": "snapshot", "time": 2.0, "iteration": iteration, "file": snapshot}]
    (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (place / "solver.prototxt").write_text(solver)


def read(place):
    run = Run(place)
    run.refresh()
    return run


def words_of(place):
    found = resumption(read(place))
    return found.words, found.working


@pytest.fixture
def model(tmp_path):
    """A model with a run."""
    folder = tmp_path / "my model"
    (folder / "snapshots").mkdir(parents=True)
    for file in ("deploy.prototxt", "snapshots/m_iter_40.solverstate"):
        (folder / file).touch()
    (folder / "solver.prototxt").write_text('snapshot_prefix: "snapshots/m" max_iter: 40')
    write_run(folder / "runs" / "1", "caffe train 'my model'", folder)
    return folder


@pytest.mark.parametrize("command, words", [
    ("caffe train --solver=s", ["--solver=s"]), ("/opt/bin/caffe train --solver=s --snapshot_after=3 --auto_resume", ["--solver=s", "--snapshot_after=3"]),
    ("caffe train --solver=s --snapshot=x.solverstate --gpu=0", ["--solver=s", "--gpu=0"]),
    ("caffe train --solver=s -snapshot x.solverstate --gpu=0", ["--solver=s", "--gpu=0"])])
def test_a_run_of_a_solver(tmp_path, command, words):
    for place in ("runs/a", tmp_path / "runs/a"):
        write_run(tmp_path / "runs" / "a", f"{command} --run_dir={place}", tmp_path)
        assert words_of(tmp_path / "runs" / "a") == (["train", *words, "--auto_resume", f"--run_dir={tmp_path}/runs/a"], str(tmp_path))


@pytest.mark.parametrize("named", ["'my model'", "'../there/my model/'", "'--solver=my model'", "--solver 'my model'", ".", "--run_dir 'out/my model' 'my model'"])
def test_a_run_of_a_model(model, named):
    write_run(model / "runs" / "1", f"caffe train --precision=bf16 {named}", model)
    solver = ["--solver", "."] if named.startswith("--solver ") else ["."]
    assert words_of(model / "runs" / "1") == (["train", "--precision=bf16", *solver, "--auto_resume", f"--run_dir={model}/runs/1"], str(model))


def test_a_run_of_a_model_that_is_elsewhere(model, tmp_path):
    """--run_dir was relative to the folder in which the command was given."""
    write_run(tmp_path / "runs" / "a", "caffe train 'my model' --run_dir=runs/a", model)
    assert words_of(tmp_path / "runs" / "a") == (["train", ".", "--auto_resume", f"--run_dir={tmp_path}/runs/a"], str(model))


@pytest.mark.parametrize("command", ["", "caffe", "caffe test --model=m", "/usr/bin/python3 train.py", "python3 train", "caffe train 'cut"])
def test_another_command(tmp_path, command):
    write_run(tmp_path / "a", command, tmp_path)
    with pytest.raises(CannotResume, match="does not say by which `caffe train`"):
        words_of(tmp_path / "a")


def refused(place, why):
    """The run that Resume, Stop and Snapshot of a copy name."""
    runs = set()
    for act in (words_of, lambda place: require_own(read(place))):
        with pytest.raises(CannotResume, match=why) as error:
            act(place)
        runs.add(error.value.run)
    assert len(runs) == 1
    return runs.pop()


@pytest.mark.parametrize("ends", [True, False])
def test_a_run_that_was_copied(model, tmp_path, ends):
    """Also while it trained: the original's session has an end since."""
    session = {} if ends else {"reason": ""}
    original = model / "runs" / "1"
    write_run(original, "caffe train 'my model'", model, **session)
    copies = [tmp_path / "copy", model / "runs" / "2", model / "runs" / "saved", tmp_path / "runs" / "1"]
    for copy in copies:
        shutil.copytree(original, copy)
    write_run(original, "caffe train 'my model'", model)
    for copy in copies:
        assert refused(copy, f"is a copy, or was moved: the training writes its run to {original}. Open that run") == str(original)
    assert words_of(original)[1] == str(model)
    shutil.rmtree(original)
    for copy in copies:
        assert refused(copy, f"writes its run to {original}, which is no longer there. Move the folder back to continue it.") == ""


@pytest.mark.parametrize("copy_of", [lambda model, copy: shutil.copytree(model, copy), lambda model, copy: shutil.copytree(model, copy, copy_function=os.link),
                                     lambda model, copy: shutil.copytree(model, copy, copy_function=os.symlink)])
def test_a_model_that_was_copied_with_its_run(model, tmp_path, copy_of):
    """Its files may be those of the original."""
    copy_of(model, tmp_path / "copy")
    why = "is a copy, or was moved: .* Open that run .* To train this copy of the model, use Train on the page of copy."
    assert refused(tmp_path / "copy" / "runs" / "1", why) == str(model / "runs" / "1")


def test_a_run_of_an_older_version(tmp_path):
    write_run(tmp_path / "a", "caffe train --solver=s", tmp_path, run_dir="")
    assert refused(tmp_path / "a", "did not record its folder, so that it may be a copy. Use the command .*: caffe train --solver=s") == ""


@pytest.mark.parametrize("command, name", [("caffe train .", "2"), ("caffe train . --run_dir=runs/long", "long")])
def test_a_run_whose_snapshots_another_has_continued(model, command, name):
    write_run(model / "runs" / name, command, model)
    with pytest.raises(CannotResume, match=f"{name} was trained later and has the newest snapshots of {model}/snapshots/m") as error:
        words_of(model / "runs" / "1")
    assert error.value.run == str(model / "runs" / name)
    assert words_of(model / "runs" / name)[1] == str(model)


def test_snapshots_beyond_the_end_of_a_run(model):
    (model / "snapshots" / "m_iter_40.solverstate.h5").touch()
    assert words_of(model / "runs" / "1")
    (model / "snapshots" / "m_iter_60.solverstate").touch()
    with pytest.raises(CannotResume, match="is that of iteration 60, beyond the 40 of this run"):
        words_of(model / "runs" / "1")


@pytest.mark.parametrize("solver, field, given", [("max_iter: 40", "max_iter", 40), ("max_epoch: 6", "max_epoch", 6)])
def test_a_longer_training(model, solver, field, given):
    command = f"caffe train . --set=base_lr=0.1 --set {field}={given}"
    write_run(model / "runs" / "1", command, model, solver=solver)
    assert is_done(read(model / "runs" / "1"))
    found = resumption(read(model / "runs" / "1"))
    assert (found.field, found.value) == (field, given)
    assert found.until(90.0).words == ["train", ".", "--set=base_lr=0.1", "--auto_resume", f"--run_dir={model}/runs/1", f"--set={field}=90"]
    for value, said in ((given, given), (given + 0.5, given + 0.5), (None, "empty"), ("", "")):
        with pytest.raises(caffe.InvalidArgument, match=f"{field} is {said}, but the training has had {given} already; give more"):
            found.until(value)


def test_a_model_that_is_trained(model):
    assert finished_run(model).name == "1"
    for more in ("max_iter: 41", "max_epoch: 100"):  # its user wants more
        (model / "solver.prototxt").write_text(more)
        assert finished_run(model) is None
    write_run(model / "runs" / "2", "caffe train .", model, iteration=20, reason="stopped")
    (model / "solver.prototxt").write_text("max_iter: 40")
    assert finished_run(model) is None
    shutil.rmtree(model / "runs")
    assert finished_run(model) is None


@pytest.mark.parametrize("iteration, reason, done", [(40, "stopped", True), (39, "stopped", False), (20, "finished", True), (20, "early stopping", False), (39, "", False)])
def test_what_is_done(tmp_path, iteration, reason, done):
    write_run(tmp_path / "a", "caffe train --solver=s --run_dir=a", tmp_path, iteration=iteration, reason=reason, host=os.uname().nodename)
    assert is_done(read(tmp_path / "a")) == done


def test_the_time_that_is_left():
    """Counts the newest session alone: it may have begun days after the last one ended."""
    run = types.SimpleNamespace(state="running", stop_iteration=100, iteration=60, session={"start": "1970-01-02T00:00:00Z"},
                                series={"train/learning_rate": types.SimpleNamespace(steps=np.array([10, 20, 50, 60]), times=np.array([5.0, 15.0, 86400 + 10.0, 86400 + 20.0]))})
    now = 86400 + 25.0
    assert time_left(run, now) == 40 - 5
    run.session = {"start": "1970-01-02T00:00:15Z"}
    assert time_left(run, now) is None

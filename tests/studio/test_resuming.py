"""How runs continue, also those that were copied: nothing may be written to the folder of the original."""
import json
import os
import shutil

import pytest

import caffe
from caffe.runs import Run
from caffe.studio.resuming import CannotResume, finished_run, is_done, require_own, resumption


def write_run(place, command, working, iteration=40, snapshot="snapshots/m_iter_40.solverstate", solver='snapshot_prefix: "snapshots/m" max_iter: 40', **session):
    place.mkdir(parents=True, exist_ok=True)
    (place / "run.json").write_text(json.dumps({"sessions": [{"start": f"2026-01-01T00:00:{len(os.listdir(place.parent)):02}Z", "reason": "finished", "stop_iteration": 40,
                                                               "command": command, "folder": str(working), **session}]}))
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


@pytest.mark.parametrize("named", ["'my model'", "'../there/my model/'", "'--solver=my model'", "--solver 'my model'", "."])
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


def test_a_run_that_was_copied_alone(tmp_path):
    write_run(tmp_path / "runs" / "a", "caffe train --solver=s --run_dir=runs/a", tmp_path)
    shutil.copytree(tmp_path / "runs" / "a", tmp_path / "copy")
    for act in (words_of, lambda place: require_own(read(place))):
        with pytest.raises(CannotResume, match=f"is a copy, or was moved: .* writes its run to {tmp_path}/runs/a. Open that run") as error:
            act(tmp_path / "copy")
        assert error.value.run == str(tmp_path / "runs" / "a")
    shutil.rmtree(tmp_path / "runs")
    with pytest.raises(CannotResume, match="where the run is no longer. Move the folder back") as error:
        words_of(tmp_path / "copy")
    assert error.value.run == ""


def test_a_model_that_was_copied_with_its_run(model, tmp_path):
    """The copy trains in its own folder, whether or not the original is still there."""
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    for _ in range(2):
        assert words_of(copy / "runs" / "1") == (["train", ".", "--auto_resume", f"--run_dir={copy}/runs/1"], str(copy))
        with pytest.raises(CannotResume, match="is a copy, or was moved"):
            require_own(read(copy / "runs" / "1"))
        shutil.rmtree(model, ignore_errors=True)


@pytest.mark.parametrize("change, why", [
    (lambda copy, model: (copy / "solver.prototxt").write_text(f'snapshot_prefix: "{model}/snapshots/m"'), "would be written to .*my model/snapshots/m, outside of .*copy"),
    (lambda copy, model: (copy / "runs" / "1" / "solver.prototxt").write_text('snapshot_prefix: "../my model/m"'), "would be written to .*my model/m, outside of .*copy"),
    (lambda copy, model: (shutil.rmtree(copy / "snapshots"), os.symlink(model / "snapshots", copy / "snapshots")), "would be written to .*my model/snapshots/m, outside"),
    (lambda copy, model: (copy / "snapshots" / "m_iter_40.solverstate").unlink(), "is a copy, or was moved"),
    (lambda copy, model: (copy / "deploy.prototxt").unlink(), "is a copy, or was moved")])
def test_a_copied_model_that_would_write_to_the_original(model, tmp_path, change, why):
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    change(copy, model)
    with pytest.raises(CannotResume, match=why):
        words_of(copy / "runs" / "1")


@pytest.mark.parametrize("name", ["2", "saved"])
def test_a_run_that_was_copied_within_its_model(model, name):
    """Both would write the same snapshots."""
    shutil.copytree(model / "runs" / "1", model / "runs" / name)
    with pytest.raises(CannotResume, match="is a copy, or was moved") as error:
        words_of(model / "runs" / name)
    assert error.value.run == str(model / "runs" / "1")
    assert words_of(model / "runs" / "1")[1] == str(model)


def test_an_older_run_of_a_model(model):
    write_run(model / "runs" / "2", "caffe train .", model)
    with pytest.raises(CannotResume, match="Run 2 of this model is newer") as error:
        words_of(model / "runs" / "1")
    assert error.value.run == str(model / "runs" / "2")


@pytest.mark.parametrize("solver, field, given", [("max_iter: 40", "max_iter", 40), ("max_epoch: 6", "max_epoch", 6)])
def test_a_longer_training(model, solver, field, given):
    command = f"caffe train . --set=base_lr=0.1 --set {field}={given}"
    write_run(model / "runs" / "1", command, model, solver=solver)
    assert is_done(read(model / "runs" / "1"))
    found = resumption(read(model / "runs" / "1"))
    assert (found.field, found.value) == (field, given)
    assert found.until(90.0).words == ["train", ".", "--set=base_lr=0.1", "--auto_resume", f"--run_dir={model}/runs/1", f"--set={field}=90"]
    for value, said in ((given, given), (None, "empty"), ("", "")):
        with pytest.raises(caffe.InvalidArgument, match=f"{field} is {said}, but the training has had {given} already; give more"):
            found.until(value)


def test_a_model_that_is_trained(model):
    assert finished_run(model).name == "1"
    (model / "solver.prototxt").write_text("max_iter: 41")  # its user wants more
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

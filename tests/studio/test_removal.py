"""What is removed can be put back, and nothing that is needed is removed."""
import json
import os

import pytest

import caffe
from caffe.studio.jobs import Jobs
from caffe.studio.removal import remove
from caffe.studio.workspace import Workspace


@pytest.fixture
def place(tmp_path):
    for name in ("photos", "pets_model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    workspace = Workspace(tmp_path)
    return workspace, Jobs(workspace.path("jobs"))


def test_a_folder_is_moved_aside(place):
    workspace, jobs = place
    for number in (1, 2):
        moved = remove(workspace, jobs, "photos")
        assert moved == f".cortado/removed/{number}/photos" and workspace.folders() == ["pets_model"]
        os.rename(os.path.join(workspace.root, moved), workspace.inside("photos"))
    assert (workspace.inside("photos") and open(workspace.inside("photos/file"), encoding="utf-8").read()) == "photos"


@pytest.mark.parametrize("name", ["", ".", "missing", "photos/file", "..", "photos/../.."])
def test_what_is_no_folder_of_the_workspace(place, name):
    with pytest.raises(caffe.InvalidArgument, match="there is no such folder|outside of"):
        remove(*place, name)


def test_notes_go_with_their_runs(place):
    workspace, jobs = place
    for name in ("pets_model", "pets_model/runs/1", "pets_model_2"):
        workspace.notes.set(name, ["bad"], f"of {name}")
    moved = remove(workspace, jobs, "pets_model")
    assert [workspace.notes.of(name)["note"] for name in ("pets_model", "pets_model/runs/1", "pets_model_2")] == ["", "", "of pets_model_2"]
    assert workspace.notes.of(f"{moved}/runs/1") == {"tags": ["bad"], "note": "of pets_model/runs/1"}


def test_notes_stay_with_a_folder_that_stays(place, monkeypatch):
    workspace, jobs = place
    workspace.notes.set("photos", [], "kept")
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(18, "Invalid cross-device link")))
    with pytest.raises(caffe.IoError, match="photos: cannot be moved to .cortado/removed/1/photos: Invalid cross-device link"):
        remove(workspace, jobs, "photos")
    assert workspace.notes.of("photos")["note"] == "kept"


@pytest.mark.parametrize("name", [".cortado/jobs", ".cortado", "photos/../.cortado"])
def test_hidden_folders_stay(place, name):
    with pytest.raises(caffe.InvalidArgument, match="is hidden"):
        remove(*place, name)


@pytest.mark.parametrize("words", [["train", "pets_model"], ["export", "--output=pets_model/model.onnx"], ["sweep", "./pets_model/"]])
def test_what_a_job_needs(place, words):
    workspace, jobs = place
    job = jobs.add("train", "train pets_model", ["caffe", *words], workspace.root)
    with pytest.raises(caffe.InvalidArgument, match=f"job {job.id} .train pets_model. is queued and needs it"):
        remove(workspace, jobs, "pets_model")
    remove(workspace, jobs, "photos")
    jobs.stop(job.id, "cancel")
    remove(workspace, jobs, "pets_model")


def test_a_training_that_goes_on(place):
    workspace, jobs = place
    run = os.path.join(workspace.root, "pets_model", "runs", "1")
    os.makedirs(run)
    session = {"start": "2099-01-01T00:00:00Z", "host": os.uname().nodename, "process": os.getpid()}
    with open(os.path.join(run, "run.json"), "w", encoding="utf-8") as file:
        json.dump({"sessions": [session]}, file)
    assert workspace.run("pets_model/runs/1").state == "running"
    with pytest.raises(caffe.InvalidArgument, match="the training pets_model/runs/1 goes on; stop it first"):
        remove(workspace, jobs, "pets_model")

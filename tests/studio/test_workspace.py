"""The folder that the studio shows, and what it keeps there."""
import json
import os

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

import caffe
from caffe.studio.files import add_files
from caffe.studio.storage import Notes, read_json
from caffe.studio.workspace import Workspace


def run(folder, time=1.0, **session):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", "reason": "finished", **session}]}))
    (folder / "metrics.jsonl").write_text(json.dumps({"event": "train", "time": time, "iteration": 10, "loss": 0.5, "outputs": {}}) + "\n")


def test_runs_newest_first(tmp_path):
    for name, time in (("a", 3.0), ("b/c", 7.0), ("d", 5.0)):
        run(tmp_path / name, time)
    workspace = Workspace(tmp_path)
    assert [workspace.relative(summary.folder) for summary in workspace.summaries()] == ["b/c", "d", "a"]
    run(tmp_path / "e", 9.0)
    assert workspace.relative(workspace.summaries()[0].folder) == "e"


def test_a_run_that_changes_is_read_again(tmp_path):
    run(tmp_path / "a")
    workspace = Workspace(tmp_path)
    assert workspace.summaries()[0].figures["train/loss"] == 0.5 and workspace.run("a").series["train/loss"].last == 0.5
    with open(tmp_path / "a" / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({"event": "train", "time": 2.0, "iteration": 20, "loss": 0.25}) + "\n")
    assert workspace.summaries()[0].figures["train/loss"] == 0.25 and workspace.run("a").series["train/loss"].last == 0.25


@pytest.mark.parametrize("name", ["..", "../other", "/etc", "a/../../other", "link", "link/secret.txt", "a/\0"])
def test_what_is_outside(tmp_path, name):
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "other", tmp_path / "root" / "link")
    with pytest.raises(caffe.InvalidArgument):
        Workspace(tmp_path / "root").inside(name)


@pytest.mark.parametrize("name", [".cortado", ".cortado/jobs", "a/.hidden/b", "link"])
def test_what_is_hidden(tmp_path, name):
    (tmp_path / ".cortado").mkdir()
    os.symlink(tmp_path / ".cortado", tmp_path / "link")
    with pytest.raises(caffe.InvalidArgument, match="is hidden"):
        Workspace(tmp_path).inside(name)


def test_names_that_no_address_can_have(tmp_path):
    run(tmp_path / "good")
    run(tmp_path / os.fsdecode(b"r\xe9seau"))
    run(tmp_path / "two\nlines\n")
    workspace = Workspace(tmp_path)
    assert [summary.name for summary in workspace.summaries()] == ["good", "two\nlines\n"] and workspace.folders() == ["good", "two\nlines\n"]
    for name in ("a\0b", "\ud800", os.fsdecode(b"r\xe9seau")):
        with pytest.raises(caffe.InvalidArgument, match="is not a name for this page"):
            workspace.inside(name)


def test_weights(tmp_path):
    (tmp_path / "pets" / "snapshots").mkdir(parents=True)
    for file in ("solver.prototxt", "deploy.prototxt", "a.caffemodel", "snapshots/b.caffemodel"):
        (tmp_path / "pets" / file).touch()
    os.symlink(tmp_path / "missing", tmp_path / "pets" / "snapshots" / "c.caffemodel")
    os.mkfifo(tmp_path / "pets" / "d.caffemodel")
    assert Workspace(tmp_path).weights() == ["pets/a.caffemodel", "pets/snapshots/b.caffemodel"]


def test_what_is_no_run(tmp_path):
    with pytest.raises(caffe.InvalidArgument, match="a: holds no run"):
        Workspace(tmp_path).run("a")
    with pytest.raises(caffe.InvalidArgument, match="missing: is not a folder"):
        Workspace(tmp_path / "missing")


def test_models_and_other_folders(tmp_path):
    for name in ("photos", "pets_model", "more/deep_model", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
        if name.endswith("model"):
            for file in ("solver.prototxt", "deploy.prototxt"):
                (tmp_path / name / file).write_text("")
    workspace = Workspace(tmp_path)
    assert workspace.models() == ["more/deep_model", "pets_model"] and workspace.folders() == ["more", "photos"]


def test_notes_are_kept_beside_the_runs(tmp_path):
    run(tmp_path / "a")
    before = sorted(os.listdir(tmp_path / "a"))
    notes = Workspace(tmp_path).notes
    assert notes.of("a") == {"tags": [], "note": ""}
    notes.set("a", ["good", "best"], "kept")
    assert Workspace(tmp_path).notes.of("a") == {"tags": ["good", "best"], "note": "kept"}
    assert sorted(os.listdir(tmp_path / "a")) == before


def test_two_studios_keep_each_others_notes(tmp_path):
    one, two = (Notes(str(tmp_path / "notes.json")) for _ in range(2))
    one.set("a", ["x"], "")
    two.set("b", ["y"], "")
    one.set("c", ["z"], "")
    assert [two.of(name)["tags"] for name in "abc"] == [["x"], ["y"], ["z"]]


@pytest.mark.parametrize("text", ['{"a": 7}', '{"a": {"tags": []}}', '{"a": {"tags": 7, "note": ""}}', '{"a": {"tags": [], "note": 7}}'])
def test_damaged_notes_of_a_run(tmp_path, text):
    (tmp_path / "notes.json").write_text(text)
    notes = Notes(str(tmp_path / "notes.json"))
    assert notes.of("a") == {"tags": [], "note": ""}
    notes.set("b", [], "new")
    assert notes.of("b")["note"] == "new"


@pytest.mark.parametrize("text, why", [
    ("", "notes.json:1:1: Expecting value"), ('{\n "a": {"tags": [], "note": "x"},\n}', "notes.json:[23]:[0-9]+: "), ("[]", "notes.json: holds list instead of an object"),
    ("\x00", "notes.json:1:1: Expecting value"), ("[" * 100000, "notes.json: maximum recursion")])
def test_a_damaged_file_of_notes_is_not_replaced(tmp_path, text, why):
    file = tmp_path / "notes.json"
    file.write_text(text)
    notes = Notes(str(file))
    for change in (lambda: notes.set("b", [], "new"), lambda: notes.move("a", "b")):
        with pytest.raises(caffe.InvalidArgument, match=f"{why}.*; fix the file, or move it away"):
            change()
    assert file.read_text() == text and notes.of("a") == {"tags": [], "note": ""}


def test_damaged_json(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100000)
    assert read_json(str(tmp_path / "a.json"), 7) == 7 and read_json(str(tmp_path / "b.json"), 8) == 8


@pytest.fixture
def files(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    Image.new("RGB", (600, 300), "red").save(root / "red.png")
    (root / "page.html").write_text("<script>1</script>")
    (root / "net.caffemodel").write_bytes(b"\1")
    (root / ".cortado").mkdir()
    (root / ".cortado" / "notes.json").write_text("{}")
    (tmp_path / "secret.txt").write_text("secret")
    app = FastAPI()
    add_files(app, Workspace(root))
    return TestClient(app)


def test_thumbnails(files):
    answer = files.get("/thumbnail?path=red.png")
    assert answer.headers["content-type"] == "image/jpeg" and answer.content[:3] == b"\xff\xd8\xff"
    assert files.get("/thumbnail?path=page.html").status_code == 415


def test_pages_run_without_the_studio(files):
    answer = files.get("/file?path=page.html")
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")


def test_downloads(files):
    answer = files.get("/file?path=net.caffemodel")
    assert answer.content == b"\1" and "attachment" in answer.headers["content-disposition"]
    assert "attachment" in files.get("/file?path=page.html&download=1").headers["content-disposition"]


@pytest.mark.parametrize("path", ["../secret.txt", "%2e%2e/secret.txt", "/etc/passwd", "missing.png", ".cortado/notes.json", "", ".", "a%00b"])
@pytest.mark.parametrize("address", ["/file", "/thumbnail"])
def test_files_that_are_not_given(files, address, path):
    assert files.get(f"{address}?path={path}").status_code == 404

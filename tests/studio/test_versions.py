"""Versions of data sets."""
import os

import pytest

import caffe
from caffe.studio.versions import Versions


def fill(folder, **files):
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_what_has_changed(tmp_path):
    versions, photos = Versions(str(tmp_path / "versions")), tmp_path / "photos"
    fill(photos, cats__a="a", cats__b="b", dogs__c="c")
    first = versions.record("photos", str(photos))
    assert first.number == 1 and versions.record("photos", str(photos)).number == 1
    fill(photos, cats__a="other", dogs__d="d")
    (photos / "cats" / "b").unlink()
    second = versions.record("photos", str(photos))
    assert second.number == 2 and second.differences(first) == (["dogs/d"], ["cats/b"], ["cats/a"])
    assert [version.number for version in versions.all("photos")] == [1, 2]


def test_a_file_that_is_only_touched(tmp_path):
    versions, photos = Versions(str(tmp_path / "versions")), tmp_path / "photos"
    fill(photos, a="a")
    versions.record("photos", str(photos))
    os.utime(photos / "a", (1, 1))
    assert versions.record("photos", str(photos)).number == 1


def test_models_of_a_version(tmp_path):
    versions, photos = Versions(str(tmp_path / "versions")), tmp_path / "photos"
    fill(photos, a="a")
    versions.made("photos", versions.record("photos", str(photos)).number, "photos_model")
    assert versions.all("photos")[0].models == ["photos_model"]
    assert versions.of_model("photos_model") == ("photos", 1) and versions.of_model("other") is None


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00"])
def test_a_damaged_version(tmp_path, content):
    versions, photos = Versions(str(tmp_path / "versions")), tmp_path / "photos"
    fill(photos, a="a")
    versions.record("photos", str(photos))
    (tmp_path / "versions" / "_photos" / "0001.json.gz").write_bytes(content)
    assert versions.all("photos") == [] and versions.record("photos", str(photos)).number == 1


def test_a_folder_without_files(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(caffe.InvalidArgument, match="photos: holds no file"):
        Versions(str(tmp_path / "versions")).record("photos", str(tmp_path / "photos"))


def test_what_is_no_file_is_named(tmp_path):
    versions, photos = Versions(str(tmp_path / "versions")), tmp_path / "photos"
    fill(photos, cats__a="a")
    os.symlink(tmp_path / "missing", photos / "cats" / "link")
    os.symlink("circle", photos / "circle")
    os.mkfifo(photos / "pipe")
    version = versions.record("photos", str(photos))
    assert list(version.files) == ["cats/a"] and version.skipped == ["cats/link", "circle", "pipe"]
    assert versions.all("photos")[0].skipped == version.skipped
    (photos / "pipe").unlink()
    again = versions.record("photos", str(photos))
    assert again.number == 1 and again.skipped == ["cats/link", "circle"]


def test_a_set_with_a_long_name(tmp_path):
    versions = Versions(str(tmp_path / "versions"))
    for number, name in enumerate(("\u732b" * 80, "\u732b" * 79 + "/x", "a" * 199, "a" * 200)):
        fill(tmp_path / name, x=name)
        assert versions.record(name, str(tmp_path / name)).number == 1
        versions.made(name, 1, f"model{number}")
        assert versions.of_model(f"model{number}") == (name, 1) and versions.all(name)[0].models == [f"model{number}"]


@pytest.mark.parametrize("text, why", [("{,", "models.json:1:2: "), ("[]", "holds list instead of an object")])
def test_a_damaged_file_of_models_is_not_replaced(tmp_path, text, why):
    versions, photos = Versions(str(tmp_path / "versions")), tmp_path / "photos"
    fill(photos, a="a")
    versions.record("photos", str(photos))
    models = tmp_path / "versions" / "_photos" / "models.json"
    models.write_text(text)
    with pytest.raises(caffe.InvalidArgument, match=why):
        versions.made("photos", 1, "photos_model")
    assert models.read_text() == text and versions.all("photos")[0].models == [] and versions.of_model("photos_model") is None


def test_sets_of_similar_names(tmp_path):
    versions = Versions(str(tmp_path / "versions"))
    for name in ("a/b", "a__b", "a%2Fb"):
        fill(tmp_path / name, x=name)
        versions.record(name, str(tmp_path / name))
    assert [len(versions.all(name)) for name in ("a/b", "a__b", "a%2Fb")] == [1, 1, 1]

"""Archives that users send."""
import stat
import zipfile

import pytest

import caffe
from caffe.studio.uploads import unpack


def archive(folder, **files):
    path = folder / "set.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for name, text in files.items():
            content.writestr(name, text)
    return str(path)


def names(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def refuse(tmp_path, file, why):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(caffe.InvalidArgument, match=why):
        unpack(file, str(tmp_path / "set"))
    assert sorted(tmp_path.iterdir()) == before, "nothing is left"


def test_folders_of_classes(tmp_path):
    unpack(archive(tmp_path, **{"cat/1.jpg": "a", "dog/2.jpg": "b", "dog/.DS_Store": "", "__MACOSX/cat/1.jpg": ""}), str(tmp_path / "set"))
    assert names(tmp_path / "set") == ["cat/1.jpg", "dog/2.jpg"]


def test_a_folder_around_all(tmp_path):
    unpack(archive(tmp_path, **{"pets/cat/1.jpg": "a", "pets/dog/2.jpg": "b"}), str(tmp_path / "set"))
    assert names(tmp_path / "set") == ["cat/1.jpg", "dog/2.jpg"]


def test_a_single_class_stays_a_class(tmp_path):
    unpack(archive(tmp_path, **{"cat/1.jpg": "a"}), str(tmp_path / "set"))
    assert names(tmp_path / "set") == ["cat/1.jpg"]


@pytest.mark.parametrize("name", ["../evil.jpg", "a/../../evil.jpg", "/etc/evil.jpg", "..\\evil.jpg", "\\evil.jpg"])
def test_names_outside(tmp_path, name):
    refuse(tmp_path, archive(tmp_path, **{"cat/1.jpg": "a", name: "b"}), "outside of its folder")
    assert not (tmp_path.parent / "evil.jpg").exists()


def test_links(tmp_path):
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w") as content:
        entry = zipfile.ZipInfo("cat/1.jpg")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        content.writestr(entry, "/etc/passwd")
    refuse(tmp_path, str(path), "has a link")


def test_bombs(tmp_path):
    refuse(tmp_path, archive(tmp_path, **{"cat/1.jpg": "\0" * 50_000_000}), "images do not compress like that")


def test_an_archive_that_lies_about_sizes(tmp_path):
    path = archive(tmp_path, **{"cat/1.jpg": "x" * 100_000})
    content = bytearray(open(path, "rb").read())
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # the uncompressed sizes in both headers
        begin = content.find(mark) + place
        content[begin:begin + 4] = (10).to_bytes(4, "little")
    open(path, "wb").write(content)
    refuse(tmp_path, path, "larger than the archive says|cannot be unpacked")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + b"\0" * 40, b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_archive(tmp_path, content):
    path = tmp_path / "set.zip"
    path.write_bytes(content)
    refuse(tmp_path, str(path), "cannot be unpacked|has no files")


def test_damaged_parts(tmp_path):
    path = archive(tmp_path, **{"cat/1.jpg": "abc" * 1000})
    content = bytearray(open(path, "rb").read())
    content[45:55] = b"\xff" * 10
    open(path, "wb").write(content)
    refuse(tmp_path, path, "cannot be unpacked")


def test_a_name_that_is_taken(tmp_path):
    (tmp_path / "set").mkdir()
    refuse(tmp_path, archive(tmp_path, **{"cat/1.jpg": "a"}), "set: already exists; give another name")

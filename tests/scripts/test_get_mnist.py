"""scripts/get_mnist.py: the places where it looks for digits, and its messages. Mirrors are folders here."""
import gzip
import hashlib
import pathlib
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import get_mnist  # noqa: E402

np = pytest.importorskip("numpy")


def write_files(folder, content=b"digits", suffix=".gz"):
    folder.mkdir(parents=True, exist_ok=True)
    for name in get_mnist.SHA256:
        data = gzip.compress(content + name.encode(), mtime=0) if suffix else content
        (folder / (name if suffix else name[:-3])).write_bytes(data)
    return folder


@pytest.fixture(name="mirror")
def make_mirror(tmp_path, monkeypatch):
    """A mirror with the right files."""
    folder = write_files(tmp_path / "mirror")
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in get_mnist.SHA256}
    monkeypatch.setattr(get_mnist, "SHA256", sums)
    return folder.as_uri() + "/"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_given_folder_is_used(tmp_path, suffix):
    folder = write_files(tmp_path / "given", suffix=suffix)
    found, what = get_mnist.locate(str(folder), tmp_path / "data", mirrors=())
    assert found == folder
    assert "not compared with the original files" in what


def test_a_given_folder_without_the_files_is_an_error(tmp_path):
    folder = write_files(tmp_path / "given")
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(SystemExit, match="has no t10k-labels-idx1-ubyte, plain or .gz"):
        get_mnist.locate(str(folder), tmp_path / "data", mirrors=())


def test_downloads_once(tmp_path, mirror):
    folder, what = get_mnist.locate(None, tmp_path / "data", mirrors=[mirror])
    assert folder == tmp_path / "data" / "mnist"
    assert f"downloaded from {mirror}" in what
    again, what = get_mnist.locate(None, tmp_path / "data", mirrors=())
    assert again == folder
    assert "the original files, by SHA-256" in what


def test_a_wrong_download_is_not_kept_and_the_next_mirror_is_asked(tmp_path, mirror, capsys):
    wrong = write_files(tmp_path / "wrong", content=b"tampered")
    folder, what = get_mnist.locate(None, tmp_path / "data", mirrors=[wrong.as_uri() + "/", mirror])
    assert f"downloaded from {mirror}" in what
    assert "SHA-256 differs" in capsys.readouterr().err
    assert not list(folder.glob("*.partial"))


def test_without_a_mirror_digits_are_rendered_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(get_mnist, "ROOT", tmp_path)
    script = tmp_path / "scripts" / "make_digits.py"
    script.parent.mkdir()
    script.write_text("import sys; sys.path.insert(0, %r)\nimport make_digits\n"
                      "sys.argv += ['--train', '30', '--test', '20']\nmake_digits.main()\n" % str(ROOT / "scripts"))
    nowhere = (tmp_path / "nowhere").as_uri() + "/"
    folder, what = get_mnist.locate(None, tmp_path / "data", mirrors=[nowhere])
    assert what.startswith("NOT MNIST")
    images = (folder / "train-images-idx3-ubyte").read_bytes()
    assert struct.unpack(">4I", images[:16]) == (2051, 30, 28, 28)
    assert len(images) == 16 + 30 * 28 * 28
    labels = (folder / "t10k-labels-idx1-ubyte").read_bytes()
    assert struct.unpack(">2I", labels[:8]) == (2049, 20)
    assert sorted(labels[8:]) == sorted(list(range(10)) * 2)


def test_rendered_digits_are_the_same_each_time_and_not_all_alike():
    import make_digits
    images, labels = make_digits.make(seed=7, count=60)
    again, _ = make_digits.make(seed=7, count=60)
    assert (images == again).all()
    for digit in range(10):
        mine = images[labels == digit].astype(int)
        assert mine.max() > 150, f"digit {digit} has no ink"
        assert abs(mine[0] - mine[1]).mean() > 2, f"digit {digit} looks the same twice"


@pytest.mark.parametrize("arguments, complaint", [
    (["--iterations", "many"], "takes a whole number"),
    (["--iterations=0"], "takes a whole number"),
    (["--fast"], "unknown option --fast"),
])
def test_quickstart_refuses_bad_options(arguments, complaint):
    done = subprocess.run(["bash", ROOT / "scripts" / "quickstart.sh", *arguments],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_install_dependencies_without_apt_names_what_is_missing(tmp_path):
    for tool in ("bash", "sed", "id"):
        (tmp_path / tool).symlink_to(f"/bin/{tool}" if pathlib.Path(f"/bin/{tool}").exists() else f"/usr/bin/{tool}")
    done = subprocess.run(["/bin/bash", ROOT / "scripts" / "install_dependencies.sh"], env={"PATH": str(tmp_path)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no apt-get" in done.stderr and "cmake" in done.stderr and "libprotobuf-dev" in done.stderr

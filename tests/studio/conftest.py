"""Tests of caffe.studio. They need NiceGUI and more: scripts/install_dependencies.sh studio.

The tests of pages share one studio, because NiceGUI has one server in a process."""
import contextlib
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

pytest.importorskip("nicegui")


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    import samples

    return samples.make_root(tmp_path_factory.mktemp("studio"))


@pytest.fixture(scope="session")
def studio(root):
    import browser

    with browser.served(root) as served:
        yield served


@pytest.fixture
def page(studio):
    import browser

    with browser.browsed(studio[0]) as found:
        yield found
        assert not found.problems


@pytest.fixture
def model(root):
    """A model that has weights, as far as the pages look."""
    folder = root / "small"
    (folder / "snapshots").mkdir(parents=True)
    (folder / "snapshots" / "a.caffemodel").touch()
    (folder / "snapshots" / "gone.caffemodel").symlink_to(root / "missing")
    (folder / "solver.prototxt").write_text('net: "train_val.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 8')
    for file in ("deploy.prototxt", "train_val.prototxt"):
        (folder / file).write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 2 } } }\n')
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def still(studio, monkeypatch):
    """The Studio, which starts no job."""
    monkeypatch.setattr(studio[1].jobs, "start_next", lambda: [])
    return studio[1]


@pytest.fixture
def full_disk(monkeypatch):
    """Nothing that the studio keeps can be written while this is entered."""
    import caffe
    from caffe.studio import storage

    def refuse(file, _content):
        raise caffe.IoError(f"{file}: cannot be written: No space left on device")

    @contextlib.contextmanager
    def full():
        with monkeypatch.context() as patched:
            patched.setattr(storage, "write_whole", refuse)
            yield
    return full

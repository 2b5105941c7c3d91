"""Names of folders and files that begin with a dash, have commas, or are not UTF-8."""
import os
import subprocess
import sys

import pytest

from programs import BINARIES
from test_new import caffe, classes, folder  # noqa: F401 # pylint: disable=unused-import

for package in ("sklearn", "jinja2"):
    pytest.importorskip(package, reason=f"{package} is not installed (scripts/install_dependencies.sh test)")


def trained(folder):
    """The folder of a model after two iterations of training."""
    classes(folder / "photos")
    caffe(folder, "new", "photos", "--output=m", "--size=32", "--epochs=1")
    caffe(folder, "train", "m", "--set=max_epoch=0", "--set=max_iter=2", "--set=test_interval=2")
    return folder / "m"


def test_values_that_begin_with_a_dash(folder):
    classes(folder / "photos")
    assert "next:  caffe train ./-m" in caffe(folder, "new", "photos", "--output=-m", "--size=32", "--epochs=1")
    assert (folder / "-m" / "deploy.prototxt").is_file()
    for words in (["serve", "x=./-m/deploy.prototxt", "--weights=-w", "--token=-x", "--host=-"], ["sweep", "./-m", "--metric=-x", "base_lr=1,2"],
                  ["import", "none.onnx", "--output=-net"], ["export", "./-m", "--output=-net.onnx", "--inputs=-x.npz"],
                  ["calibrate", "none.prototxt", "--weights=-w", "--output=-x"], ["evaluate", "none.prototxt", "--page=-x.html"]):
        said = caffe(folder, *words, status=1)
        assert "expected one argument" not in said and "usage" not in said, said


def test_a_model_in_a_folder_with_commas(folder):
    trained(folder).rename(folder / " a, b")
    assert "written:  a, b/evaluation.html  a, b/evaluation.json" in caffe(folder, "evaluate", " a, b")
    said = caffe(folder, "evaluate", " a, b", "--weights= a, b/snapshots/m_best.caffemodel", "--page=c,d.html", "--metrics=c,d.json")
    assert "c,d.html" in said and (folder / "c,d.html").is_file() and (folder / "c,d.json").is_file()


def test_a_model_in_a_folder_that_is_no_utf_8(folder):
    name = os.fsdecode(b"m\xff")
    trained(folder).rename(folder / name)
    done = subprocess.run([BINARIES / "caffe", "evaluate", name], cwd=folder, check=False, capture_output=True,
                          env={**os.environ, "PYTHONPATH": "", "PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr
    assert rb"written: m\udcff/evaluation.html m\udcff/evaluation.json" in done.stdout
    assert (folder / name / "evaluation.json").is_file()


def test_another_file_is_not_said_to_be_the_output(folder):
    classes(folder / "photos")
    said = caffe(folder, "new", "photos", "--output=m", "--from=photos/red/0.png", status=1)
    assert said.startswith("caffe new: photos/red/0.png: "), said

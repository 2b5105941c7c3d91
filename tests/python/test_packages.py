"""The commands that errors give for packages that are missing."""
import pathlib
import sys
import sysconfig

import pytest

import caffe
from caffe import _packages
from caffe._output import run_command


@pytest.fixture(name="python")
def make_python(tmp_path, monkeypatch):
    """python(is_managed, is_virtual): this interpreter seems to be of this kind."""
    def make(is_managed, is_virtual=False):
        if is_managed:
            (tmp_path / "EXTERNALLY-MANAGED").touch()
        monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(tmp_path)}.__getitem__)
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        monkeypatch.setattr(sys, "base_prefix", "/usr")
        monkeypatch.setattr(sys, "prefix", "/home/me/venv" if is_virtual else "/usr")

    return make


@pytest.mark.parametrize("kind", [(False, False), (False, True), (True, True)])
def test_pip_where_it_works(python, kind):
    python(*kind)
    assert _packages.install_command("scikit-learn", "onnx") == "/usr/bin/python3 -m pip install scikit-learn onnx"


def test_debian_s_packages_where_pip_is_refused(python):
    python(is_managed=True)
    assert _packages.install_command("scikit-learn", "jinja2") == "apt-get install python3-sklearn python3-jinja2"


def test_an_environment_for_packages_that_debian_lacks(python):
    """It holds the packages of all commands, or the advice of one command would leave PYTHON without those of another."""
    python(is_managed=True)
    assert _packages.install_command("jinja2", "optuna") == (
        "/usr/bin/python3 -m venv ~/cortado-venv && "
        "~/cortado-venv/bin/pip install numpy protobuf pillow scikit-learn jinja2 onnx onnxruntime pycocotools optuna && "
        "export PYTHON=~/cortado-venv/bin/python3")
    command = ("python3 -m venv ~/cortado-venv", f"~/cortado-venv/bin/pip install {' '.join(_packages.OF_ALL_COMMANDS)}")
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text(encoding="utf-8")
    assert all(part in page for part in command)


def test_the_error_names_the_package_and_its_command(python, monkeypatch):
    python(is_managed=True)
    for module, command in (("PIL.Image", "install python3-pil"), ("torch", "pip install .* torch onnxscript"), ("optuna", "pip install .* optuna")):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
        with pytest.raises(caffe.Unsupported, match=f"^this needs the package .*{command}"):
            _packages.need(module)


def test_a_command_that_lacks_a_package_says_so_in_a_line(python, capfd):
    """Also where nobody has thought of it: a module that is imported late."""
    python(is_managed=True)

    def work():
        raise ModuleNotFoundError("No module named 'PIL.Image'", name="PIL.Image")

    assert run_command("new", work) == 1
    assert capfd.readouterr().err == ("caffe new: this needs the package pillow, which this Python cannot import (No module named "
                                      "'PIL.Image'): apt-get install python3-pil\n")


def test_a_module_of_ours_that_is_missing_is_a_mistake():
    def work():
        raise ModuleNotFoundError("No module named 'caffe.nothing'", name="caffe.nothing")

    with pytest.raises(ModuleNotFoundError):
        run_command("new", work)


def test_no_package_is_advised_for_a_module_of_python():
    said = str(_packages.missing(ModuleNotFoundError("No module named '_sqlite3'", name="_sqlite3")))
    assert "needs the module _sqlite3 of Python" in said and "install" not in said

"""The commands that errors give for packages that are missing."""
import sys
import sysconfig

import pytest

import caffe
from caffe import _packages


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
    python(is_managed=True)
    assert _packages.install_command("jinja2", "onnx") == (
        "/usr/bin/python3 -m venv ~/cortado-venv && ~/cortado-venv/bin/pip install numpy protobuf jinja2 onnx && "
        "export PYTHON=~/cortado-venv/bin/python3")


def test_the_error_names_the_package_and_its_command(python, monkeypatch):
    python(is_managed=True)
    for module, command in (("PIL.Image", "install python3-pil"), ("torch", "pip install numpy protobuf torch onnxscript"), ("optuna", "pip install numpy protobuf optuna")):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
        with pytest.raises(caffe.Unsupported, match=f"^this needs the package .*{command}"):
            _packages.need(module)

"""Programs train nets with Python layers, as Caffe's programs did if built with Python."""
import os
import pathlib
import subprocess

import pytest

from built_package import BUILD, ROOT

PROGRAM = pathlib.Path(BUILD) / "bin" / "caffe"
EXAMPLE = ROOT / "examples" / "python_layer"
NET = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 } } }
layer { name: "mine" type: "Python" bottom: "x" top: "y" python_param { module: "my_layers" layer: "Mine" } }
"""
LAYER = """
import caffe
class Mine(caffe.Layer):
    def setup(self, bottom, top): pass
    def reshape(self, bottom, top): top[0].reshape(*bottom[0].shape)
    def forward(self, bottom, top): %s
    def backward(self, top, propagate_down, bottom): pass
"""

pytestmark = pytest.mark.skipif(not (PROGRAM.exists() and (PROGRAM.parent.parent / "lib/libcaffe_interpreter.so").exists()),
                                reason="no program caffe, or built without Python as a library")


def run(*arguments, folder, status=0, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, env={**inherited, **environment}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture(name="forward")
def make_forward(tmp_path):
    """forward(statement): the output of `caffe time` for a net with a layer that runs this statement; checks the status."""
    def forward(statement, status=0, net=NET, flags=("-allow_python",), **environment):
        (tmp_path / "my_layers.py").write_text(LAYER % statement)
        (tmp_path / "net.prototxt").write_text(net)
        return run("time", "net.prototxt", "-iterations=1", *flags, folder=tmp_path, status=status,
                   **{"PYTHONPATH": str(tmp_path), **environment})
    return forward


def test_the_example_learns_its_line():
    log = run("train", "examples/python_layer/linreg_solver.prototxt", folder=ROOT, PYTHONPATH=str(EXAMPLE))
    loss = float(log.rsplit("Iteration 200, loss = ")[1].split()[0])
    assert loss < 0.01


def test_a_wheel_of_h5py_is_told_whose_hdf5_it_calls(forward, tmp_path):
    """In the program, h5py calls the functions of the HDF5 that the program is linked with."""
    (tmp_path / "h5py").mkdir()
    (tmp_path / "h5py" / "version.py").write_text("hdf5_version_tuple = (1, 10, 8)\nhdf5_built_version_tuple = (2, 0, 0)\n")
    (tmp_path / "h5py" / "__init__.py").write_text("from . import version\nraise ValueError('Not a datatype')\n")
    message = forward("import h5py", status=1)
    assert "h5py was built for HDF5 2.0.0 and calls HDF5 1.10.8" in message and "python3-h5py" in message, message


def test_permission_is_asked_for(forward):
    """A net's file names code; a program without permission runs none of it."""
    message = forward("open('ran', 'w')", status=1, flags=())
    assert "net.prototxt:3:1: layer 'mine' (Python): class 'Mine' of module 'my_layers' would run Python code in this program" in message
    assert "-allow_python" in message and "allow_python: true" in message


def test_workers_share_the_interpreter():
    run("train", "examples/python_layer/linreg_solver.prototxt", "-workers=2", folder=ROOT, PYTHONPATH=str(EXAMPLE))


def test_the_current_folder_is_not_searched(forward):
    message = forward("pass", status=1, PYTHONPATH="")
    assert "net.prototxt:3:1: layer 'mine' (Python): in __init__ of layer 'mine' (my_layers.Mine): ModuleNotFoundError: " \
           "No module named 'my_layers'" in message
    assert "PYTHONPATH (sys.path); add its own" in message


def test_errors_name_layer_method_and_line(forward):
    message = forward("raise ValueError('too few')", status=1)
    assert "in forward of layer 'mine' (my_layers.Mine): ValueError: too few" in message
    assert "my_layers.py(6): forward" in message


def test_an_unknown_class(forward):
    message = forward("pass", status=1, net=NET.replace('"Mine"', '"Yours"'))
    assert "module 'my_layers' has no class 'Yours'" in message


def test_a_package_of_another_build(forward, tmp_path):
    (tmp_path / "caffe").mkdir()
    (tmp_path / "caffe" / "__init__.py").write_text("raise ImportError('not this one')")
    forward("top[0].data[...] = bottom[0].data")  # the build's own package comes first

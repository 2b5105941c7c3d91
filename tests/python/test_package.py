"""The module's interface: names, settings, type stubs, documentation."""
import ast
import importlib
import inspect
import os
import pathlib
import subprocess
import sys

import caffe
import caffe._caffe
import caffe.solver
import numpy as np
import pytest

from built_package import PACKAGE, ROOT


def run(script, **environment):
    return subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment},
                          text=True, capture_output=True, timeout=120, check=False)


def test_names_that_scripts_use():
    for name in ("Net SGDSolver NesterovSolver AdaGradSolver RMSPropSolver AdaDeltaSolver AdamSolver NCCL Timer init_log "
                 "log set_mode_cpu set_mode_gpu set_device Layer get_solver layer_type_list set_random_seed solver_count "
                 "set_solver_count solver_rank set_solver_rank set_multiprocess has_nccl __version__ TRAIN TEST "
                 "Classifier Detector io").split():
        assert hasattr(caffe, name), name
    assert (caffe.TRAIN, caffe.TEST) == (0, 1)


def test_limit_of_what_is_decoded(tmp_path):
    """A message of empty messages: two million layers from six million bytes."""
    (tmp_path / "w.caffemodel").write_bytes(b"\xa2\x06\x00" * 2000000)
    (tmp_path / "net.prototxt").write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 } } }')
    before = caffe.max_decoded_mb()
    try:
        caffe.set_max_decoded_mb(99)
        assert caffe.max_decoded_mb() == 99
        with pytest.raises(caffe.IoError, match="w.caffemodel.*the limit is 99 MiB.*caffe.set_max_decoded_mb"):
            caffe.Net(str(tmp_path / "net.prototxt"), str(tmp_path / "w.caffemodel"), caffe.TEST)
    finally:
        caffe.set_max_decoded_mb(before)


def test_settings():
    assert (caffe.solver_count(), caffe.solver_rank()) == (1, 0)
    caffe.set_solver_count(2)
    caffe.set_solver_rank(1)
    caffe.set_multiprocess(True)
    assert (caffe.solver_count(), caffe.solver_rank()) == (2, 1)
    caffe.set_solver_count(1)
    caffe.set_solver_rank(0)
    caffe.set_multiprocess(False)
    assert caffe.has_nccl() is False
    with pytest.raises(caffe.Unsupported, match="no communication between GPUs"):
        caffe.NCCL.new_uid()
    timer = caffe.Timer()
    timer.start()
    timer.stop()
    assert 0 <= timer.ms < 1000 and timer.ms == timer.ms


def test_seeds_repeat(write):
    file = write("""layer { name: 'x' type: 'DummyData' top: 'x'
                    dummy_data_param { shape { dim: 4 } data_filler { type: 'gaussian' } } }""")

    def draw():
        caffe.set_random_seed(11)
        return caffe.Net(file, caffe.TEST).forward()["x"].tolist()

    assert draw() == draw()


def test_log():
    done = run("import caffe; caffe.init_log(0, True); caffe.log('a line')\n"
               "try: caffe.init_log()\nexcept caffe.InvalidArgument as error: print(error)", GLOG_minloglevel="0")
    assert "a line" in done.stderr and "initialised already" in done.stdout and done.returncode == 0
    assert "a line" not in run("import caffe; caffe.init_log(1); caffe.log('a line')").stderr
    for start in ("", "caffe.init_log(); "):
        assert run(f"import caffe; {start}caffe.log('a line')", GLOG_minloglevel="2").stderr == ""
    for level in ("-1", "9"):
        assert run("import caffe; caffe.init_log()", GLOG_minloglevel=level).returncode == 0


def test_errors_are_of_documented_classes():
    bases = {caffe.InvalidArgument: ValueError, caffe.Unsupported: NotImplementedError, caffe.IoError: OSError,
             caffe.DeviceError: RuntimeError, caffe.InternalError: RuntimeError}
    for error, base in bases.items():
        assert issubclass(error, caffe.Error) and issubclass(error, base) and issubclass(error, RuntimeError)
        assert error.__doc__ and error.__module__ == "caffe"


def members(tree):
    """The public names that a stub's class or module defines."""
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_") or name == "__version__"}


def public(value):
    return {name for name in vars(value) if not name.startswith("_")}


def test_stubs_match_the_modules():
    tree = ast.parse((ROOT / "python/caffe/_caffe.pyi").read_text())
    assert members(tree) == public(caffe._caffe) | {"__version__"}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and "Error" not in node.name and node.name not in ("InvalidArgument",
                                                                                               "Unsupported"):
            assert members(node) == public(getattr(caffe._caffe, node.name)), node.name
    solver = ast.parse((ROOT / "python/caffe/solver.pyi").read_text())
    assert members(solver) == set(caffe.solver.__all__) | {"get_solver", "train"}


def arguments(function):
    """The names of a function's arguments, with the texts of their defaults, in a stub."""
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.unparse(value) for value in function.args.defaults]
    return list(zip(names, [None] * (len(names) - len(defaults)) + defaults))


def test_the_stub_of_fit_has_its_arguments():
    tree = ast.parse((ROOT / "python/caffe/fitting/fitted.pyi").read_text())
    stubs = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert set(stubs) == set(caffe.fitting.__all__)
    methods = {node.name: node for node in stubs["Fit"].body if isinstance(node, ast.FunctionDef)}
    assert methods.keys() - {"__init__"} == public(caffe.Fit)
    functions = {"fit": (stubs["fit"], caffe.fit)}
    functions.update({name: (node, getattr(caffe.Fit, name)) for name, node in methods.items() if not node.decorator_list})
    for name, (stub, function) in functions.items():
        real = [(one.name, None if one.default is one.empty else repr(one.default))
                for one in inspect.signature(function).parameters.values()]
        assert arguments(stub) == real, name


def test_star_brings_what_is_public():
    assert {"Net", "Blob", "SGDSolver", "layers", "io", "Error"} <= set(caffe.__all__)
    assert not [name for name in caffe.__all__ if name.startswith("_") or name == "add_compiled_modules"]


def test_everything_public_is_documented():
    for owner in (caffe.Net, caffe.Solver, caffe.Fit, caffe.fitting, caffe.Blob, caffe.Layer, caffe.io, caffe.Classifier, caffe.Detector, caffe.draw):
        for name, value in inspect.getmembers(owner):
            if name.startswith("_") or inspect.ismodule(value) or not (callable(value) or isinstance(value, property)):
                continue
            assert inspect.getdoc(value), f"{owner}.{name}"


def in_python(value, seen):
    """Everything of the package that is written in Python, starting from a value: public functions, classes and modules."""
    home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
    is_ours = isinstance(home, str) and home.split(".")[0] == "caffe" and not home.endswith(("_pb2", "_caffe"))
    if id(value) in seen or not is_ours or not (inspect.isfunction(value) or inspect.isclass(value) or inspect.ismodule(value)):
        return
    seen.add(id(value))
    yield value
    for name in [] if inspect.isfunction(value) else getattr(value, "__all__", public(value)):
        yield from in_python(getattr(value, name), seen)


def test_help_has_no_long_lines():
    for name in ("calibration", "imagenet", "layers.detectnet.clustering", "layers.detectnet.mean_ap", "model_libs"):
        importlib.import_module(f"caffe.{name}")
    lines = [(value, line) for value in in_python(caffe, set()) for line in (inspect.getdoc(value) or "").splitlines()]
    assert len(lines) > 200 and [(value, line) for value, line in lines if len(line) > 100] == []

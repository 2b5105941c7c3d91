"""`import caffe` as in Caffe's scripts: from the checkout's python/, from the build, and if nothing is built."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from built_package import BUILD, PACKAGE, ROOT

USE = "import caffe; print(caffe.__version__, caffe.Net.__name__, caffe.proto.caffe_pb2.TRAIN)"


def run(code, folder, **environment):
    inherited = {name: value for name, value in os.environ.items() 
                 if name not in ("PYTHONPATH", "CAFFE_BINARY_DIR", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env={**inherited, **environment}, capture_output=True,
                          text=True, check=False)


@pytest.mark.parametrize("given, spins", [({}, "5000"), ({"GOMP_SPINCOUNT": "70"}, "70"), ({"OMP_WAIT_POLICY": "passive"}, "0")])
def test_threads_spin_briefly_unless_told_otherwise(tmp_path, given, spins):
    """OpenMP says with which settings it was loaded; the environment is left as it was."""
    code = "import os; before = dict(os.environ); import caffe; assert dict(os.environ) == before"
    known = given | {"OMP_DISPLAY_ENV": "verbose", "PYTHONPATH": str(PACKAGE)}
    done = run(code, tmp_path, **known)
    assert done.returncode == 0, done.stderr
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("the library is not linked with GCC's OpenMP")
    assert re.search(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)[1] == spins


@pytest.fixture(name="checkout")
def make_checkout(tmp_path):
    """checkout(preset...): a folder with python/ and builds that contain the package."""
    def make(*presets):
        shutil.copytree(ROOT / "python", tmp_path / "checkout" / "python", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "CMakePresets.json", tmp_path / "checkout")
        for preset in presets:
            build = tmp_path / "checkout" / "build" / preset
            build.mkdir(parents=True)
            (build / "python").symlink_to(PACKAGE)
        return tmp_path / "checkout"

    return make


@pytest.mark.parametrize("preset", ["cpu-release", "cuda-release"])
def test_idiom_of_the_notebooks(checkout, tmp_path, preset):
    root = checkout(preset)
    done = run(f"import sys; sys.path.insert(0, {str(root)!r} + '/python'); {USE}", tmp_path)
    assert done.stdout.split()[1:] == ["Net", "0"], done.stderr


def test_scripts_with_caffe_root(checkout, tmp_path):
    root = checkout("cpu-release")
    done = run(f"import os, sys; sys.path.insert(0, os.path.join(os.environ['CAFFE_ROOT'], 'python')); {USE}", tmp_path,
               CAFFE_ROOT=str(root))
    assert done.stdout.split()[1:] == ["Net", "0"], done.stderr


def test_python_path(checkout, tmp_path):
    root = checkout("cpu-release")
    for folder in (root / "python", PACKAGE):
        assert run(USE, tmp_path, PYTHONPATH=str(folder)).stdout.split()[1:] == ["Net", "0"]


def test_the_named_build_comes_first(checkout, tmp_path):
    root = checkout()
    done = run(USE, tmp_path, PYTHONPATH=str(root / "python"), CAFFE_BINARY_DIR=str(BUILD))
    assert done.stdout.split()[1:] == ["Net", "0"], done.stderr


def test_protobuf_of_a_script(checkout, tmp_path):
    """Scripts that only read definitions import only this."""
    root = checkout("cpu-release")
    code = f"import sys; sys.path.insert(0, {str(root / 'python')!r}); from caffe.proto import caffe_pb2; print(caffe_pb2.TEST)"
    assert run(code, tmp_path).stdout == "1\n"


def test_what_is_not_built_says_the_command(checkout, tmp_path):
    root = checkout()
    (root / "build" / "asan" / "bin").mkdir(parents=True)
    done = run(USE, tmp_path, PYTHONPATH=str(root / "python"))
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: package caffe is not built")
    assert "cmake --preset cpu-release && cmake --build --preset cpu-release --target caffe_python" in last
    assert str(root) in last


def test_another_interpreter_is_named(checkout, tmp_path):
    """The module was built for another Python."""
    root = checkout()
    package = root / "build" / "cpu-release" / "python" / "caffe"
    package.mkdir(parents=True)
    (package / "_caffe.cpython-27-x86_64-linux-gnu.so").touch()
    last = run(USE, tmp_path, PYTHONPATH=str(root / "python")).stderr.splitlines()[-1]
    assert "cpython-27" in last and f"Python {sys.version_info.major}.{sys.version_info.minor}" in last
    assert "pip install" in last


def test_a_package_without_its_module(tmp_path):
    shutil.copytree(ROOT / "python" / "caffe", tmp_path / "caffe", ignore=shutil.ignore_patterns("__pycache__"))
    last = run(USE, tmp_path).stderr.splitlines()[-1]
    assert last == f"ImportError: {tmp_path / 'caffe'} lacks the compiled module _caffe; install the package again"


@pytest.mark.parametrize("module", ["numpy", "google.protobuf"])
def test_a_missing_package_is_named_with_its_interpreter(module, tmp_path):
    done = run(f"import sys; sys.modules['{module}'] = None; import caffe", tmp_path, PYTHONPATH=str(PACKAGE))
    name = module.split(".")[-1]
    assert f"ImportError: package caffe needs {name}, and {sys.executable} has none" in done.stderr


def test_names_that_old_scripts_take_from_pycaffe(tmp_path):
    done = run("from caffe.pycaffe import Net, SGDSolver, AdamSolver, get_solver, Timer; import caffe; print(SGDSolver is caffe.SGDSolver)",
               tmp_path, PYTHONPATH=str(PACKAGE))
    assert done.stdout == "True\n", done.stderr
    assert "ImportError" in run("from caffe.pycaffe import NoSolver", tmp_path, PYTHONPATH=str(PACKAGE)).stderr


def test_messages_of_the_documentation_are_those_of_the_package():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    table = page[page.index("### Why does `import caffe` fail?"):].split("\n###")[0].splitlines()
    code = (ROOT / "python" / "caffe" / "_checkout.py").read_text()
    messages = [line.split("`")[1] for line in table if line.startswith("| `")]
    assert len(messages) == 4
    for message in messages:
        if message == "No module named 'caffe'":  # Python's own
            continue
        words = message.split(" numpy")[0].split(";")[0].split(" (")[0]
        assert words.startswith("package caffe ") and words in code, message

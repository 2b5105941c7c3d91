"""Commands in Python without a package that they need: one line with its name and the command that installs it."""
import os
import subprocess
import sys

import pytest

from image_sets import classes
from programs import BINARIES, need_program

NET = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }\n'


@pytest.mark.parametrize("module, package, words", [
    ("PIL", "pillow", ["new", "photos"]), ("jinja2", "jinja2", ["evaluate", "net.prototxt", "--page=page.html"]),
    ("onnx", "onnx", ["export", "--onnx", "net.prototxt", "--output=net.onnx"]),
    ("optuna", "optuna", ["sweep", "solver.prototxt", "base_lr=0.1,0.2"]), ("uvicorn", "uvicorn", ["serve", "net.prototxt"]),
    ("uvicorn", "nicegui", ["studio", "."]),
    ("tokenizers", "tokenizers", ["data", "import-text", "text.txt", "tokens", "--tokenizer=bpe"])])
def test_the_package_and_its_cure_are_in_a_line(tmp_path, module, package, words):
    need_program("caffe")
    classes(tmp_path / "photos", count=4)
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt"')
    (tmp_path / "text.txt").write_text("one two three four\n" * 40)
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking" / f"{module}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')\n")
    done = subprocess.run([BINARIES / "caffe", *words], cwd=tmp_path, text=True, check=False, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=300, env={**os.environ, "PYTHONPATH": str(tmp_path / "lacking"), "PYTHON": sys.executable})
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert package in last and "install" in last, done.stderr

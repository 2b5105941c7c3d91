"""The notebooks of examples/ run, and agree with their sources."""
import os
import pathlib
import subprocess
import sys

import pytest

from programs import BINARIES, ROOT

for needed in ("nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(needed)
if not list((BINARIES.parent / "python" / "caffe").glob("_caffe*.so")):
    pytest.skip("package caffe is not built", allow_module_level=True)

SCRIPT = ROOT / "scripts" / "notebooks.py"


def run(script, *arguments, status=0):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False, timeout=900,
                          env={**environment, "CAFFE_BINARY_DIR": str(BINARIES.parent)})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "examples/notebooks").glob("*.py")))
def test_notebook(name):
    run(SCRIPT, "--check", name)


def test_differences_are_found(tmp_path):
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "notebooks.py"
    script.write_text(SCRIPT.read_text())
    for folder in ("python", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    source = tmp_path / "examples" / "notebooks" / "one.py"
    source.parent.mkdir(parents=True)
    source.write_text("# %% [markdown]\n# # Title\n\n# %%\nprint(6 * 7)\n")
    assert "is not what" in run(script, "--check", status=1)
    run(script)
    assert "42" in pathlib.Path(source.with_suffix(".ipynb")).read_text()
    run(script, "--check")
    source.write_text(source.read_text() + "print(1)\n")
    assert "is not what" in run(script, "--check", status=1)
    source.write_text("# %%\nraise RuntimeError('broken')\n")
    assert "broken" in run(script, "--check", status=1)

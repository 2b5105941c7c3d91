"""Compares every number recorded from Caffe 1.0 with the results of the Python package."""
import os
import pathlib
import subprocess
import sys

import pytest

from built_package import PACKAGE, ROOT

GOLDEN = ROOT / "tests" / "golden"


@pytest.mark.parametrize("group", ["layers", "nets", "solver", "data", "models", "formats"])
def test_numbers_are_those_of_caffe(group):
    pytest.importorskip("lmdb")
    pytest.importorskip("h5py")
    count = len(list((GOLDEN / group).glob("*.npz")))
    done = subprocess.run([sys.executable, GOLDEN / "check_golden.py", GOLDEN, "--group", group,
                           "--models-root", ROOT / "models"],
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}, text=True,
                          check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-4000:]
    assert pathlib.Path(GOLDEN).is_dir() and f"{count} of {count} cases pass" in done.stdout and count > 0

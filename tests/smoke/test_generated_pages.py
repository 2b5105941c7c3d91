"""Pages made by scripts say what the build has."""
import sys

import pytest


@pytest.mark.parametrize("script", ["layer_table.py", "option_tables.py"])
def test_is_up_to_date(script, program, run):
    done = run(sys.executable, f"scripts/{script}", "--check", "--caffe", program("caffe"))
    assert done.returncode == 0, done.stderr

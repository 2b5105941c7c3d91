"""docs/layers.md says what the build has."""
import sys


def test_is_up_to_date(program, run):
    done = run(sys.executable, "scripts/layer_table.py", "--check", "--caffe", program("caffe"))
    assert done.returncode == 0, done.stderr

"""scripts/stress_tests.sh in a separate tree with other tests."""
import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tree:
    def __init__(self, root):
        self.root = root
        self.environment = {**os.environ, "PYTHON": sys.executable, "CAFFE_BINARY_DIR": str(root / "build")}
        (root / "scripts").mkdir()
        for name in ("stress_tests.sh", "pause.py", "process_groups.py", "common.sh"):
            shutil.copy(ROOT / "scripts" / name, root / "scripts")
        (root / "tests" / "timing").mkdir(parents=True)
        (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")

    def command(self, *arguments):
        return [self.root / "scripts" / "stress_tests.sh", "--seed", "7", *arguments]


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    return Tree(tmp_path)

"""Tests of caffe.sweep. They need Optuna: scripts/install_dependencies.sh studio."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

pytest.importorskip("optuna")

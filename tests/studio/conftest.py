"""Tests of caffe.studio. They need NiceGUI and more: scripts/install_dependencies.sh studio."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

pytest.importorskip("nicegui")

"""Tests of caffe.onnx. They need the packages onnx and onnxruntime: scripts/install_dependencies.sh onnx."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

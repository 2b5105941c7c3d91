"""Exports nets to ONNX and imports them. Needs package onnx; checks results with onnxruntime if it is installed.

    import caffe.onnx
    report = caffe.onnx.export("deploy.prototxt", "net.onnx", weights="net.caffemodel")
    print(report.outputs, report.differences)

From the command line: caffe export --onnx, or python -m caffe.onnx export.
"""
import sys as _sys

from .._packages import install_command as _install_command

try:
    import onnx as _onnx  # noqa: F401
except ImportError as _error:
    raise ImportError(f"caffe.onnx needs package onnx, and {_sys.executable} has none: "
                      f"{_install_command('onnx', 'onnxruntime')}; or name another interpreter in the environment variable PYTHON (caffe export)") from _error

# pylint: disable=wrong-import-position
from .builder import newest_opset
from .check import Mismatch, NotComputed, run
from .exporter import DEFAULT_OPSET, OLDEST_OPSET, Report, export
from .importer import Import, import_model
from .nodes.registry import imported_operators
from .profile import Profile, load_profile, profile_names
from .quantizing import sensitivity
from .registry import exported_types

__all__ = ["DEFAULT_OPSET", "Import", "Mismatch", "NotComputed", "OLDEST_OPSET", "Profile", "Report", "export", "exported_types",
           "import_model", "imported_operators", "load_profile", "newest_opset", "profile_names", "run", "sensitivity"]

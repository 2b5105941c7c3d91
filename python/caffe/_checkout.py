"""Finds the compiled part of the package if the package is the folder python/caffe of a checkout.

Caffe's scripts and notebooks put CAFFE_ROOT/python into sys.path, but the compiled module and caffe_pb2 are in a build
folder. This module adds that folder to the package's path.
"""
import importlib
import importlib.machinery
import os
import pathlib
import platform
import sys

from ._packages import install_command

_PACKAGE = pathlib.Path(__file__).resolve().parent
_ROOT = next((folder for folder in _PACKAGE.parents if (folder / "CMakePresets.json").exists()), None)
_COMMAND = "cmake --preset cpu-release && cmake --build --preset cpu-release --target caffe_python"


def _fits(folder):
    return any((folder / f"_caffe{suffix}").exists() for suffix in importlib.machinery.EXTENSION_SUFFIXES)


def _builds():
    """Package folders of builds, the likeliest first: that of CAFFE_BINARY_DIR, else those of the usual presets."""
    named = os.environ.get("CAFFE_BINARY_DIR")
    if _ROOT is None and not named:
        return []
    folders = [named] if named else [_ROOT / "build" / name for name in ("cpu-release", "cuda-release", "cpu-debug")]
    return [pathlib.Path(folder).resolve() / "python" / "caffe" for folder in folders]


def _complaint(builds):
    others = [module.name for folder in builds for module in folder.glob("_caffe*.so")]
    if others:
        return (f"package caffe is built for another interpreter ({others[0]}), and this is Python {platform.python_version()}: "
                f"run that one, or `pip install {_ROOT}` in an environment of this one")
    if _ROOT is None:
        return f"{_PACKAGE} lacks the compiled module _caffe; install the package again"
    return f"package caffe is not built; in {_ROOT} run: {_COMMAND}"


def check_packages():
    """Raises an ImportError that names this interpreter if NumPy or protobuf is missing."""
    missing = [pip for module, pip in (("numpy", "numpy"), ("google.protobuf", "protobuf")) if not _can_import(module)]
    if missing:
        raise ImportError(f"package caffe needs {' and '.join(missing)}, and {sys.executable} has none: "
                          f"{install_command(*missing)}; or run the system's /usr/bin/python3 with Debian's python3-numpy and "
                          "python3-protobuf")


def _can_import(module):
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def add_compiled_modules(path):
    """Appends the folder with the compiled modules to a package's __path__. Raises ImportError if there is
    none."""
    if _fits(_PACKAGE):
        return
    builds = _builds()
    for folder in builds:
        if _fits(folder):
            path.append(str(folder))
            return
    raise ImportError(_complaint(builds))

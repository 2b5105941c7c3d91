"""For scripts of the repository: after `import find_caffe`, `import caffe` finds the built package.

That is an installed package or one on PYTHONPATH, else the one in CAFFE_BINARY_DIR (build/cpu-release). This file's own folder,
which Python searches first for its scripts, has caffe's sources without the compiled module, so it is moved to the end.
"""
import os
import pathlib
import sys

_SOURCES = pathlib.Path(__file__).resolve().parent
_BUILD = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", _SOURCES.parent / "build" / "cpu-release"))

sys.path[:] = [*(folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != _SOURCES),
               str(_BUILD.resolve() / "python"), str(_SOURCES)]

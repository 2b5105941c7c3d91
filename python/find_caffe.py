"""For scripts of the repository: `import find_caffe` makes `import caffe` find the package as it was built.

That is an installed one or one on PYTHONPATH, else the one of CAFFE_BINARY_DIR (build/cpu-release). The folder of this
file, where Python looks first for scripts that are in it, has caffe's sources without the compiled module: it comes last.
"""
import os
import pathlib
import sys

_SOURCES = pathlib.Path(__file__).resolve().parent
_BUILD = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", _SOURCES.parent / "build" / "cpu-release"))

sys.path[:] = [*(folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != _SOURCES),
               str(_BUILD.resolve() / "python"), str(_SOURCES)]

"""Tests of the Python package: of a build where there is one, else of the part that needs none."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "python"

if list((BUILT / "caffe").glob("_caffe*.so")):
    sys.path.insert(0, str(BUILT))
else:
    sys.path.insert(0, str(ROOT / "scripts"))
    import caffe_definitions

    caffe_definitions.provide()

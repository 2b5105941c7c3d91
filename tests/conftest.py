"""Which package `caffe` the tests import: that of a build, else the part that needs no compiled module."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILT = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "python"

if list((BUILT / "caffe").glob("_caffe*.so")):
    sys.path.insert(0, str(BUILT))
else:
    sys.path.insert(0, str(ROOT / "scripts"))
    import caffe_definitions

    caffe_definitions.provide()

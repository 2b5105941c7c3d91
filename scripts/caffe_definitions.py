"""Makes `caffe.net_spec` and `caffe.proto` importable from a checkout without a build.

    import caffe_definitions
    caffe_definitions.provide()
    from caffe import net_spec

Needs protoc and Python's protobuf. The compiled part of the package is not available.
"""
import atexit
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent


def provide():
    """Installs a package `caffe` with the modules of python/caffe and of the schema.

    Does nothing if a package `caffe` was imported already.
    """
    if "caffe" in sys.modules:
        return
    generated = tempfile.mkdtemp(prefix="caffe-definitions-")
    atexit.register(shutil.rmtree, generated, ignore_errors=True)
    subprocess.run(["protoc", f"--proto_path={ROOT / 'proto'}", f"--python_out={generated}",
                    ROOT / "proto" / "caffe" / "proto" / "caffe.proto"], check=True)
    package = types.ModuleType("caffe")
    # A package without its own __init__, which would import the compiled module.
    package.__path__ = [str(ROOT / "python" / "caffe"), str(pathlib.Path(generated) / "caffe")]
    sys.modules["caffe"] = package

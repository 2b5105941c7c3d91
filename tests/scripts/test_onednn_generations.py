"""The CPU kernels build with both generations of oneDNN: only one header knows how they differ.

The other generation's headers are those that `scripts/install_dependencies.sh onednn3` has put into build/onednn."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "build/onednn/include"
SHIM = ROOT / "src/caffe/cpu/onednn.hpp"


def sources_of_onednn():
    return [path for path in sorted((ROOT / "src/caffe/cpu").rglob("*.cpp")) if re.search(r"\bdnnl(::|_)", path.read_text())]


def compile_commands():
    build = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build/cpu-release"))
    return {entry["file"]: entry for entry in json.loads((build / "compile_commands.json").read_text())}


def test_one_header_asks_for_the_version():
    files = [path for pattern in ("*.cpp", "*.hpp", "*.cu", "*.cuh") for path in (ROOT / "src").rglob(pattern)]
    assert [path for path in files if "DNNL_VERSION_MAJOR" in path.read_text()] == [SHIM]


@pytest.mark.parametrize("source", sources_of_onednn(), ids=lambda path: path.name)
def test_compiles_with_onednn_3(source):
    if not HEADERS.is_dir():
        pytest.skip("no headers of oneDNN 3 (scripts/install_dependencies.sh onednn3)")
    entry = compile_commands()[str(source)]
    command = [part for part in shlex.split(entry["command"]) if not re.search("ccache", part)]
    output = command.index("-o")
    command[output:output + 2] = ["-fsyntax-only"]
    command.insert(1, f"-I{HEADERS}")  # before the build's own
    subprocess.run(command, cwd=entry["directory"], check=True)


@pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ, reason="slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
def test_a_program_that_is_built_with_onednn_3_starts(tmp_path):
    """Its library is inside the source folder, which CMake leaves out of the run path."""
    if not HEADERS.is_dir():
        pytest.skip("no headers of oneDNN 3 (scripts/install_dependencies.sh onednn3)")
    subprocess.run(["cmake", "--preset", "cpu-release", "-B", tmp_path], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", tmp_path, "cortado_run"], check=True, stdout=subprocess.DEVNULL)
    libraries = subprocess.run(["ldd", tmp_path / "bin" / "cortado_run"], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert f"libdnnl.so.3 => {ROOT}/build/onednn/lib/libdnnl.so.3" in libraries, libraries
    installed = tmp_path / "installed"
    subprocess.run(["cmake", "--install", tmp_path, "--component", "runtime", "--prefix", installed], check=True, stdout=subprocess.DEVNULL)
    assert (installed / "lib" / "libdnnl.so.3").is_file()

"""A second clean build of several sources at a time takes its objects from ccache, and so do other presets for
sources that they compile with the same options."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ, reason="slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)"),
    pytest.mark.skipif(shutil.which("ccache") is None, reason="no ccache")]


@pytest.fixture
def build(tmp_path):
    """build(preset, objects, build folder): builds cleanly. Returns how many objects came from the cache, and how many did not."""
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache")}

    def run(*command):
        done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def build_cleanly(preset, built, folder):
        shutil.rmtree(folder, ignore_errors=True)
        run("cmake", "--preset", preset, "-B", folder)
        run("ccache", "--zero-stats")
        run("ninja", "-C", folder, *built)
        counts = dict(line.split("\t") for line in run("ccache", "--print-stats").splitlines())
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"]), int(counts["cache_miss"])
    return build_cleanly


def test_unity_objects_are_shared(build, tmp_path):
    objects = [f"src/caffe/CMakeFiles/caffe_{folder}.dir/unity/caffe_{folder}_0.cpp.o" for folder in ("core", "tensor")]
    assert build("tsan", objects, tmp_path / "build")[1] > 1
    hits, misses = build("tsan", objects, tmp_path / "build")
    assert hits > 1 and misses == 0


def test_presets_share_what_they_compile_alike(build):
    """With and without tests, below the folder that paths are relative to."""
    built = ["tools/CMakeFiles/upgrade_net_proto_text.dir/unity/upgrade_net_proto_text_0.cpp.o",
             "src/caffe/CMakeFiles/caffe_core.dir/unity/caffe_core_0.cpp.o"]
    # One folder deeper than a build that programs' paths refer to (cmake/CaffePaths.cmake).
    folder = ROOT / "build" / "ccache"
    try:
        assert build("cpu-release", built, folder / "release")[1] > 0
        hits, misses = build("cpu-package", built, folder / "package")
        assert hits > 0 and misses == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)

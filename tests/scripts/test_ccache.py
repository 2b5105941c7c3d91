"""A second clean build of several sources at a time takes its objects from ccache."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OBJECT = "src/caffe/CMakeFiles/caffe_core.dir/Unity/unity_0_cxx.cxx.o"


@pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ, reason="slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --slow)")
@pytest.mark.skipif(shutil.which("ccache") is None, reason="no ccache")
def test_unity_objects_are_shared(tmp_path):
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache")}
    build = tmp_path / "build"

    def run(*command):
        done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def build_cleanly():
        """How many objects came from the cache, and how many did not."""
        shutil.rmtree(build, ignore_errors=True)
        run("cmake", "--preset", "tsan", "-B", build)
        run("ccache", "--zero-stats")
        run("ninja", "-C", build, OBJECT)
        counts = dict(line.split("\t") for line in run("ccache", "--print-stats").splitlines())
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"]), int(counts["cache_miss"])

    assert build_cleanly()[1] > 1
    hits, misses = build_cleanly()
    assert hits > 1 and misses == 0

"""scripts/build_preset.sh: what is built of a preset, beside tests and by itself."""
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def start(tmp_path):
    """start(ninja, *arguments): the script in a tree of its own, where a script is called for ninja."""
    (tmp_path / "scripts").mkdir()
    for name in ("build_preset.sh", "common.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    for folder in ("core", "layers", "cuda", "cuda_on_host", "gpu_training"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "some_test.cpp").touch()
    programs = tmp_path / "programs"
    programs.mkdir()

    def call(ninja, *arguments, cmake="true", environment=None):
        for name, text in (("cmake", cmake), ("ninja", ninja)):
            (programs / name).write_text(f"#!/bin/bash\n{text}\n")
            (programs / name).chmod(0o755)
        return subprocess.Popen([tmp_path / "scripts" / "build_preset.sh", *arguments], text=True, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**(environment or os.environ), "PATH": f"{programs}:{os.environ['PATH']}", "CMAKE_BUILD_PARALLEL_LEVEL": "3"})
    return call


def test_sanitizers_have_fewer_targets(start):
    run = start('echo "$@"', "cpu-release", "asan", "tsan")
    said = run.communicate(timeout=60)[0]
    assert run.returncode == 0 and said.splitlines() == [
        "-C build/cpu-release -j 3", "-C build/asan -j 3 core_test layers_test caffe_tool caffe_compat",
        "-C build/tsan -j 3 core_test data_test distributed_test solvers_test"]


def test_a_failure_ends_it(start):
    run = start("echo compiled; exit 3", "asan", "tsan")
    assert run.communicate(timeout=60)[0] == "compiled\n" and run.returncode != 0
    run = start("echo compiled", "asan", cmake="echo no compiler; exit 1")
    assert run.communicate(timeout=60)[0] == "no compiler\n" and run.returncode != 0


def test_warnings_are_errors_in_ci_only(start):
    """A compiler that we have not met, or a longer path of the sources, may warn where ours does not."""
    for ci, options in (("", "--preset cpu-release"), ("true", "--preset cpu-release -D CAFFE_WARNINGS_AS_ERRORS=ON")):
        run = start("true", "cpu-release", cmake='echo "$@"; exit 1', environment={**os.environ, "CI": ci})
        assert run.communicate(timeout=60)[0] == options + "\n"
    option = next(line for line in (ROOT / "CMakeLists.txt").read_text().splitlines() if "CAFFE_WARNINGS_AS_ERRORS" in line)
    assert option.endswith("OFF)")


@pytest.mark.skipif(shutil.which("chrt") is None, reason="no chrt")
def test_idle_takes_what_others_leave(start):
    policy = "chrt --pid $$ | sed -n 's/.*policy: //p'"
    assert start(policy, "--idle", "asan").communicate(timeout=60)[0] == "SCHED_IDLE\n"
    assert start(policy, "asan").communicate(timeout=60)[0] == "SCHED_OTHER\n"


def test_the_end_waits_for_compilers(start, tmp_path):
    """A build that is stopped leaves nothing behind that writes into the folder of the next one."""
    ended, begun = tmp_path / "ended", tmp_path / "begun"
    run = start(f"trap 'sleep 1; touch {ended}; exit 1' TERM; touch {begun}; while :; do sleep 0.1; done", "--idle", "asan", "tsan")
    until = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGTERM)
    run.communicate(timeout=60)
    assert run.returncode == 143 and ended.exists()

"""Sweeps whose process is killed, and continued, end as if it had not been."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest

pytest.importorskip("optuna")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sweep"))

import test_sweep  # noqa: E402
from test_sweep import NET, SOLVER  # noqa: E402

WORDS = ["solver.prototxt", "base_lr=0.001..0.2:log", "type=SGD,Adam", "--trials=12"]

# Stands for `caffe`. At the beginning of the trials in KILL_AT, or after their first test, it kills the sweep, once.
PROGRAM = """#!{python}
import os, pathlib, signal, subprocess, sys, time
caffe, words = {caffe!r}, sys.argv[1:]
trial = pathlib.Path(words[words.index("--run_dir") + 1]).parent
begin, middle = {begin!r}, {middle!r}
mark = trial.parent.parent / ("killed" + trial.name)
parent = os.getppid()
if trial.name in (begin, middle) and not mark.exists():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    mark.touch()
    if trial.name == middle:
        training = subprocess.Popen([caffe, *words], close_fds=False)
        lines = trial / "run" / "metrics.jsonl"
        while '"test"' not in (lines.read_text() if lines.exists() else "") and training.poll() is None:
            time.sleep(0.02)
    os.kill(parent, signal.SIGKILL)
    sys.exit(1)
os.execv(caffe, [caffe, *words])
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    if test_sweep.CAFFE is None:
        pytest.skip("caffe_tool is not built")
    (tmp_path / "solver.prototxt").write_text(SOLVER.replace("max_iter: 16", "max_iter: 2000").replace("test_interval: 2", "test_interval: 250"))
    (tmp_path / "net.prototxt").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(program, folder):
    """The exit status of a process that sweeps."""
    code = f"import sys; from caffe.sweep.__main__ import main; sys.exit(main({['--program', str(program), *WORDS, '--output=' + folder]!r}))"
    package = pathlib.Path(test_sweep.caffe.__file__).resolve().parents[1]
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(package)}, check=False, capture_output=True,
                          text=True, timeout=900)


def test_a_sweep_that_is_killed_twice_is_the_same_as_one_that_is_not(place):
    assert sweep(test_sweep.CAFFE, "whole").returncode == 0
    program = place / "caffe"
    program.write_text(PROGRAM.format(python=sys.executable, caffe=str(test_sweep.CAFFE), begin="0003", middle="0006"))
    program.chmod(0o755)
    killed = [sweep(program, "killed") for _ in range(2)]
    assert [done.returncode for done in killed] == [-signal.SIGKILL] * 2, [done.stderr for done in killed]
    done = sweep(program, "killed")
    assert done.returncode == 0, done.stderr
    assert test_sweep.results("whole") == test_sweep.results("killed")


def test_several_processes_on_one_sweep_lose_no_trial(place):
    """Three processes, of which one is killed."""
    program = place / "caffe"
    program.write_text(PROGRAM.format(python=sys.executable, caffe=str(test_sweep.CAFFE), begin="0002", middle="none"))
    program.chmod(0o755)
    code = f"import sys; from caffe.sweep.__main__ import main; sys.exit(main({['--program', str(program), *WORDS, '--pruner=none']!r}))"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(test_sweep.caffe.__file__).resolve().parents[1])}
    together = [subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)]
    errors = [process.communicate(timeout=900)[1] for process in together]
    assert sorted(process.returncode for process in together) == [-signal.SIGKILL, 0, 0], errors
    assert [(number, state) for number, state, *_ in test_sweep.results()] == [(number, "complete") for number in range(12)]

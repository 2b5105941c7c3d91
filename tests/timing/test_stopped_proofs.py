"""If scripts/run_proofs.py and scripts/run_cpp_tests.py are stopped, they end what they have started, and start nothing else."""
import os
import signal
import subprocess
import sys

import pytest

from processes import ends, line_from
from programs import Deadline
from proofs_tree import ROOT, TABLE, command_of, deep, environment_of, make_tree, write  # pylint: disable=unused-import

sys.path.insert(0, str(ROOT / "scripts"))
import process_groups  # noqa: E402  pylint: disable=wrong-import-position

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
# Writes its own process number and a child's; both would run for long.
PYTHON = """import os, subprocess
def test_that_hangs():
    with subprocess.Popen(["sleep", "600"]) as child, open("pids.log", "w") as pids:
        print(os.getpid(), child.pid, file=pids, flush=True)
        child.wait()
"""
SHELL = """#!/bin/sh
sleep 600 &
echo $$ $! >"${0%/*}/pids.log"
wait
"""


def stop(command, folder, environment, number):
    """Sends a signal when the test has written its processes. Returns the status, the output, and the processes."""
    os.mkfifo(folder / "pids.log")
    # Processes that it leaves running would keep a pipe open.
    with open(folder / "said.log", "w") as said, \
            subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said,
                             stderr=subprocess.STDOUT) as process, Deadline(process):
        pids = list(map(int, line_from(folder / "pids.log", process).split()))
        process.send_signal(number)
        status = process.wait()
        return status, (folder / "said.log").read_text(), pids


def test_a_script_that_ends_before_it_says_its_processes_is_named(tmp_path):
    os.mkfifo(tmp_path / "pids")
    with subprocess.Popen(["sh", "-c", "exit 3"]) as process, pytest.raises(AssertionError, match="ended with status 3 before"):
        line_from(tmp_path / "pids", process)


@SIGNALS
def test_python_tests_end_with_the_script(tree, number):
    write(tree, "tests/quick/test_one.py", PYTHON)
    write(tree, "tests/proofs.toml", TABLE + deep("later", "src").replace("depth", "gate"))
    status, said, pids = stop(command_of(tree), tree, environment_of(tree), number)
    assert status == 1 and "FAILED interrupted: " in said and "FAILED  quick" in said and "== later" not in said, said
    assert len(pids) == 2 and all(map(ends, pids))


@SIGNALS
def test_a_command_that_is_being_started_ends_too(monkeypatch, number):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(number)

    kept = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        process_groups.end_by_signals()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(subprocess, "Popen", Interrupted)
            process_groups.run(["sleep", "600"])
        assert started[0].returncode == -signal.SIGINT
    finally:
        started[0].kill()
        for each, handler in kept.items():
            signal.signal(each, handler)


def test_a_command_that_ignores_signals_is_killed_and_the_summary_is_shown(tree):
    script = tree / "scripts" / "process_groups.py"
    script.write_text(script.read_text().replace("TIME_TO_END = 20", "TIME_TO_END = 1"))
    write(tree, "hang.sh", SHELL.replace("sleep 600 &", "trap '' INT; sleep 600 &"))
    (tree / "hang.sh").chmod(0o755)
    write(tree, "tests/proofs.toml", TABLE + deep("slow", "src", command=["./hang.sh"]))
    status, said, pids = stop(command_of(tree, "slow"), tree, environment_of(tree), signal.SIGINT)
    assert status == 1 and "FAILED interrupted: " in said and "Traceback" not in said, said
    assert len(pids) == 2 and all(map(ends, pids))


@SIGNALS
def test_a_command_ends_with_the_script(tree, number):
    write(tree, "hang.sh", SHELL)
    (tree / "hang.sh").chmod(0o755)
    write(tree, "tests/proofs.toml", TABLE + deep("slow", "src", command=["./hang.sh"]))
    status, said, pids = stop(command_of(tree, "slow"), tree, environment_of(tree), number)
    assert status == 1 and "FAILED interrupted: " in said, said
    assert len(pids) == 2 and all(map(ends, pids))


@SIGNALS
def test_cpp_tests_end_with_the_script(tmp_path, number):
    write(tmp_path, "hang.sh", SHELL)
    (tmp_path / "hang.sh").chmod(0o755)
    write(tmp_path, "CTestTestfile.cmake",
          f'add_test("a/one" "{tmp_path}/hang.sh")\nadd_test("a/two" touch "{tmp_path}/began")\n')
    command = [sys.executable, ROOT / "scripts" / "run_cpp_tests.py", tmp_path, "--jobs", "1"]
    status, said, pids = stop(command, tmp_path, dict(os.environ), number)
    assert status == 130 and said.endswith("0 ran, 0 skipped, 0 failed\ninterrupted: tests are missing above\n"), said
    assert len(pids) == 2 and all(map(ends, pids)) and not (tmp_path / "began").exists()

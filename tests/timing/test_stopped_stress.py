"""If scripts/stress_tests.sh is stopped, it ends the processes that it has started."""
import os
import signal
import subprocess

import pytest

from processes import ends, is_alive, line_from
from programs import Deadline
from stress_tree import make_tree  # pylint: disable=unused-import

# Writes its own process number and a child's; both would run for long.
TEST = """
import os, subprocess

def test_that_hangs():
    with subprocess.Popen(["sleep", "600"]) as child, open({pids!r}, "w") as pids:
        print(os.getpid(), child.pid, file=pids, flush=True)
        child.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_it_has_started_ends(tree, number):
    pids = tree.root / "pids"
    os.mkfifo(pids)
    (tree.root / "tests" / "timing" / "test_hanging.py").write_text(TEST.format(pids=str(pids)))
    with subprocess.Popen(tree.command("--busy", "2"), env=tree.environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          # Processes started in the background would ignore SIGINT.
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as stress, Deadline(stress):
        started = list(map(int, line_from(pids, stress).split()))
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(stress.pid)], text=True, stdout=subprocess.PIPE, check=True)
        started += map(int, listed.stdout.split())
        assert len(started) >= 4 and all(map(is_alive, started))
        stress.send_signal(number)
        assert stress.wait() == 128 + number, stress.stdout.read()
    assert all(map(ends, started))

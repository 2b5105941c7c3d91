"""Ranks on MPI that are killed or stopped: this is noticed as with TCP."""
import os
import re
import signal
import subprocess
from datetime import datetime

import pytest

from processes import ends
from programs import BINARIES
from ranks import finish, mpirun, seconds_until_said, start, wait_for_iterations

MODULE = BINARIES.parent / "lib" / "libcaffe_openmpi.so"
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason="a build without MPI (libopenmpi-dev)")


def ranks_of(launcher):
    """The `caffe` processes that this mpirun has started."""
    children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(launcher.pid)], text=True, stdout=subprocess.PIPE).stdout
    return [int(pid) for pid in re.findall(r"(\d+) \S*caffe train\b", children)]


@pytest.mark.parametrize("what", (signal.SIGKILL, signal.SIGSTOP))
def test_a_rank_that_is_lost_ends_the_others(tmp_path, program, solver, what):
    path = solver("run", max_iter=10**6, display=20)
    [launcher] = start(tmp_path, [mpirun(3, program("caffe"), "train", f"-solver={path}")])
    wait_for_iterations(launcher)
    ranks = ranks_of(launcher)
    assert len(ranks) == 3
    os.kill(ranks[1], what)
    moment = datetime.now()
    [(status, said)] = finish([launcher])
    assert status != 0, said
    if what == signal.SIGSTOP:  # mpirun does not notice this
        assert f"process {ranks[1]}" in said and "has sent no heartbeat" in said, said
        assert seconds_until_said(moment, said) < 40, said
    assert all(map(ends, ranks))

"""Processes that train together: how tests start them, stop them and read what they say."""
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

# Of launchers that may have started the tests themselves.
FOREIGN = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "MPI_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_")


def environment(folder, **more):
    """Variables of a process that nobody has started as one of several; its secret is in `folder`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**own, "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1", **more}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(folder, commands, **more):
    """A process for each command."""
    return [subprocess.Popen([str(part) for part in command], cwd=folder, env=environment(folder, **more), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for command in commands]


def start_ranks(folder, caffe, solver, ranks, *arguments, each=None, **more):
    """`caffe train` as so many processes, by flags. `each`: further arguments of each rank."""
    store = f"127.0.0.1:{free_port()}"
    return start(folder, [[caffe, "train", f"-solver={solver}", f"-ranks={ranks}", f"-rank={rank}", f"-store={store}",
                           *arguments, *(each(rank) if each else [])] for rank in range(ranks)], **more)


def finish(processes, seconds=120):
    """Their (status, what they said), by rank. None is left when this returns."""
    deadline = time.monotonic() + seconds
    try:
        said = [one.communicate(timeout=max(1, deadline - time.monotonic()))[1] for one in processes]
    finally:
        for one in processes:
            if one.poll() is None:
                one.send_signal(signal.SIGCONT)
                one.kill()
                one.wait()
    return [(one.returncode, text) for one, text in zip(processes, said)]


def mpirun(count, *command):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (openmpi-bin)")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(count), *command]

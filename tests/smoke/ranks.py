"""Processes that train together: how tests start and stop them and read their output."""
import concurrent.futures
import os
import re
import shutil
import socket
import subprocess
from datetime import datetime

import pytest

from programs import PATIENCE, Deadline, wait_for_line

# Prefixes of variables of launchers that may have started the tests themselves.
FOREIGN = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "MPI_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_")
# Optimizers, types and scaling whose decisions must be equal on all ranks.
KINDS = {
    "sgd": {},
    "adam": {"type": '"Adam"', "momentum2": 0.999},
    "larc": {"larc": "true", "larc_eta": 0.01},
    "fp16": {"precision": "FP16"},  # its adaptive gradient scale is part of the state
}


def environment(folder, **more):
    """The variables of a process that was not started as one of several; its secret is in `folder`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**own, "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1", **more}


_started, _ports = [], []


def free_port():
    """A port that no other program gets until the test ends: a rank listens there by number, with SO_REUSEADDR, as we do."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    _ports.append(one)
    return one.getsockname()[1]


def start(folder, commands, held=False, **more):
    """Starts a process for each command. `held`: a process that has logged a page (4 KiB) that nobody has read waits for its reader.

    With `display: 1` a held rank is at most 50 iterations ahead of the test, however late the test is.
    """
    processes = [subprocess.Popen([str(part) for part in command], cwd=folder, env=environment(folder, **more), text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  pipesize=4096 if held else -1)
                 for command in commands]
    _started.extend(processes)
    return processes


def start_ranks(folder, caffe, solver, ranks, *arguments, each=None, **more):
    """Starts this many processes of `caffe train`, using flags. `each`: further arguments of each rank."""
    store = f"127.0.0.1:{free_port()}"
    return start(folder, [[caffe, "train", f"-solver={solver}", f"-ranks={ranks}", f"-rank={rank}", f"-store={store}",
                           *arguments, *(each(rank) if each else [])] for rank in range(ranks)], **more)


def _kill(processes):
    for one in processes:
        if one.poll() is None:
            one.kill()
            one.wait()


@pytest.fixture(autouse=True)
def no_rank_is_left():
    """Makes sure that a test that fails half-way leaves no rank that trains for ever."""
    yield
    _kill(_started)
    _started.clear()
    while _ports:
        _ports.pop().close()


def finish(processes):
    """Returns (status, output) of each process, by rank. No process is left when this returns."""
    def rest_of(process):
        said = process.stderr.read()
        return process.wait(), said

    with Deadline(*processes) as deadline, concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
        results = list(pool.map(rest_of, processes))
    assert not deadline.has_struck, f"not all had ended after {PATIENCE} s: {results}"
    return results


def wait_for_iterations(process, count=0):
    """Reads the process's log until it is at an iteration of at least this number."""
    while int(wait_for_line(process, r"Iteration (\d+) \(")[1]) < count:
        pass


def seconds_until_said(moment, said):
    """The seconds from a moment to the last line of a log, by the log's own clock, because the test may read it later."""
    last = re.findall(r"^[IWEF](\d{4} \d\d:\d\d:\d\d)\.", said, re.MULTILINE)[-1]
    return (datetime.strptime(f"{moment.year}{last}", "%Y%m%d %H:%M:%S") - moment).total_seconds()


def mpirun(count, *command):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (openmpi-bin)")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(count), *command]


def bytes_of(folder, name, iteration):
    return {suffix: (folder / f"{name}_iter_{iteration}.{suffix}").read_bytes() for suffix in ("caffemodel", "solverstate")}


NAMESPACES = "caffe-ranks"


@pytest.fixture(name="hosts")
def hosts_in_namespaces():
    """Commands that run in three "machines": network namespaces on one bridge, 10.77.0.1 to 10.77.0.3."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    names = [f"{NAMESPACES}-{os.getpid()}-{i}" for i in range(4)]  # the last one is the switch

    def ip(*arguments, check=True):
        return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)

    try:
        for name in names:
            if ip("netns", "add", name, check=False).returncode != 0:
                pytest.skip("this machine gives no network namespaces")
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[3], "link", "add", "bridge", "type", "bridge")
        ip("-n", names[3], "link", "set", "bridge", "up")
        for i, name in enumerate(names[:3]):
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{i}", "netns", names[3])
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", names[3], "link", "set", f"port{i}", "master", "bridge", "up")
        yield names, ip
    finally:
        for name in names:
            ip("netns", "del", name, check=False)


def start_on_hosts(hosts, folder, caffe, path, *arguments):
    names, _ = hosts
    return start(folder, [["ip", "netns", "exec", names[rank], caffe, "train", f"-solver={path}", "-ranks=3",
                           f"-rank={rank}", "-store=10.77.0.1:29500", *arguments] for rank in range(3)])

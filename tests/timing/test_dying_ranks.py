"""Ranks that are killed, stopped or cut off, and the messages of the others: docs/clusters.md."""
import os
import random
import re
import signal
import time
from datetime import datetime

import pytest

from programs import slow
from ranks import (  # pylint: disable=unused-import
    finish, hosts_in_namespaces, seconds_until_said, start_on_hosts, start_ranks, wait_for_iterations)

SILENCE = "has sent no heartbeat for 15 s"


def endless(solver):
    return solver("endless", max_iter=100_000_000, display=20, snapshot=0, snapshot_after_train="false")


def named(rank, process):
    return rf"rank {rank} \(host \S+, process {process.pid}\): "


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_killed_rank_ends_all_and_is_named(victim, tmp_path, program, solver):
    """Its connection ends, so nobody waits for a timeout."""
    processes = start_ranks(tmp_path, program("caffe"), endless(solver), 3)
    wait_for_iterations(processes[0])
    processes[victim].kill()
    for rank, (status, said) in enumerate(finish(processes)):
        if rank != victim:
            assert status == 1, said
            assert re.search(named(victim, processes[victim]), said) and SILENCE not in said, said


def test_a_stopped_rank_ends_the_others_within_30_seconds(tmp_path, program, solver):
    """Rank 0 of one run and rank 2 of another one are stopped; both runs wait for the timeout at the same time."""
    path = endless(solver)
    runs = {victim: start_ranks(tmp_path, program("caffe"), path, 3) for victim in (0, 2)}
    for processes in runs.values():
        wait_for_iterations(processes[0])
    time.sleep(3)  # or longer: a heartbeat each second says what a rank does
    for victim, processes in runs.items():
        processes[victim].send_signal(signal.SIGSTOP)
    moment = datetime.now()
    for victim, processes in runs.items():
        for status, said in finish([one for one in processes if one is not processes[victim]]):
            assert status == 1 and seconds_until_said(moment, said) < 30, said
            assert re.search(rf"{named(victim, processes[victim])}{SILENCE}.*last heard of: (compute|reduction): ", said), said
        # It also ends when it continues.
        processes[victim].send_signal(signal.SIGCONT)
        [(status, said)] = finish([processes[victim]])
        assert status == 1 and "rank" in said


@pytest.mark.parametrize("asked", [0, 1])
def test_sigterm_on_any_rank_snapshots_once_and_ends_all(asked, tmp_path, program, solver):
    path = solver("run", max_iter=100_000_000, display=20, snapshot=0)
    processes = start_ranks(tmp_path, program("caffe"), path, 2)
    wait_for_iterations(processes[0])
    processes[asked].terminate()
    for status, said in finish(processes):
        assert status == 0, said
    assert len(list(tmp_path.glob("run_iter_*.solverstate"))) == 1


@pytest.mark.parametrize("victim", [0, 2])
def test_a_cut_link_ends_all_within_30_seconds(victim, hosts, tmp_path, program, solver):
    processes = start_on_hosts(hosts, tmp_path, program("caffe"), endless(solver))
    wait_for_iterations(processes[0])
    names, ip = hosts
    ip("-n", names[3], "link", "set", f"port{victim}", "down")
    moment = datetime.now()
    for rank, (status, said) in enumerate(finish(processes)):
        assert status == 1 and seconds_until_said(moment, said) < 30, said
        assert rank == victim or f"rank {victim} (host " in said, said


@pytest.mark.parametrize("harm", ["kill", "stop", "cut"])
def test_a_hundred_times(harm, hosts, tmp_path, program, solver):
    """Chooses random steps and a random rank."""
    slow()
    chance = random.Random(1)
    names, ip = hosts
    longest = 0
    for _ in range(int(os.environ.get("CAFFE_HARMS", "100"))):
        processes = start_on_hosts(hosts, tmp_path, program("caffe"), endless(solver))
        wait_for_iterations(processes[0], chance.randrange(1000))
        victim = chance.randrange(3)
        if harm == "cut":
            ip("-n", names[3], "link", "set", f"port{victim}", "down")
        else:
            processes[victim].send_signal(signal.SIGKILL if harm == "kill" else signal.SIGSTOP)
        moment = datetime.now()
        results = finish([one for rank, one in enumerate(processes) if harm == "cut" or rank != victim])
        processes[victim].send_signal(signal.SIGCONT)
        [(status, _)] = [(processes[victim].wait(), "")] if harm == "cut" else finish([processes[victim]])
        assert status != 0
        if harm == "cut":
            ip("-n", names[3], "link", "set", f"port{victim}", "up")
        for rank, (status, said) in enumerate(results):
            longest = max(longest, seconds_until_said(moment, said))
            assert status == 1, said
            if harm != "cut" or rank != victim:
                assert f"rank {victim} (host " in said, said
    print(f"{harm}: the longest took {longest:.1f} s")
    assert longest < 30

"""Faults of disks, files and clocks, in training on three "machines": docs/clusters.md."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import time
from datetime import datetime

import pytest

from programs import BINARIES, slow
from ranks import (  # pylint: disable=unused-import
    bytes_of, finish, hosts_in_namespaces, seconds_until_said, start, wait_for_iterations)

FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
LIMIT = 30  # seconds until all have ended, by the times in their logs


def commands(hosts, solvers, *arguments, programs=(BINARIES / "caffe",) * 3):
    """One `caffe train` for each of three hosts, each with its own solver."""
    names, _ = hosts
    return [["ip", "netns", "exec", names[rank], programs[rank], "train", f"-solver={solvers[rank]}", "-ranks=3",
             f"-rank={rank}", "-store=10.77.0.1:29500", *arguments] for rank in range(3)]


def longest(begin, results):
    return max(seconds_until_said(begin, said) for _, said in results)


class FullDisk:
    """Rank 0's disk is full when it writes a snapshot during training, and when the run is asked to end."""

    def __init__(self, hosts, folder, solver):
        self.hosts, self.folder, self.disk = hosts, folder, folder / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.disk], check=True)
        self.solver = solver("full", max_iter=100_000_000, display=20, snapshot=5, snapshot_prefix=f'"{self.disk}/run"')

    def close(self):
        subprocess.run(["umount", self.disk], check=True)

    def strike(self, chance):
        for file in self.disk.iterdir():
            file.unlink()
        processes = start(self.folder, commands(self.hosts, [self.solver] * 3))
        wait_for_iterations(processes[0])
        time.sleep(chance.random())
        with (self.disk / "others").open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(bytes(1 << 12))
        time.sleep(chance.random())
        processes[chance.randrange(3)].terminate()
        begin = datetime.now()
        results = finish(processes)
        for rank, (status, said) in enumerate(results):
            assert status == 1 and "No space left on device" in said, said
            assert rank == 0 or "rank 0 (host " in said, said
        assert not list(self.disk.glob("*.tmp.*"))
        states, weights = (sorted(int(re.search(r"_iter_(\d+)", file.name)[1]) for file in self.disk.glob(f"*.{kind}"))
                           for kind in ("solverstate", "caffemodel"))
        assert states == weights  # each snapshot is complete or absent
        return longest(begin, results)


class AnotherFile:
    """One rank has another solver, or another net at the same path, as on a separate machine."""

    def __init__(self, hosts, folder, solver, what):
        self.hosts, self.folder, self.what = hosts, folder, what
        net = (folder / "net.prototxt").read_text()
        self.own, self.other = folder / "own", folder / "other"
        for place, rate, outputs in ((self.own, 0.01, 8), (self.other, *((0.02, 8) if what == "solver" else (0.01, 9)))):
            place.mkdir()
            (place / "net.prototxt").write_text(net.replace("num_output: 8", f"num_output: {outputs}"))
            shutil.move(solver("run", max_iter=20, base_lr=rate, net='"net.prototxt"'), place / "solver.prototxt")

    def close(self):
        pass

    def strike(self, chance):
        victim = chance.randrange(3)
        secret = {"CAFFE_SECRET": "open sesame"}
        processes = [start(self.other if rank == victim else self.own, [command], **secret)[0]
                     for rank, command in enumerate(commands(self.hosts, ["solver.prototxt"] * 3))]
        begin = datetime.now()
        results = finish(processes)
        # If rank 0 differs from all others, the first of the others is named.
        for status, said in results:
            assert status == 1 and f"rank {max(victim, 1)} differs from rank 0 in the {self.what}: line " in said, said
        assert not list(self.folder.glob("*_iter_*"))
        return longest(begin, results)


class AnotherVersion:
    """One rank has another version: a copy of the library in which the version text is changed."""

    def __init__(self, hosts, folder, solver):
        self.hosts, self.folder, self.solver = hosts, folder, solver("run", max_iter=20)
        self.version = subprocess.run([BINARIES / "caffe", "--version"], capture_output=True, text=True,
                                      check=True).stdout.split()[-1]
        self.other = f"{self.version[:-1]}{(int(self.version[-1]) + 1) % 10}"
        shutil.copytree(BINARIES.parent / "lib", folder / "other" / "lib", symlinks=True,
                        ignore=shutil.ignore_patterns("test_plugins"))
        (folder / "other" / "bin").mkdir()
        self.program = shutil.copy(BINARIES / "caffe", folder / "other" / "bin")
        library = (folder / "other" / "lib" / "libcaffe.so").resolve()
        content, text = library.read_bytes(), self.version.encode() + b"\0"
        assert text in content
        library.write_bytes(content.replace(text, self.other.encode() + b"\0"))

    def close(self):
        pass

    def strike(self, chance):
        victim = chance.randrange(3)
        programs = [self.program if rank == victim else BINARIES / "caffe" for rank in range(3)]
        # A rank that joins after rank 0 has ended waits this long for it.
        processes = start(self.folder, commands(self.hosts, [self.solver] * 3, "-join_seconds=20", programs=programs))
        begin = datetime.now()
        results = finish(processes)
        named = rf"rank {victim}" if victim else "rank [12]"
        theirs, roots = (self.other, self.version) if victim else (self.version, self.other)
        for rank, (status, said) in enumerate(results):
            assert status == 1, said
            text = rf"{named} \(host \S+, process \d+\) has version {theirs}, rank 0 version {roots}"
            late = rank != 0 and "rank 0 at 10.77.0.1:29500: nobody answers" in said
            assert late or re.search(text, said), said
        return longest(begin, results)


class ClockJump:
    """The wall clock of one rank jumps by days, forwards or backwards: training ends as usual.

    libfaketime, preloaded into that rank, reads the jump from a file; the machine's own clock does not change.
    """

    ITERATIONS = 200

    def __init__(self, hosts, folder, solver):
        if not FAKETIME.exists():
            pytest.skip("libfaketime is not installed (Debian's package faketime)")
        self.hosts, self.folder, self.solver = hosts, folder, solver("run", max_iter=self.ITERATIONS, display=1)
        for status, said in finish(start(folder, commands(hosts, [self.solver] * 3))):
            assert status == 0, said
        self.expected = bytes_of(folder, "run", self.ITERATIONS)

    def close(self):
        pass

    def strike(self, chance):
        for file in self.folder.glob("run_iter_*"):
            file.unlink()
        victim, jump = chance.randrange(3), self.folder / "jump"
        jump.write_text("+0")
        clock = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(jump), "FAKETIME_NO_CACHE": "1",
                 "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        processes = [start(self.folder, [command], held=rank == 0, **(clock if rank == victim else {}))[0]
                     for rank, command in enumerate(commands(self.hosts, [self.solver] * 3))]
        wait_for_iterations(processes[0], chance.randrange(self.ITERATIONS - 100))
        assert all(one.poll() is None for one in processes)
        jump.write_text(f"{chance.choice('+-')}{chance.randrange(2, 100)}d")
        results = finish(processes)
        for status, said in results:
            assert status == 0, said
        if victim == 0:  # rank 0's log has the dates
            assert set(re.findall(r"^I(\d{4}) ", results[0][1], re.MULTILINE)) - {time.strftime("%m%d")}
        assert bytes_of(self.folder, "run", self.ITERATIONS) == self.expected
        return 0  # no clock shows how long it took


FAULTS = {"full disk": FullDisk, "another solver": lambda *place: AnotherFile(*place, "solver"),
          "another net": lambda *place: AnotherFile(*place, "net"), "another version": AnotherVersion,
          "clock jump": ClockJump}


@pytest.fixture(name="fault")
def fault_on_hosts(request, hosts, tmp_path, solver):
    one = FAULTS[request.param](hosts, tmp_path, solver)
    yield one
    one.close()


@pytest.mark.parametrize("fault", FAULTS, indirect=True)
def test_ends_as_it_should(fault):
    assert fault.strike(random.Random(2)) < LIMIT


@pytest.mark.parametrize("fault", FAULTS, indirect=True)
def test_a_hundred_times(fault, request):
    """Chooses random steps and a random rank."""
    slow()
    chance = random.Random(1)
    longest = max(fault.strike(chance) for _ in range(int(os.environ.get("CAFFE_HARMS", "100"))))
    print(f"{request.node.name}: the longest took {longest:.1f} s")
    assert longest < LIMIT

"""Ranks that go on when others vanish: docs/clusters.md."""
import os
import random
import re
import signal
import subprocess

import pytest

from programs import slow, wait_for_line
from ranks import environment, finish, mpirun, start, start_ranks, wait_for_iterations

ITERATIONS = 200
# Running statistics change before an iteration is whole; the others have more state than weights.
KINDS = {
    "sgd": {},
    "adam": {"type": '"Adam"', "momentum2": 0.999, "iter_size": 2, "max_iter": ITERATIONS // 2},
    "fp16": {"precision": "FP16", "average_loss": 5},
}


@pytest.fixture(name="elastic")
def solver_of_a_net_with_statistics(tmp_path, solver):
    net = tmp_path / "net.prototxt"
    net.write_text(net.read_text().replace("batch_size: 16", "batch_size: 12").replace(
        'layer { name: "relu"', 'layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" }\n'
                                'layer { name: "relu"'))
    return lambda name, **fields: solver(name, **{"max_iter": ITERATIONS, "display": 1, **fields})


def membership(folder, name="run"):
    """Its lines, as (iteration, ranks, why)."""
    lines = (folder / f"{name}_membership.txt").read_text().splitlines()
    found = [re.fullmatch(r"iteration (\d+): (\d+) ranks?(?:, because (.*))?", line) for line in lines]
    assert all(found), lines
    return [(int(match[1]), int(match[2]), match[3]) for match in found]


def train(folder, caffe, *arguments):
    done = subprocess.run([caffe, "train", *arguments], env=environment(folder), cwd=folder, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_survivors_end_with_the_weights_of_a_replay(kind, tmp_path, program, elastic):
    """And of as many ranks that go on from the snapshot; that is what those that were lost have made."""
    caffe, fields = program("caffe"), KINDS[kind]
    path = elastic("run", **fields)
    processes = start_ranks(tmp_path, caffe, path, 3, "-min_ranks=2", held=True)
    wait_for_iterations(processes[0], random.randint(1, 30))
    processes[1].kill()
    results = finish(processes)
    assert [status for status, _ in results] == [0, -signal.SIGKILL, 0], results
    (begin, before, _), (lost_at, left, why) = membership(tmp_path)
    end = fields.get("max_iter", ITERATIONS)
    assert (begin, before, left) == (0, 3, 2) and 0 < lost_at < end
    assert re.match(rf"rank 1 \(host \S+, process {processes[1].pid}\): ", why)
    weights = (tmp_path / f"run_iter_{end}.caffemodel").read_bytes()

    train(tmp_path, caffe, f"-solver={elastic('replayed', **fields)}", f"-replay={tmp_path}/run_membership.txt")
    assert (tmp_path / f"replayed_iter_{end}.caffemodel").read_bytes() == weights

    whole = elastic("whole", **{**fields, "snapshot": lost_at})
    train(tmp_path, caffe, f"-solver={whole}", "-workers=3")
    state = f"iter_{lost_at}.caffemodel"
    assert (tmp_path / f"run_{state}").read_bytes() == (tmp_path / f"whole_{state}").read_bytes()

    path = elastic("resumed", **fields)
    for status, said in finish(start_ranks(tmp_path, caffe, path, 2, f"-snapshot={tmp_path}/run_iter_{lost_at}.solverstate")):
        assert status == 0, said
    assert (tmp_path / f"resumed_iter_{end}.caffemodel").read_bytes() == weights


def test_ranks_may_vanish_one_after_another(tmp_path, program, elastic):
    caffe = program("caffe")
    processes = start_ranks(tmp_path, caffe, elastic("run", max_iter=400, snapshot=100), 4, "-min_ranks=1", held=True)
    for count, victim in enumerate((3, 1, 2), 1):
        wait_for_iterations(processes[0], 50 * count)
        processes[victim].kill()
        wait_for_line(processes[0], rf"the other {4 - count} go on from iteration")
    assert finish(processes)[0][0] == 0
    assert [ranks for _, ranks, _ in membership(tmp_path)] == [4, 3, 2, 1]
    train(tmp_path, caffe, f"-solver={elastic('replayed', max_iter=400)}", f"-replay={tmp_path}/run_membership.txt")
    assert (tmp_path / "replayed_iter_400.caffemodel").read_bytes() == (tmp_path / "run_iter_400.caffemodel").read_bytes()


def test_under_mpirun(tmp_path, program, elastic):
    """mpirun reads what ranks say as fast as they say it, so none waits for this test: they train until they are told to end."""
    path = elastic("run", max_iter=100_000_000, display=20)
    command = mpirun(3, program("caffe"), "train", f"-solver={path}", "-min_ranks=2")
    [process] = start(tmp_path, [[command[0], "--enable-recovery", *command[1:]]])
    wait_for_iterations(process)
    ranks = sorted(map(int, subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True,
                                           check=True).stdout.split()))
    assert len(ranks) == 3
    os.kill(ranks[2], signal.SIGKILL)
    wait_for_line(process, "the other 2 go on from iteration")
    os.kill(ranks[0], signal.SIGTERM)
    [(status, said)] = finish([process])
    assert status == 0 and "Optimization stopped early." in said, said
    assert [count for _, count, _ in membership(tmp_path)] == [3, 2]
    assert len(list(tmp_path.glob("run_iter_*.solverstate"))) == 2  # where the rank was lost, and at the end


def test_too_few_end_with_a_snapshot(tmp_path, program, elastic):
    caffe = program("caffe")
    processes = start_ranks(tmp_path, caffe, elastic("run"), 3, "-min_ranks=3", held=True)
    wait_for_iterations(processes[0])
    processes[2].kill()
    for status, said in finish(processes)[:2]:
        assert status == 1 and "rank 2 (host " in said, said
    [state] = tmp_path.glob("run_iter_*.solverstate")
    lost_at = int(re.search(r"_(\d+)\.", state.name)[1])
    for status, said in finish(start_ranks(tmp_path, caffe, elastic("run"), 2, "-auto_resume", "-min_ranks=1")):
        assert status == 0, said
    assert membership(tmp_path) == [(0, 3, None), (lost_at, 2, None)]


def test_rank_0_holds_them_together(tmp_path, program, elastic):
    processes = start_ranks(tmp_path, program("caffe"), elastic("run"), 3, "-min_ranks=1", held=True)
    wait_for_iterations(processes[0])
    processes[0].kill()
    for status, said in finish(processes)[1:]:
        assert status == 1 and "rank 0 (host " in said, said


def test_an_error_ends_all(tmp_path, program, elastic):
    """What one rank cannot read, the others might not either."""
    processes = start_ranks(tmp_path, program("caffe"), elastic("run"), 2, "-min_ranks=1",
                            each=lambda rank: ["--set=base_lr=0.02"] if rank else [])
    for status, said in finish(processes):
        assert status == 1 and "rank 1 differs from rank 0 in the solver" in said, said


def test_a_stopped_rank_does_not_come_back(tmp_path, program, elastic):
    slow()
    caffe = program("caffe")
    processes = start_ranks(tmp_path, caffe, elastic("run"), 3, "-min_ranks=2", held=True)
    wait_for_iterations(processes[0])
    processes[2].send_signal(signal.SIGSTOP)
    wait_for_line(processes[0], "the other 2 go on from iteration")
    processes[2].send_signal(signal.SIGCONT)
    (status0, said0), (status1, said1), (status2, said2) = finish(processes)
    assert status0 == status1 == 0, said0 + said1
    assert status2 == 1 and "rank" in said2, said2
    assert [ranks for _, ranks, _ in membership(tmp_path)] == [3, 2]


@pytest.mark.parametrize("arguments, text", [
    (["-ranks=2", "-rank=0", "-store=localhost:1", "-min_ranks=3"], "min_ranks is 3; give 1 to 2"),
    (["-ranks=2", "-rank=0", "-store=localhost:1", "-min_ranks=-1"], "min_ranks is -1; give 1 to 2"),
    (["-replay=missing.txt"], "missing.txt: cannot open"),
    (["-replay=other.txt"], "other.txt:2: 'iteration 5: no ranks' is no line such as"),
    (["-replay=late.txt"], "late.txt: begins at iteration 40"),
    (["-replay=late.txt", "-workers=2"], "leave out -workers"),
])
def test_what_cannot_be_is_refused(arguments, text, tmp_path, program, elastic):
    (tmp_path / "other.txt").write_text("iteration 0: 3 ranks\niteration 5: no ranks\n")
    (tmp_path / "late.txt").write_text("iteration 40: 3 ranks\n")
    done = subprocess.run([program("caffe"), "train", f"-solver={elastic('run')}", *arguments], cwd=tmp_path,
                          env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1 and text in done.stderr, done.stderr
    assert not list(tmp_path.glob("run_iter*"))

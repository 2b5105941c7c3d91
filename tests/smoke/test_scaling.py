"""`caffe plan -ranks`: its predictions, as a table and as JSON, and the mistakes that it names."""
import json
import os

import pytest

NET = "benchmarks/nets/lenet.prototxt"
CLUSTER = ("-ranks=2,16", "-ranks_per_machine=2", "-bandwidth=10Gb/s", "-latency=20us")


@pytest.fixture
def plan(run, program, tmp_path):
    """Runs `caffe plan` with its own cache; returns the finished process."""
    def call(*arguments):
        return run(program("caffe"), "plan", *arguments,
                   env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"})
    return call


def rows(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["scaling"]


def test_a_net_has_a_row_for_each_number_of_ranks(plan):
    two, sixteen = rows(plan(NET, *CLUSTER, "-json"))
    assert [two["ranks"], sixteen["ranks"]] == [2, 16]
    for row in two, sixteen:
        assert row["step_ms"] > row["one_rank"]["step_ms"] > 0
        assert 0 < row["exposed_ms"] < row["step_ms"]
        assert row["efficiency"] == pytest.approx(row["one_rank"]["step_ms"] / row["step_ms"])
        assert row["images_per_second"] == pytest.approx(64 * row["ranks"] / row["step_ms"] * 1000)
        assert row["buckets"] == 6 and 1 <= row["best"]["buckets"] <= 64
        assert row["best"]["step_ms"] <= row["step_ms"]
    assert sixteen["communication_ms"] > two["communication_ms"]
    assert sixteen["network"]["bytes_per_second"] == 1.25e9


def test_the_table_has_the_same_rows(plan):
    done = plan(NET, *CLUSTER)
    assert done.returncode == 0, done.stderr
    assert "Scaling of 'LeNet' on" in done.stdout
    assert "1.25 GB/s and 20 us between machines; TCP" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[-2:]] == ["2", "16"]


def test_a_solver_adds_its_update(plan, tmp_path):
    solver = tmp_path / "solver.prototxt"
    solver.write_text(f'net: "{NET}" base_lr: 0.1 lr_policy: "fixed" iter_size: 2 max_iter: 1 solver_mode: CPU')
    of_solver, = rows(plan(solver, "-ranks=1", "-json"))
    of_net, = rows(plan(NET, "-ranks=1", "-json"))
    assert of_net["one_rank"]["update_ms"] == 0 < of_solver["one_rank"]["update_ms"]
    assert of_solver["one_rank"]["images"] == 2 * 64
    assert of_solver["one_rank"]["backward_ms"] == pytest.approx(of_net["one_rank"]["backward_ms"], rel=0.01)


def test_gradients_of_16_bits_halve_what_travels(plan):
    slow = ("-ranks=2", "-bandwidth=1MB/s", "-latency=0us", "-json")
    wide, = rows(plan(NET, *slow))
    narrow, = rows(plan(NET, *slow, "-set=reduce_type=BFLOAT16"))
    assert narrow["communication_ms"] == pytest.approx(wide["communication_ms"] / 2, rel=0.05)


def test_layers_that_ranks_split_exchange_activations(plan):
    """LeNet's ip1 has 401,000 weights and 500 outputs: it is split, and its gradients are not reduced."""
    one = ("-ranks=2", "-ranks_per_machine=2")
    whole, = rows(plan(NET, *one, "-json"))
    by_cost, = rows(plan(NET, *one, "-parallel=auto", "-json"))
    by_hand, = rows(plan(NET, *one, "-set=layer[ip1].parallel=SPLIT_OUTPUT", "-json"))
    assert whole["one_rank"]["exchanged_bytes"] == 0 < by_cost["one_rank"]["exchanged_bytes"]
    for row in by_cost, by_hand:
        assert row["one_rank"]["gradients"] == whole["one_rank"]["gradients"] - 2
    done = plan(NET, *one, "-parallel=auto")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Scaling of 'LeNet'") == 2, "without and with what is split"
    ip1, ip2 = [line for line in done.stdout.splitlines() if ": gradients" in line]
    assert ip1.startswith("  ip1: gradients 1.602 MB") and ip1.endswith(": split")
    assert ip2.startswith("  ip2: gradients 0.02004 MB") and ip2.endswith(": not split")


@pytest.mark.parametrize("arguments, message", [
    (["-ranks=0"], "--ranks is '0'; give numbers from 1"),
    (["-ranks=8,many"], "--ranks is 'many'; give numbers from 1"),
    (["-ranks=,"], "--ranks is ','; give numbers from 1"),
    (["-ranks=99999999999"], "--ranks is '99999999999'; give numbers from 1"),
    (["-ranks=2"], "-bandwidth is missing"),
    (["-ranks=2", "-bandwidth=50GB/s"], "-latency is missing"),
    (["-ranks=2", "-bandwidth=50", "-latency=5us"], "-bandwidth is '50'; give a positive number and a unit"),
    (["-ranks=2", "-bandwidth=-5GB/s", "-latency=5us"], "-bandwidth is '-5GB/s'; give a positive number"),
    (["-ranks=2", "-bandwidth=5GB/s", "-latency=5"], "-latency is '5'; give a number from 0 and a unit"),
    (["-ranks=2", "-ranks_per_machine=0"], "-ranks_per_machine is 0; give a number from 1"),
    (["-bandwidth=50GB/s"], "--ranks is missing; give their number"),
    (["-parallel=auto"], "--parallel is auto, but not --ranks; give the number of ranks, too"),
    (["-parallel=auto", "-ranks=8", "--gpu=H200", "-bandwidth=50GB/s", "-latency=5us"],
     "layers are split over ranks on the CPU only"),
    (["-ranks=2", "-ranks_per_machine=2", "--phase=TEST"], "--phase is TEST"),
])
def test_mistakes_are_named(plan, arguments, message):
    done = plan(NET, *arguments)
    assert done.returncode == 1
    assert message in done.stderr

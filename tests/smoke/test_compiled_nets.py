"""The nets of examples and benchmarks compile; plans, times and errors are as expected."""
import json
import re
import subprocess

import pytest

from programs import BINARIES


@pytest.mark.parametrize("folder", ["bvlc_alexnet", "bvlc_googlenet", "resnet50"])
def test_deploy_nets_compile_for_testing(workplace, folder):
    output = workplace.run("caffe", "plan", f"--model=models/{folder}/deploy.prototxt", "--phase=TEST", "--json")
    plan = json.loads(output[output.index("{"):])
    assert {step["direction"] for step in plan["steps"]} == {"forward"}


@pytest.mark.parametrize("net, weights", [("examples/mnist/lenet.prototxt", 431080),
                                          ("examples/cifar10/cifar10_quick.prototxt", 145578)])
def test_example_deploy_nets_compile(workplace, net, weights):
    assert f"{weights} " in workplace.run("caffe", "plan", f"--model={net}")


@pytest.mark.parametrize("net", ["lenet", "alexnet", "googlenet", "resnet50"])
def test_benchmark_nets_compile(workplace, net):
    output = workplace.run("caffe", "plan", "--json", f"--model=benchmarks/nets/{net}.prototxt")
    plan = json.loads(output[output.index("{"):])
    assert plan["memory"]["total"] > 0
    assert {step["direction"] for step in plan["steps"]} == {"forward", "backward"}


def test_time_reports_steps(workplace):
    output = workplace.run("caffe", "time", "--model=benchmarks/nets/lenet.prototxt", "--iterations=2")
    assert len(re.findall(r"Iteration: \d+ forward-backward time: [\d.e+]+ ms\.", output)) == 2
    assert "Average Forward-Backward: " in output


def test_a_memory_limit_is_kept_by_recomputing(workplace):
    net = "--model=benchmarks/nets/googlenet.prototxt"
    usual = json.loads(workplace.run("caffe", "plan", "--json", net))
    limited = json.loads(workplace.run("caffe", "plan", "--json", net, "--memory_limit=450"))
    assert not any("recomputes" in step for step in usual["steps"])
    assert any("recomputes" in step for step in limited["steps"])
    assert limited["memory"]["total"] - limited["memory"]["program"] <= 450 << 20 < usual["memory"]["total"]
    table = workplace.run("caffe", "plan", net, "--trade_offs").split("Time against memory")[1].splitlines()[2:]
    steps = [int(line.split()[4]) for line in table if line]
    assert steps[0] == 0 and steps == sorted(steps) and len(steps) > 3
    done = subprocess.run([BINARIES / "caffe", "plan", net, "--memory_limit=50"], cwd=workplace.root, text=True,
                          check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert "memory_limit is 50 MiB; the smallest plan takes " in done.stderr


@pytest.mark.parametrize("action, flag, text, place, reason", [
    ("plan", "model", 'name: "n"\nlayer {\n  tpo: "x"\n}\n', "3:3", "did you mean 'top'?"),
    ("plan", "model", 'name: "n"\nlayer {\n  name: "a"\n', "4:1", "in layer 'a'"),
    ("time", "model", "input_dim: many\n", "1:12", "many"),
    ("train", "solver", 'net: "n"\nbase_lr: fast\n', "2:10", "fast"),
])
def test_a_malformed_file_is_named_with_its_line(workplace, action, flag, text, place, reason):
    (workplace.root / "wrong.prototxt").write_text(text)
    done = subprocess.run([BINARIES / "caffe", action, f"--{flag}=wrong.prototxt"], cwd=workplace.root, text=True,
                          check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert f"wrong.prototxt:{place}: " in done.stderr
    assert reason in done.stderr
    assert not done.stdout

"""Every net in the tree compiles, with the weights of its paper, and those for benchmarks run."""
import json
import re
import subprocess

import pytest

from conftest import BINARIES

WEIGHTS = {"models/bvlc_alexnet": 60965224, "models/bvlc_googlenet": 6998552,
           # 25,557,032 learned; the rest are stored statistics.
           "models/resnet50": 25610205}


@pytest.mark.parametrize("folder, weights", WEIGHTS.items())
def test_deploy_nets_compile(workplace, folder, weights):
    output = workplace.run("caffe", "plan", f"--model={folder}/deploy.prototxt")
    assert int(re.search(r"Parameters:\s+(\d+)", output).group(1)) == weights


@pytest.mark.parametrize("folder", WEIGHTS)
def test_deploy_nets_compile_for_testing(workplace, folder):
    output = workplace.run("caffe", "plan", f"--model={folder}/deploy.prototxt", "--phase=TEST", "--json")
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

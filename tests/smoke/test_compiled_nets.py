"""Every net in the tree compiles, with the weights of its paper, and those for benchmarks run."""
import json
import re

import pytest

WEIGHTS = {"models/bvlc_alexnet": 60965224, "models/bvlc_googlenet": 6998552,
           # 25,557,032 learned; the rest are stored statistics.
           "models/resnet50": 25610205}


@pytest.mark.parametrize("folder, weights", WEIGHTS.items())
def test_deploy_nets_compile(workplace, folder, weights):
    output = workplace.run("caffe", "plan", f"--model={folder}/deploy.prototxt")
    assert int(re.search(r"Parameters:\s+(\d+)", output).group(1)) == weights


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

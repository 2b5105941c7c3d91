"""The training log as the parsers of BVLC Caffe, NVCaffe and DIGITS read it, from the program and from Python."""
import re

import pytest

# parse_log.py of BVLC and NVCaffe searches for these anywhere in a line.
ITERATION = re.compile(r"Iteration (\d+)")
TRAIN_OUTPUT = re.compile(r"Train net output #(\d+): (\S+) = ([\.\deE+-]+)")
TEST_OUTPUT = re.compile(r"Test net output #(\d+): (\S+) = ([\.\deE+-]+)")
RATE = re.compile(r"lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?)")
# DIGITS matches the whole line, then the beginning of its message.
FLOAT = r"(NaN|[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?)"
LINE = re.compile(r"(\w)(\d{4} \S{8}).*]\s+(\S.*)$")
DIGITS = {name: re.compile(pattern, re.I) for name, pattern in {
    "iteration": r"Iteration (\d+)",
    "output": rf"(Train|Test) net output #(\d+): (\S*) = {FLOAT}",
    "rate": rf"Iteration (\d+).*lr = {FLOAT}",
    "snapshot": r"Snapshotting to (.*)\s*$",
    "state": r"Snapshotting solver state",
}.items()}

NET = """
name: "line"
layer { name: "x" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""
SOLVER = """
net: "net.prototxt" base_lr: 0.1 lr_policy: "step" gamma: 0.0001 stepsize: 2 max_iter: 4 display: 2 snapshot: 2 snapshot_prefix: "line"
test_iter: 2 test_interval: 2 random_seed: 1
"""


@pytest.fixture(name="log", params=["program", "python"])
def train(request, workplace):
    (workplace.root / "net.prototxt").write_text(NET)
    (workplace.root / "solver.prototxt").write_text(SOLVER)
    if request.param == "program":
        return workplace.run("caffe", "train", "-solver=solver.prototxt").splitlines()
    code = "import caffe; caffe.init_log(); caffe.train('solver.prototxt', progress=False)"
    return workplace.run_python("-c", code).splitlines()


def test_parse_log(log):
    """BVLC's and NVCaffe's parse_log.py."""
    iteration, rows, rates = None, [], {}
    for line in log:
        found = ITERATION.search(line)
        if found:
            iteration = int(found.group(1))
        if iteration is None:
            continue
        rate = RATE.search(line)
        if rate:
            rates[iteration] = float(rate.group(1))
        for kind, pattern in (("train", TRAIN_OUTPUT), ("test", TEST_OUTPUT)):
            output = pattern.search(line)
            if output:
                assert float(output.group(3)) > 0
                rows.append((kind, iteration, int(output.group(1)), output.group(2)))
    assert rows == [("test", 0, 0, "loss"), ("train", 0, 0, "loss"), ("test", 2, 0, "loss"), ("train", 2, 0, "loss"),
                    ("test", 4, 0, "loss")]
    assert rates == {0: pytest.approx(0.1), 2: pytest.approx(1e-5)}


def test_fields_of_the_shell_script(log):
    """BVLC's parse_log.sh takes fields by their number, and times between brackets of glog's prefix."""
    assert sum("] Solving " in line for line in log) == 1
    assert sum("Testing net" in line for line in log) == 3
    rates = [line.split()[8] for line in log if "] Iteration " in line and ", lr = " in line]
    assert rates == ["0.1", "1e-05"]
    losses = [float(line.split("=")[1]) for line in log if "] Iteration " in line and ", loss = " in line]
    assert len(losses) == 3
    outputs = [line.split() for line in log if "Test net output #0" in line]
    assert len(outputs) == 3
    assert all(float(fields[10]) > 0 for fields in outputs)
    assert all(re.match(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \S+:\d+\] ", line) for line in log
               if "Iteration" in line)


def test_nvcaffes_plots(log):
    """They read the number of iterations from the solver at the beginning of the log."""
    assert [line.split()[1] for line in log if line.startswith("max_iter:")] == ["4"]


def test_digits(log):
    lines = [LINE.match(line) for line in log]
    messages = [line.group(3) for line in lines if line and line.group(1) in "IWEF"]
    found = {name: [match for match in map(pattern.match, messages) if match] for name, pattern in DIGITS.items()}
    assert [match.group(1) for match in found["rate"]] == ["0", "2"]
    assert [match.group(1).lower() for match in found["output"]] == ["test", "train", "test", "train", "test"]
    assert all(float(match.group(4)) > 0 and match.group(3) == "loss" for match in found["output"])
    assert [match.group(1).split("/")[-1] for match in found["snapshot"]] == [
        f"binary proto file line_iter_{iteration}.caffemodel" for iteration in (2, 4)]
    assert len(found["state"]) == 2
    assert {int(match.group(1)) for match in found["iteration"]} == {0, 2, 4}

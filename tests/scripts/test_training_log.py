"""tools/extra: tables and charts from logs of BVLC Caffe and NVCaffe."""
import csv
import json
import math
import pathlib
import struct
import subprocess
import sys

import pytest

EXTRA = pathlib.Path(__file__).resolve().parents[2] / "tools" / "extra"
sys.path.insert(0, str(EXTRA))
import parse_log  # noqa: E402

BVLC = """Log file created at: 2026/12/31 23:59:58
I1231 23:59:58.000000 25210 caffe.cpp:100] Train net output #0: before = 5
I1231 23:59:58.500000 25210 solver.cpp:280] Solving toy
I1231 23:59:58.500100 25210 solver.cpp:281] Learning Rate Policy: step
I1231 23:59:58.500200 25210 solver.cpp:338] Iteration 0, Testing net (#0)
I1231 23:59:58.750000 25210 solver.cpp:405]     Test net output #0: accuracy = 0.25
I1231 23:59:58.750000 25210 solver.cpp:405]     Test net output #1: loss = 1.74799 (* 1 = 1.74799 loss)
I1231 23:59:59.000000 25210 solver.cpp:218] Iteration 0 (-nan iter/s, 0.1s/5 iters), loss = 2.5
I1231 23:59:59.000000 25210 solver.cpp:237]     Train net output #0: loss = 1.5 (* 1 = 1.5 loss)
I1231 23:59:59.000000 25210 solver.cpp:237]     Train net output #1: each = 7
I1231 23:59:59.000000 25210 solver.cpp:237]     Train net output #2: each = 8
I1231 23:59:59.000000 25210 sgd_solver.cpp:105] Iteration 0, lr = 0.01
I0101 00:00:00.500000 25210 solver.cpp:218] Iteration 100 (60 iter/s, 1.5s/100 iters), loss = 1.25
I0101 00:00:00.500000 25210 solver.cpp:237]     Train net output #0: loss = nan (* 1 = nan loss)
I0101 00:00:00.500000 25210 sgd_solver.cpp:105] Iteration 100, lr = 1e-05
I0101 00:00:01.500000 25210 solver.cpp:338] Iteration 150, Testing net (#0)
I0101 00:00:01.500000 25210 solver.cpp:405]     Test net output #0: accuracy = 0.75
I0101 00:00:01.500000 25210 solver.cpp:338] Iteration 150, Testing net (#1)
I0101 00:00:01.500000 25210 solver.cpp:405]     Test net output #0: accuracy = 0.5
"""
NVCAFFE = """I0210 13:39:22.000000 25210 solver.cpp:204] Solving AlexNet
I0210 13:39:23.000000 25210 solver.cpp:338]     [0.0] Iteration 20 (100 iter/s, 0.2s/20 iter), 1.5/90ep, loss = 6.5
I0210 13:39:23.000000 25210 solver.cpp:352]     [0.0]     Train net output #0: loss = 6.25 (* 1 = 6.25 loss)
I0210 13:39:23.000000 25210 sgd_solver.cpp:180] [0.0] Iteration 20, lr = 0.02, m = 0.9, lrm = 0.1, wd = 0.0005, gs = 1
I0210 13:39:24.000000 25210 solver.cpp:554] Iteration 20, Testing net (#0)
I0210 13:39:25.000000 25210 solver.cpp:640]     (0.0)    Test net output #0: accuracy = 0.125
I0210 13:39:25.000000 25210 solver.cpp:640]     Test net output mAP #1: detection_eval = 0.5
"""


def run(script, *arguments, status=0, cwd=None):
    done = subprocess.run([sys.executable, EXTRA / script, *map(str, arguments)], capture_output=True, text=True,
                          check=False, cwd=cwd)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(name="log")
def write_log(tmp_path):
    (tmp_path / "toy.log").write_text(BVLC)
    return tmp_path / "toy.log"


def rows_of(path, **options):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, **options))


def test_tables(log, tmp_path):
    (tmp_path / "out").mkdir()
    assert "toy.log.train" in run("parse_log.py", log, tmp_path / "out", "--verbose", "--json")
    train = rows_of(tmp_path / "out" / "toy.log.train")
    assert list(train[0]) == ["NumIters", "Seconds", "LearningRate", "loss", "each", "each[1]"]
    assert list(train[0].values()) == ["0.0", "0.5", "0.01", "1.5", "7.0", "8.0"]
    # Across New Year's Eve.
    assert list(train[1].values()) == ["100.0", "2.0", "1e-05", "nan", "", ""]
    assert len(train) == 2
    test = rows_of(tmp_path / "out" / "toy.log.test")
    assert [list(row.values()) for row in test] == [["0.0", "0.25", "0.01", "0.25", "1.74799"],
                                                    ["150.0", "3.0", "1e-05", "0.75", ""]]
    assert [row["accuracy"] for row in rows_of(tmp_path / "out" / "toy.log.test.1")] == ["0.5"]
    tables = json.loads((tmp_path / "out" / "toy.log.json").read_text())
    assert [row["loss"] for row in tables["loss"]] == [2.5, 1.25]
    assert tables["train"][1] == {"NumIters": 100, "Seconds": 2.0, "LearningRate": 1e-05, "loss": None}


def test_delimiter(log, tmp_path):
    run("parse_log.py", log, tmp_path, "--delimiter", ";")
    assert rows_of(f"{log}.train", delimiter=";")[0]["loss"] == "1.5"


def test_nvcaffes_words():
    tables = parse_log.parse_lines(NVCAFFE.splitlines())
    assert tables["train"] == [{"NumIters": 20, "Seconds": 1.0, "LearningRate": 0.02, "loss": 6.25}]
    assert tables["test"] == {0: [{"NumIters": 20, "Seconds": 3.0, "LearningRate": 0.02, "accuracy": 0.125,
                                   "detection_eval": 0.5}]}
    assert tables["loss"][0]["loss"] == 6.5


def test_a_resumed_run_replaces_what_it_repeats():
    again = BVLC.split("Iteration 100, lr")[0].replace("loss = nan", "loss = 9").splitlines()[9:]
    tables = parse_log.parse_lines(BVLC.splitlines() + [line for line in again if "Iteration 100" in line or "= 9" in line])
    assert [(row["NumIters"], row["loss"]) for row in tables["train"]] == [(0, 1.5), (100, 9)]


def test_a_leap_day_and_lines_without_times():
    lines = ["I0228 23:59:59.000000 1 s.cpp:1] Solving x", "Iteration 0, lr = 1",
             "I0229 00:00:01.000000 1 s.cpp:1] Iteration 5, loss = 1", "Train net output #0: loss = 1"]
    assert parse_log.parse_lines(lines, year=2024)["train"][0]["Seconds"] == 2
    assert math.isnan(parse_log.parse_lines(lines[3:1:-1] + ["Train net output #0: loss = 1"])["train"][0]["Seconds"])


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.log").write_text("nothing\n")
    assert "Train net output" in run("parse_log.py", tmp_path / "x.log", tmp_path, status=1)
    assert "missing.log" in run("parse_log.py", tmp_path / "missing.log", tmp_path, status=1)


CURVES = {0: [([0, 150], [0.25, 0.75]), ([150], [0.5])], 1: [([0.25, 3], [0.25, 0.75]), ([3], [0.5])],
          2: [([0], [1.74799])], 3: [([0.25], [1.74799])], 4: [([0, 100], [0.01, 1e-05])], 5: [([0.5, 2], [0.01, 1e-05])],
          6: [([0, 100], [2.5, 1.25])], 7: [([0.5, 2], [2.5, 1.25])]}


@pytest.mark.parametrize("chart", CURVES)
def test_charts(chart, log, tmp_path):
    pytest.importorskip("matplotlib")
    import plot_training_log
    assert [(list(xs), list(ys)) for _, xs, ys in plot_training_log.curves(str(log), chart)] == CURVES[chart]
    (tmp_path / "other.log").write_text(NVCAFFE.replace("detection_eval", "loss"))
    logs = [str(log), str(tmp_path / "other.log")]
    assert plot_training_log.draw(chart, tmp_path / "chart.png", logs) == len(CURVES[chart]) + 1
    content = (tmp_path / "chart.png").read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert content.startswith(b"\x89PNG") and width > 500 and height > 300


def test_charts_of_other_outputs(log, tmp_path):
    pytest.importorskip("matplotlib")
    import plot_training_log
    run("plot_training_log.py", 0, tmp_path / "chart.svg", log)
    assert "test accuracy" in (tmp_path / "chart.svg").read_text().lower()
    assert plot_training_log.curves(str(log), 6, "each[1]") == [("toy.log", [0], [8.0])]
    assert "nothing for chart 2" in run("plot_training_log.py", 2, tmp_path / "x.png", log, "--output", "nobody", status=1)


def test_a_log_with_the_year_in_its_lines():
    """glog's own form, which other programs that use libcaffe may write."""
    tables = parse_log.parse_lines(line.replace("I0210", "I20260210") for line in NVCAFFE.splitlines())
    assert tables["train"] == parse_log.parse_lines(NVCAFFE.splitlines())["train"]
    assert tables["train"][0]["Seconds"] == 1

"""Run folders, read while they are written, damaged, or of other versions."""
import json
import math
import os
import socket

import numpy as np
import pytest

from caffe.runs import Run, find_runs, summarize
from caffe.runs.definitions import differences, fields_of
from caffe.runs.lines import GrowingLines
from caffe.runs.plan import read_plan

TRAIN = {"event": "train", "time": 5.0, "iteration": 10, "loss": 0.5, "smoothed_loss": 0.6, "learning_rate": 0.1, "outputs": {"loss": 0.5}}
TEST = {"event": "test", "time": 6.0, "iteration": 10, "loss": 0.4, "net": 0, "outputs": {"accuracy": 0.9}}


def write(folder, *lines, mode="a"):
    with open(folder / "metrics.jsonl", mode, encoding="utf-8") as file:
        file.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)


def read(folder):
    run = Run(folder)
    run.refresh()
    return run


def values(run):
    return {name: (series.steps.tolist(), series.values.tolist()) for name, series in run.series.items()}


def session(folder, **keys):
    (folder / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", **keys}]}))


def test_figures_by_name(tmp_path):
    write(tmp_path, {"event": "start", "time": 1.0, "iteration": 0}, TRAIN, TEST, {"event": "snapshot", "time": 7.0, "iteration": 10, "file": "a"})
    run = read(tmp_path)
    assert values(run) == {"train/loss": ([10], [0.5]), "train/smoothed_loss": ([10], [0.6]), "train/learning_rate": ([10], [0.1]),
                           "test/loss": ([10], [0.4]), "test/accuracy": ([10], [0.9])}
    assert run.snapshots == [(10, "a")] and (run.iteration, run.time) == (10, 7.0) and not run.problems
    assert run.series["test/accuracy"].times.tolist() == [6.0] and run.series["test/accuracy"].last == 0.9


def test_only_what_is_new_is_read(tmp_path):
    run = Run(tmp_path)
    assert not run.refresh()
    write(tmp_path, TRAIN)
    assert run.refresh() and not run.refresh()
    write(tmp_path, {**TRAIN, "iteration": 20}, json.dumps({**TRAIN, "iteration": 30})[:40])  # the last is being written
    assert run.refresh() and run.series["train/loss"].steps.tolist() == [10, 20]
    write(tmp_path, json.dumps({**TRAIN, "iteration": 30})[40:], "\n")
    assert run.refresh() and run.series["train/loss"].steps.tolist() == [10, 20, 30] and not run.problems


def test_a_resumed_run_voids_what_it_repeats(tmp_path):
    snapshot = {"event": "snapshot", "time": 7.0, "file": "a"}
    write(tmp_path, *({**TRAIN, "iteration": step} for step in (10, 20, 30)), {**snapshot, "iteration": 20}, {**snapshot, "iteration": 30},
          {"event": "start", "time": 8.0, "iteration": 20}, {**TRAIN, "iteration": 20, "learning_rate": 7.0})
    run = read(tmp_path)
    assert values(run)["train/learning_rate"] == ([10, 20], [0.1, 7.0]) and run.snapshots == [(20, "a")]


def test_a_file_that_is_replaced_is_read_from_its_begin(tmp_path):
    write(tmp_path, TRAIN, {**TRAIN, "iteration": 20})
    run = read(tmp_path)
    os.rename(tmp_path / "metrics.jsonl", tmp_path / "old")
    write(tmp_path, {**TRAIN, "learning_rate": 3.0})
    run.refresh()
    assert values(run)["train/learning_rate"] == ([10], [3.0])
    write(tmp_path, TEST, mode="w")
    run.refresh()
    assert sorted(run.series) == ["test/accuracy", "test/loss"]


def test_several_test_nets(tmp_path):
    write(tmp_path, TEST, {**TEST, "net": 1, "outputs": {"accuracy": 0.1}}, {**TEST, "iteration": 20}, {**TEST, "iteration": 20, "net": 1})
    run = read(tmp_path)
    assert values(run)["test0/accuracy"] == ([10, 20], [0.9, 0.9]) and values(run)["test1/accuracy"] == ([10, 20], [0.1, 0.9])
    assert "test/accuracy" not in run.series


def test_numbers_that_are_not_finite(tmp_path):
    write(tmp_path, {**TRAIN, "smoothed_loss": "Infinity", "learning_rate": "fast", "outputs": {"a": "NaN", "b": "-Infinity"}})
    run = read(tmp_path)
    assert math.isnan(run.series["train/a"].last) and run.series["train/b"].last == -math.inf
    assert run.series["train/smoothed_loss"].last == math.inf and "train/learning_rate" not in run.series


@pytest.mark.parametrize("line", ["{", "[]", "7", "null", '"a"', "{}", '{"event": "train"}', '{"event": "train", "iteration": "x", "time": 1}',
                                  '{"event": "train", "iteration": 1e999, "time": 1}', '{"event": "train", "iteration": 1, "time": 1, "outputs": 7}',
                                  "\x00\x01", "[" * 10000, '{"event": "snapshot", "iteration": 1, "time": 1}', "x" * 3000000])
def test_damaged_lines_are_skipped(tmp_path, line):
    write(tmp_path, TRAIN, line + "\n", {**TRAIN, "iteration": 20})
    run = read(tmp_path)
    assert run.series["train/loss"].steps.tolist()[-1] == 20
    assert run.problems == ["1 line of metrics.jsonl cannot be read"]


def test_lines_of_a_newer_version(tmp_path):
    write(tmp_path, TRAIN, {"event": "eclipse", "time": 6.0, "iteration": 15, "phase": {"of": "moon"}}, {**TRAIN, "iteration": 20, "new": [1]})
    run = read(tmp_path)
    assert run.series["train/loss"].steps.tolist() == [10, 20] and not run.problems


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"sessions": 7}', '{"sessions": [7]}', "\x00", "[" * 100000])
def test_a_damaged_description(tmp_path, text):
    write(tmp_path, TRAIN)
    (tmp_path / "run.json").write_text(text)
    run = read(tmp_path)
    assert run.state == "unknown" and run.series["train/loss"].last == 0.5
    assert len(run.problems) == 1 and run.problems[0].startswith("run.json cannot be read: ")


def test_what_has_become_of_a_run(tmp_path):
    assert Run(tmp_path).state == "unknown"
    session(tmp_path, reason="finished")
    assert Run(tmp_path).state == "finished"
    session(tmp_path, host=socket.gethostname(), process=os.getpid(), start="2999-01-01T00:00:00Z")
    assert Run(tmp_path).state == "running"
    session(tmp_path, host=socket.gethostname(), process=os.getpid(), start="2001-01-01T00:00:00Z")
    assert Run(tmp_path).state == "killed", "this process has begun later, so the number was another one's"
    session(tmp_path, host=socket.gethostname(), process=2 ** 30)
    assert Run(tmp_path).state == "killed"
    session(tmp_path, host="elsewhere", process=1)
    assert Run(tmp_path).state == "running"
    for process in (None, "x", -1, [1]):
        session(tmp_path, host=socket.gethostname(), process=process)
        assert Run(tmp_path).state == "killed"


def test_run_folders_are_found(tmp_path):
    for name in ("a/metrics.jsonl", "b/c/run.json", ".hidden/run.json", "a/inner/run.json", "d/other.txt", "1/2/3/4/5/6/7/8/run.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    os.symlink(tmp_path, tmp_path / "b" / "loop")
    assert find_runs(tmp_path) == [str(tmp_path / "a"), str(tmp_path / "b" / "c")]
    assert find_runs(tmp_path / "a") == [str(tmp_path / "a")]
    assert find_runs(tmp_path / "missing") == []


def test_lines_come_whole(tmp_path):
    file = tmp_path / "log"
    lines = GrowingLines(file)
    assert list(lines.next()) == []
    file.write_bytes(b"one\ntw")
    assert list(lines.next()) == [b"one"]
    file.write_bytes(b"one\ntwo\n\nthree\n")
    assert list(lines.next()) == [b"two", b"", b"three"]


def test_steps_never_fall(tmp_path):
    write(tmp_path, *({**TRAIN, "iteration": step} for step in (1, 5, 5, 3, 8)))
    steps, numbers = read(tmp_path).series["train/loss"]
    assert steps.tolist() == [1, 3, 8] and numbers.tolist() == [0.5, 0.5, 0.5] and steps.dtype == np.int64


def test_a_summary_reads_only_the_end(tmp_path):
    write(tmp_path, *({**TRAIN, "iteration": step} for step in range(0, 20000, 10)), {**TEST, "iteration": 20000}, {**TRAIN, "iteration": 20010, "loss": 7.0, "outputs": {}})
    session(tmp_path, reason="stopped", stop_iteration=40020)
    found = summarize(tmp_path)
    assert (found.iteration, found.state, found.share) == (20010, "stopped", 0.5)
    assert found.figures["train/loss"] == 7.0 and found.figures["test/accuracy"] == 0.9


@pytest.mark.parametrize("text", ["", "{", "[]\n", "x" * 200000, '{"event": "train"}\n', '{"event": "train", "iteration": 1, "time": 1, "outputs": 3}\n'])
def test_a_summary_of_damaged_files(tmp_path, text):
    write(tmp_path, text)
    assert summarize(tmp_path).figures == {}


@pytest.mark.parametrize("keys", [{"time": 1e20}, {"time": "NaN"}, {"time": -1}, {"iteration": 1e300}, {"iteration": -5}, {"iteration": "x"}, {"outputs": [1]},
                                  {"outputs": {"x": 10 ** 400}}])
def test_a_damaged_line_hides_no_other(tmp_path, keys):
    write(tmp_path, TRAIN, {**TRAIN, "iteration": 20, **keys})
    session(tmp_path, reason="stopped", stop_iteration=20)
    found, run = summarize(tmp_path), read(tmp_path)
    for one in (found, run):
        assert (one.iteration, one.time) in ((10, 5.0), (20, 5.0)) and one.state == "stopped"  # a number may be read as infinite
    assert run.series["train/loss"].last == 0.5 and found.figures["train/loss"] == 0.5


@pytest.mark.parametrize("value, stop", [(20, 20), ("abc", 0), (-5, 0), (10 ** 30, 0), (None, 0), ([20], 0), (1e9, 0)])
def test_where_a_session_ends(tmp_path, value, stop):
    write(tmp_path, TRAIN)
    session(tmp_path, stop_iteration=value)
    assert summarize(tmp_path).stop_iteration == read(tmp_path).stop_iteration == stop
    assert summarize(tmp_path).share == (0.5 if stop else None)


@pytest.mark.parametrize("keys", [{"process": 1e400}, {"process": "x"}, {"process": [1]}, {"process": os.getpid(), "start": "0001-01-01T00:00:00Z"}, {"error": "\ud800"}])
def test_a_damaged_session(tmp_path, keys):
    session(tmp_path, host=socket.gethostname(), **keys)
    run = read(tmp_path)
    assert run.state in ("killed", "running", "unknown") and all(text.isascii() for text in run.problems)
    str(run.session).encode()


def test_lines_longer_than_the_end_that_is_read_first(tmp_path):
    """A net with an unused output of thousands of values."""
    wide = {f"prob[{index}]": 0.5 for index in range(20000)}
    write(tmp_path, {**TEST, "outputs": {**wide, "accuracy": 0.9}}, {**TRAIN, "outputs": wide}, {**TRAIN, "iteration": 20, "loss": 7.0, "outputs": wide}, '{"event": "tr')
    assert (tmp_path / "metrics.jsonl").stat().st_size > 4 << 16
    found = summarize(tmp_path)
    assert found.iteration == 20 and found.figures["train/loss"] == 7.0 and found.figures["test/accuracy"] == 0.9


def test_pipes_are_no_runs(tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("metrics.jsonl", "run.json", "plan.json", "solver.prototxt"):
        os.mkfifo(tmp_path / "a" / name)
    assert find_runs(tmp_path) == [] and read(tmp_path / "a").series == {} and read_plan(tmp_path / "a") == {} and fields_of(tmp_path / "a") == {}


def test_what_differs(tmp_path):
    for name, rate, outputs in (("a", 0.1, 5), ("b", 0.1, 6), ("c", 0.2, 5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "solver.prototxt").write_text(f'base_lr: {rate} type: "Adam" snapshot_prefix: "{name}" future_field: 7')
        (tmp_path / name / "train_net.prototxt").write_text(
            f'layer {{ name: "fc" type: "InnerProduct" inner_product_param {{ num_output: {outputs} }} }}')
    folders = [tmp_path / name for name in "abc"]
    assert differences(folders) == {"base_lr": ["0.1", "0.1", "0.2"], "layer[fc].inner_product_param.num_output": ["5", "6", "5"]}
    (tmp_path / "a" / "solver.prototxt").write_text("base_lr: {")
    assert differences(folders[:2])["base_lr"] == ["", "0.1"]
    assert fields_of(tmp_path / "missing") == {}


def test_the_plan_by_layers(tmp_path):
    assert read_plan(tmp_path) == {}
    (tmp_path / "plan.json").write_text(json.dumps({"memory": {"total": 9}, "parameter_count": 3, "steps": [
        {"layers": "fc", "bytes": 4, "flops": 2, "operands": "2x3 float -> 4 bfloat16", "kernel": "a"},
        {"layers": "fc", "bytes": 1, "flops": 1, "operands": "2x3 float -> 4 float", "kernel": "b"}, {"layers": "loss", "bytes": 1, "flops": 0}]}))
    plan = read_plan(tmp_path)
    assert plan["memory"] == {"total": 9} and plan["parameters"] == 3
    assert plan["layers"][0] == {"name": "fc", "steps": 2, "bytes": 5, "flops": 3, "types": ["float", "bfloat16"], "kernels": ["a", "b"], "milliseconds": None}
    spans = [{"ph": "X", "pid": 0, "tid": 0, "name": name, "dur": duration} for name, duration in (("fc", 3000), ("backward", 9000), ("fc", 1000), ("backward", 9000))]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": spans}))
    assert read_plan(tmp_path)["layers"][0]["milliseconds"] == 2
    for text in ("{", "[]", '{"steps": 7}', "\x00"):
        (tmp_path / "plan.json").write_text(text)
        assert read_plan(tmp_path) == {}


@pytest.mark.parametrize("step, plan", [
    (1, {}), ({"layers": "fc", "bytes": "x", "flops": None}, {}), ({"layers": ["fc"], "bytes": 1e400}, {"memory": [1]}), ({}, {"memory": 7, "parameter_count": "x"}),
    ({}, {"memory": {"total": "x"}})])
def test_damaged_parts_of_a_plan(tmp_path, step, plan):
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "steps": [step, {"layers": "good", "bytes": 4, "flops": 2}]}))
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [7, {"ph": "X", "pid": 0, "tid": 0, "name": ["fc"], "dur": "x"}]}))
    found = read_plan(tmp_path)
    assert found["layers"][-1]["name"] == "good" and found["layers"][-1]["bytes"] == 4 and found["parameters"] == 0
    assert sum(found["memory"].values()) == 0 and sum(layer["bytes"] + layer["flops"] for layer in found["layers"]) == 6

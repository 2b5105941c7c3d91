"""Sweeps of a small solver, with the program."""
import json
import pathlib
import re
import subprocess
import sys

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend, JournalStorage

import caffe
from caffe.sweep.__main__ import main
from caffe.sweep.report import rows
from caffe.sweep.study import Study

ROOT = pathlib.Path(caffe.__file__).resolve().parents[2]
CAFFE = next((file for file in (ROOT / "bin" / "caffe", pathlib.Path(sys.executable).parent / "caffe") if file.exists()), None)

SOLVER = """
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 16 display: 0 test_interval: 2 test_iter: 2 solver_mode: CPU
snapshot_after_train: false
"""
NET = """
layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
  shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 } data_filler { value: 0.5 } data_filler { value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1 weight_filler { value: 0.1 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    if CAFFE is None:
        pytest.skip("caffe_tool is not built")
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    (tmp_path / "net.prototxt").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*words):
    return main(["--program", str(CAFFE), *words])


def results(folder="sweep"):
    """Number, state, value and fields of each trial, in the order of their numbers."""
    return sorted((row["number"], row["state"], row["value"], row["values"]) for row in rows(Study(folder)))


def recorded_end(run):
    """The iteration at which a training has ended, by its own record."""
    return json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])["iteration"]


def test_values_are_those_of_the_trainings(place, capsys):
    assert sweep("solver.prototxt", "base_lr=0.001,0.05,0.2", "--sampler=grid", "--pruner=none") == 0
    found = results()
    assert [(number, state) for number, state, *_ in found] == [(0, "complete"), (1, "complete"), (2, "complete")]
    assert {row["iterations"] for row in rows(Study("sweep"))} == {16}
    assert sorted(chosen["base_lr"] for *_, chosen in found) == ["0.001", "0.05", "0.2"]
    for number, _, value, chosen in found:
        solver = caffe.get_solver("solver.prototxt", set=chosen)
        solver.solve()
        lines = [json.loads(line) for line in open(place / "sweep" / f"{number:04}" / "run" / "metrics.jsonl", encoding="utf-8")]
        assert value == min(line["outputs"]["loss"] for line in lines if line["event"] == "test" and line["iteration"] > 0)
        assert value == pytest.approx(float(solver.test_nets[0].blobs["loss"].data), rel=1e-5)
    text = capsys.readouterr().out
    assert "trial  loss" in text and text.count("complete") == 3 and "written: " in text
    page = (place / "sweep" / "sweep.html").read_text()
    assert page.count("<polyline") == 3 and "Sweep of solver.prototxt" in page
    assert page.startswith("<!DOCTYPE html>") and "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page and "max-width: 72rem" in page


def test_trials_that_fall_behind_end_early_and_may_be_continued(place):
    (place / "solver.prototxt").write_text(SOLVER.replace("snapshot_after_train: false", "").replace("max_iter: 16", "max_iter: 4000"))
    assert sweep("solver.prototxt", "base_lr=0.02,0.001,0.002,0.003,0.004", "--sampler=grid") == 0
    rates = {chosen["base_lr"]: (number, state) for number, state, _, chosen in results()}
    assert rates["0.02"][1] == "complete"
    for row in rows(Study("sweep")):
        assert row["iterations"] == recorded_end(place / "sweep" / f"{row['number']:04}" / "run"), "what was trained, not what has decided"
    rate, number = next((rate, number) for rate, (number, state) in rates.items() if state == "behind")

    def train(*options):
        subprocess.run([CAFFE, "train", "--solver=solver.prototxt", "--set", f"base_lr={rate}", "--set", "metric=loss", "--set", "random_seed=1",
                        *options], check=True, capture_output=True)

    train("--set", "snapshot_prefix=whole")
    states = place / "sweep" / f"{number:04}" / "snapshots"
    assert list(states.glob("*.solverstate")), "it has ended with a snapshot"
    train("--set", f"snapshot_prefix={states}/trial", "--auto_resume")
    assert (states / "trial_iter_4000.caffemodel").read_bytes() == (place / "whole_iter_4000.caffemodel").read_bytes()


def test_optuna_reads_the_journal(place):
    assert sweep("solver.prototxt", "base_lr=0.01..0.1:log", "--trials=4", "--pruner=none") == 0
    study = optuna.load_study(study_name="sweep", storage=JournalStorage(JournalFileBackend(str(place / "sweep" / "journal.log"))))
    assert len(study.trials) == 4 and study.best_value == min(value for _, _, value, _ in results())


def test_the_same_seed_gives_the_same_trials(place):
    for folder in ("one", "two"):
        assert sweep("solver.prototxt", "base_lr=0.001..0.2:log", "type=SGD,Adam", "momentum=0..0.9 if type=SGD", "--trials=14", f"--output={folder}") == 0
    assert results("one") == results("two")
    assert any("momentum" not in chosen for *_, chosen in results("one")) and any("momentum" in chosen for *_, chosen in results("one"))
    assert sweep("solver.prototxt", "base_lr=0.001..0.2:log", "type=SGD,Adam", "momentum=0..0.9 if type=SGD", "--trials=3", "--seed=2", "--output=three") == 0
    assert results("three") != results("one")[:3]


def test_a_sweep_that_is_continued_is_the_same_as_one_in_one_go(place):
    assert sweep("solver.prototxt", "base_lr=0.001..0.2:log", "--trials=12", "--output=whole") == 0
    for trials in (3, 7, 12):
        assert sweep("solver.prototxt", "base_lr=0.001..0.2:log", f"--trials={trials}", "--output=parts") == 0
    assert results("whole") == results("parts")
    assert sweep("parts", "--resume", "--trials=13") == 0 and len(results("parts")) == 13


def test_a_sweep_is_continued_from_elsewhere(place, monkeypatch):
    assert sweep("solver.prototxt", "base_lr=0.001..0.2:log", "--trials=2", "--pruner=none", "--output=parts") == 0
    (place / "other").mkdir()
    monkeypatch.chdir(place / "other")
    assert sweep("../parts", "--resume", "--trials=3") == 0
    monkeypatch.chdir(place)
    assert [state for _, state, *_ in results("parts")] == ["complete"] * 3


def test_few_settings_are_all_tried_once(place):
    for trials in (("--trials=3",), ("--trials=100",), ()):
        assert sweep("solver.prototxt", "base_lr=0.001,0.05", "momentum=0,0.9", "--pruner=none", *trials) == 0
    assert sorted((chosen["base_lr"], chosen["momentum"]) for *_, chosen in results()) == [("0.001", "0"), ("0.001", "0.9"), ("0.05", "0"), ("0.05", "0.9")]


def test_an_output_with_a_loss_weight_is_made_small(place):
    (place / "net.prototxt").write_text(NET.replace('type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss"',
                                                    'type: "Reduction" bottom: "y" top: "error" loss_weight: 0.25 reduction_param { operation: SUMSQ }'))
    assert sweep("solver.prototxt", "base_lr=0.001,0.05", "--metric=error", "--pruner=none") == 0
    study = Study("sweep")
    assert study.definition.falls and study.optuna.best_trial.params["base_lr"] == "0.05"


def test_a_field_without_its_condition_is_not_set(place):
    assert sweep("solver.prototxt", "type=AdaGrad,SGD", "momentum=0.5,0.9 if type=SGD", "--pruner=none") == 0
    assert sorted(len(chosen) for *_, chosen in results()) == [1, 2, 2]
    page = (place / "sweep" / "sweep.html").read_text()
    lines = re.findall(r'<polyline class="trial" points="([^"]*)"[^>]*><title>([^<]*)</title>', page)
    heights = {title.partition(": ")[2].rpartition(",")[0]: float(points.split()[1].partition(",")[2]) for points, title in lines}
    unset = heights.pop("type AdaGrad, momentum not set")
    assert len(heights) == 2 and all(len(points.split()) == 3 for points, _ in lines)
    assert unset > max(heights.values()) and f'y="{unset + 4:g}">not set</text>' in page and page.count(">not set</text>") == 1


def test_a_sweep_keeps_its_precision_and_its_net(place, capsys):
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--trials=1", "--precision=bf16", "--sampler=random") == 0
    assert sweep("sweep", "--resume", "--trials=2") == 0
    for number in range(2):
        assert "precision: BF16" in (place / "sweep" / f"{number:04}" / "run" / "solver.prototxt").read_text(encoding="utf-8")
    for words in (["--precision=fp16"], ["--seed=7"], ["--sampler=tpe"], ["--pruner=none"], ["--metric=other"]):
        assert sweep("sweep", "--resume", *words) == 1 and "holds a sweep whose " in capsys.readouterr().err
    (place / "net.prototxt").write_text(NET.replace("num_output: 1 ", "num_output: 1 bias_term: false "))
    assert sweep("sweep", "--resume", "--trials=3") == 1
    assert "as it was before its solver or net changed" in capsys.readouterr().err


@pytest.mark.parametrize("field, value", [("trials", "64"), ("parameters", 5), ("parameters", [5]), ("metric", 5), ("seed", "q"), ("falls", "no"), ("first", True)])
def test_damaged_descriptions(place, capsys, field, value):
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--trials=1") == 0
    file = place / "sweep" / "sweep.json"
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), field: value}), encoding="utf-8")
    assert sweep("sweep", "--resume") == 1
    assert f"sweep.json: cannot be read: {field}" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["{", "5", '{"op_code": 77}'])
def test_a_damaged_journal(place, capsys, line):
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--trials=1") == 0
    file = place / "sweep" / "journal.log"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n", encoding="utf-8")
    assert sweep("sweep") == 1
    assert "cannot be read as Optuna's journal" in capsys.readouterr().err


def test_looking_changes_nothing(place):
    (place / "empty").mkdir()
    assert sweep("empty") == 1
    assert not list((place / "empty").iterdir())


def test_what_is_refused_leaves_no_folder(place, capfd):
    assert sweep("solver.prototxt", "base_lr=0.001,0.1", "--sampler=foo") == 1
    assert not (place / "sweep").exists()
    assert sweep("nowhere") == 1 and "nowhere: there is no such file or folder" in capfd.readouterr().err


def test_several_at_a_time_lose_no_trial(place):
    assert sweep("solver.prototxt", "base_lr=0.001..0.2:log", "--trials=9", "--jobs=3", "--pruner=none") == 0
    assert [(number, state) for number, state, *_ in results()] == [(number, "complete") for number in range(9)]


def test_a_journal_whose_last_line_is_torn(place):
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--sampler=grid") == 0
    before = results()
    with open(place / "sweep" / "journal.log", "a", encoding="utf-8") as file:
        file.write('{"op_code":5,"worker_id":"x","tri')
    assert sweep("sweep") == 0 and results() == before


def test_trials_that_fail(place, capsys):
    assert sweep("solver.prototxt", "layer[ip].inner_product_param.num_output=1,2,3,4,5", "--sampler=grid") == 0
    assert {chosen["layer[ip].inner_product_param.num_output"]: (state, value is None) for _, state, value, chosen in results()} == {
        "1": ("complete", False), **{number: ("failed", True) for number in "2345"}}
    assert (" failed after 0 iterations: layer[ip].inner_product_param.num_output=2: caffe train: net.prototxt:5:1: layer 'loss' "
            "(EuclideanLoss): the bottoms have shapes 4x2 and 4x1") in capsys.readouterr().out


def test_trials_that_diverge_are_bad_ones(place, capsys):
    """Optuna does not learn from trials that have failed, so they are stored as ended early."""
    (place / "solver.prototxt").write_text(SOLVER.replace("max_iter: 16", "max_iter: 400"))
    assert sweep("solver.prototxt", "base_lr=0.01,1e6", "--sampler=grid", "--pruner=none") == 0
    assert {chosen["base_lr"]: state for _, state, _, chosen in results()} == {"0.01": "complete", "1e6": "diverged"}
    assert " diverged" in capsys.readouterr().out
    assert optuna.trial.TrialState.FAIL not in [trial.state for trial in Study("sweep").optuna.trials]


# Stands for `caffe`: the training of trial 0001 is killed the first time, that of trial 0002 each time.
KILLED = """#!{python}
import os, pathlib, signal, sys
words = sys.argv[1:]
trial = pathlib.Path(words[words.index("--run_dir") + 1]).parent
mark = trial.parent.parent / ("killed" + trial.name)
if trial.name == "0002" or trial.name == "0001" and not mark.exists():
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)
os.execv({caffe!r}, [{caffe!r}, *words])
"""


def test_trainings_that_are_killed_are_no_bad_ones(place, capsys):
    program = place / "caffe"
    program.write_text(KILLED.format(python=sys.executable, caffe=str(CAFFE)))
    program.chmod(0o755)
    assert main(["--program", str(program), "solver.prototxt", "base_lr=0.001,0.05,0.2,0.3", "--sampler=grid", "--pruner=none"]) == 0
    assert [state for _, state, *_ in results()] == ["complete", "complete", "failed", "complete"]
    assert "killed by SIGKILL each time; see whether the system has run out of memory" in capsys.readouterr().out


def test_a_sweep_whose_first_trials_all_fail_ends(place, capsys):
    assert main(["--program", "/bin/false", "solver.prototxt", "base_lr=0.01..0.02"]) == 1
    assert "the first 3 trials have all failed, the last one because of: status 1; see log.txt" in capsys.readouterr().err
    assert [state for _, state, *_ in results()] == ["failed"] * 3


@pytest.mark.parametrize("words, why", [
    (["solver.prototxt"], "nothing varies; name fields, as in caffe sweep solver.prototxt base_lr=0.001..0.1:log"),
    (["solver.prototxt", "bass_lr=1,2"], "bass_lr"),
    (["solver.prototxt", "base_lr=1,2", "--metric=accuracy"], "the test net has no output 'accuracy' to compare trials by; give one of these as --metric: loss"),
    (["solver.prototxt", "base_lr=1,2", "--trials=0"], "--trials is 0; give 1 or more"),
    (["solver.prototxt", "base_lr=1,2", "--trials=-3"], "--trials is -3; give 1 or more"),
    (["missing.prototxt", "base_lr=1,2"], "missing.prototxt"),
    (["solver.prototxt", "base_lr=0.1..0.2", "--sampler=grid"], "a grid needs values"),
    (["solver.prototxt", "base_lr=1,2", "--sampler=dice"], "there is no sampler 'dice'"),
    (["solver.prototxt", "base_lr=1,2", "--pruner=axe"], "there is no pruner 'axe'"),
    (["."], "is a folder with something else than a sweep in it"),
    ([".", "base_lr=1,2"], ": is a folder; give the solver's file")])
def test_words_that_are_wrong(place, capsys, words, why):
    assert sweep(*words) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("words, why", [
    (["base_lr=0.01,0.03"], "holds a sweep whose parameters is base_lr=0.01,0.02, not base_lr=0.01,0.03"),
    (["base_lr=0.01,0.02", "--seed=2"], "holds a sweep whose seed is 1, not 2"), (["base_lr=0.01,0.02", "--pruner=none"], "whose pruner is halving, not none")])
def test_another_sweep_in_the_folder_is_refused(place, capsys, words, why):
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--sampler=grid") == 0
    before = (place / "sweep" / "journal.log").read_bytes()
    assert sweep("solver.prototxt", *words, "--sampler=grid") == 1
    assert why in capsys.readouterr().err
    assert (place / "sweep" / "journal.log").read_bytes() == before


def test_a_sweep_of_another_net_is_refused(place, capsys):
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--sampler=grid") == 0
    (place / "net.prototxt").write_text(NET.replace("0.1", "0.2"))
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--sampler=grid") == 1
    assert "holds a sweep of solver.prototxt as it was before its solver or net changed" in capsys.readouterr().err


@pytest.mark.parametrize("text, why", [("{", "cannot be read"), ("[]", "cannot be read"), ('{"version": 99}', "newer version"), ("{}", "cannot be read")])
def test_descriptions_that_cannot_be_read(place, capsys, text, why):
    (place / "sweep").mkdir()
    (place / "sweep" / "sweep.json").write_text(text)
    assert sweep("sweep") == 1 and why in capsys.readouterr().err


def test_a_description_that_was_half_written_is_no_obstacle(place):
    """Another process may be writing it, or was killed."""
    (place / "sweep").mkdir()
    (place / "sweep" / "sweep.lock").touch()
    (place / "sweep" / ".sweep.json.0123456789abcdef.partial").write_text("{")
    assert sweep("solver.prototxt", "base_lr=0.01,0.02", "--sampler=grid") == 0
    assert [state for _, state, *_ in results()] == ["complete"] * 2


def test_a_folder_with_something_else(place, capsys):
    (place / "sweep").mkdir()
    (place / "sweep" / "letter.txt").write_text("dear")
    assert sweep("solver.prototxt", "base_lr=0.01,0.02") == 1
    assert "is a folder with something else than a sweep in it; give another --output" in capsys.readouterr().err
    assert [file.name for file in (place / "sweep").iterdir()] == ["letter.txt"]

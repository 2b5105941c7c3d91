"""Run folders (docs/runs.md) of the program and of Python, read with other programs."""
import json
import os
import pathlib
import sys

import pytest

from programs import PACKAGE, ROOT

# A separate environment, because it needs a newer protobuf than Debian's.
TENSORBOARD = pathlib.Path(os.environ.get("CAFFE_TENSORBOARD", ROOT / "build" / "tensorboard")) / "bin" / "python"
READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
events.Reload()
tags = events.Tags()
print(json.dumps({
    "scalars": {tag: [[event.step, event.value] for event in events.Scalars(tag)] for tag in tags["scalars"]},
    "histograms": {tag: [event.histogram_value.num for event in events.Histograms(tag)] for tag in tags["histograms"]},
    "graph": [node.name for node in events.Graph().node] if tags["graph"] else [],
    "version": events.file_version}))
"""


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(name="train")
def make_train(program, run, solver):
    def call(*flags, name="s", **fields):
        path = solver(name, **{"max_iter": 40, "display": 10, "snapshot": 20, **fields})
        return run(program("caffe"), "train", f"--solver={path}", *flags)
    return call


def test_what_a_run_leaves(train, tmp_path):
    folder = tmp_path / "runs" / "a"
    done = train(f"--run_dir={folder}")
    assert done.returncode == 0, done.stderr
    lines = lines_of(folder)
    assert [(line["event"], line["iteration"]) for line in lines] == [
        ("start", 0), ("train", 0), ("train", 10), ("snapshot", 20), ("train", 20), ("train", 30), ("snapshot", 40), ("end", 40)]
    # The numbers equal those of the log.
    for line in lines:
        if line["event"] == "train":
            assert f"Iteration {line['iteration']}, lr = {line['learning_rate']:g}\n" in done.stderr
            assert f" iters), loss = {line['smoothed_loss']:.6g}\n" in done.stderr
            assert 0 <= line["data_wait_share"] <= 1 and line["images_per_second"] > 0
            # 300 images, 16 in a batch.
            assert line["epoch"] == pytest.approx((line["iteration"] + 1) * 16 / 300)
    session, = json.loads((folder / "run.json").read_text())["sessions"]
    assert session["reason"] == "finished" and session["end_iteration"] == 40 and session["seed"] == "7"
    assert f"--run_dir={folder}" in session["command"] and session["run_dir"] == str(folder)
    assert {"solver.prototxt", "train_net.prototxt", "plan.txt", "plan.json", "trace.json"} <= {
        path.name for path in folder.iterdir()}
    json.loads((folder / "trace.json").read_text())
    json.loads((folder / "plan.json").read_text())
    again = train(f"--run_dir={folder}")
    assert again.returncode == 1 and "give this one another name" in again.stderr


def test_a_folder_that_cannot_be_written(train, tmp_path):
    (tmp_path / "file").write_text("")
    done = train(f"--run_dir={tmp_path / 'file' / 'run'}")
    assert done.returncode == 1 and "cannot make the folder" in done.stderr
    done = train("--histograms=5")
    assert done.returncode == 1 and "--histograms is given without --run_dir" in done.stderr


def test_from_python(solver, run, tmp_path):
    if not list(PACKAGE.glob("caffe/_caffe*.so")):
        pytest.skip(f"package caffe is not built in {PACKAGE}")
    path = solver("python", max_iter=20, display=10)
    code = f"""
import caffe
solver = caffe.train({str(path)!r}, iterations=5, progress=False, run_dir={str(tmp_path / "run")!r}, histograms=4)
caffe.train(solver, progress=False, run_dir={str(tmp_path / "run")!r})
try:
    caffe.train({str(path)!r}, progress=False, run_dir={str(tmp_path / "run")!r})
except caffe.InvalidArgument as error:
    assert "another name" in str(error)
else:
    assert False
"""
    done = run(sys.executable, "-c", code, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 0, done.stderr
    assert [(line["event"], line["iteration"]) for line in lines_of(tmp_path / "run")] == [
        ("start", 0), ("train", 0), ("end", 5), ("start", 5), ("train", 10), ("snapshot", 20), ("end", 20)]
    assert "compute" in (tmp_path / "run" / "trace.json").read_text()


def test_tensorboard_reads_the_curves(train, run, tmp_path):
    if not TENSORBOARD.exists():
        pytest.skip(f"no TensorBoard: python3 -m venv {TENSORBOARD.parents[1]} && {TENSORBOARD} -m pip install tensorboard")
    folder = tmp_path / "run"
    assert train(f"--run_dir={folder}", "--histograms=20").returncode == 0
    done = train(f"--run_dir={folder}", f"--snapshot={tmp_path / 's_iter_20.solverstate'}")
    assert done.returncode == 0, done.stderr
    read = run(TENSORBOARD, "-c", READ_EVENTS, folder, env={name: value for name, value in os.environ.items()
                                                            if name != "PYTHONPATH"})
    assert read.returncode == 0, read.stderr
    events = json.loads(read.stdout)
    assert events["version"] == 2
    # Steps that the resumed run repeats appear once.
    losses = [(line["iteration"], line["loss"]) for line in lines_of(folder) if line["event"] == "train"]
    assert dict(losses) == {step: pytest.approx(value) for step, value in events["scalars"]["train/loss"]}
    assert [step for step, _ in events["scalars"]["train/loss"]] == [0, 10, 20, 30]
    assert {"train/epoch", "train/smoothed_loss", "train/learning_rate", "train/images_per_second",
            "train/data_wait_share"} <= set(events["scalars"])
    # The first run's second histogram is void, too.
    assert events["histograms"]["parameters/conv.0"] == [72]
    assert events["graph"] == ["data", "conv", "relu", "drop", "ip", "loss"]

"""scripts/quickstart.sh with stand-ins for cmake and the programs: its commands, the steps that it skips and resumes, its output."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CAFFE = r"""#!/usr/bin/env bash
echo "caffe $*" >>"$CALLS"
for argument; do case "$argument" in --solver=*) solver="${argument#*=}" ;; esac; done
if [ "$1" = train ]; then
  end=$(sed -n 's/^max_iter: //p' "$solver")
  echo "I1120 10:00:00.000000 7 solver.cpp:1] Iteration 0 (0 iter/s, 0s/100 iters), loss = 2.3" >&2
  [ -z "${FAIL_AT:-}" ] || { touch "examples/mnist/lenet_iter_$FAIL_AT.solverstate"; echo "no space left" >&2; exit 1; }
  echo "I1120 10:00:00.000000 7 solver.cpp:1] Iteration $end, Testing net (#0)" >&2
  echo "I1120 10:00:00.000000 7 solver.cpp:1]     Test net output #0: accuracy = 0.97" >&2
  touch "examples/mnist/lenet_iter_$end.caffemodel" "examples/mnist/lenet_iter_$end.solverstate"
else
  echo "I1120 10:00:00.000000 7 caffe.cpp:1] Batch 99, accuracy = 1" >&2
  echo "I1120 10:00:00.000000 7 caffe.cpp:1] accuracy = 0.9875" >&2
fi
"""
CONVERT = r"""#!/usr/bin/env bash
echo "convert $*" >>"$CALLS"
mkdir "${!#}" && touch "${!#}/data.mdb"
"""


@pytest.fixture(name="clone")
def make_clone(tmp_path):
    clone = tmp_path / "clone"
    for folder in ("scripts", "examples/mnist"):
        shutil.copytree(ROOT / folder, clone / folder, ignore=shutil.ignore_patterns("*_lmdb", "lenet_iter_*", "__pycache__"))
    programs = {"scripts/install_dependencies.sh": "", "fake/cmake": "#!/bin/sh\necho built\n",
                "build/cpu-release/bin/caffe": CAFFE, "build/cpu-release/bin/convert_mnist_data": CONVERT}
    for path, text in programs.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
        (clone / path).chmod(0o755)
    digits = tmp_path / "digits"
    digits.mkdir()
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (digits / f"{name}-ubyte.gz").touch()

    def run(*arguments, **environment):
        calls = tmp_path / "calls"
        calls.write_text("")
        environment = {**os.environ, "PATH": f"{clone / 'fake'}:{os.environ['PATH']}", "CALLS": str(calls),
                       "MNIST_DIR": str(digits), **environment}
        done = subprocess.run(["bash", clone / "scripts" / "quickstart.sh", *arguments], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done, calls.read_text().splitlines()

    return run


def test_trains_and_says_what_came_of_it(clone):
    done, calls = clone()
    assert done.returncode == 0, done.stderr
    assert [call.split()[0:2] for call in calls] == [["convert", "--backend=lmdb"]] * 2 + [["caffe", "train"], ["caffe", "test"]]
    assert "--solver=examples/mnist/lenet_solver.prototxt" in calls[2]
    assert "iteration 10000: test accuracy 0.97" in done.stdout
    assert "Test accuracy: 0.9875" in done.stdout
    assert "Weights:       examples/mnist/lenet_iter_10000.caffemodel" in done.stdout
    lines = [line.split("#")[0].strip() for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith(("caffe new", "caffe train", "caffe evaluate"))] == \
        ["caffe new photos", "caffe train photos_model", "caffe evaluate photos_model"]
    assert any(line.startswith("export PATH=") and line.endswith("/build/tools:$PATH\"") for line in lines)
    assert "\r" not in done.stdout  # progress is only for terminals


def test_a_second_run_only_tests(clone):
    clone()
    done, calls = clone()
    assert done.returncode == 0
    assert [call.split()[:2] for call in calls] == [["caffe", "test"]]
    assert "already exists" in done.stdout


def test_fewer_iterations(clone):
    done, calls = clone("--iterations", "30")
    assert done.returncode == 0
    assert "--solver=build/quickstart/solver.prototxt" in calls[2]
    assert "lenet_iter_30.caffemodel" in done.stdout


def test_goes_on_from_the_last_snapshot(clone):
    done, _ = clone(FAIL_AT="5000")
    assert done.returncode == 1
    assert "no space left" in done.stderr
    assert "run this again to resume" in done.stderr
    done, calls = clone()
    assert done.returncode == 0
    assert "--snapshot=examples/mnist/lenet_iter_5000.solverstate" in calls[0]


def test_other_digits_mean_other_databases_and_weights(clone, tmp_path):
    clone()
    other = shutil.copytree(tmp_path / "digits", tmp_path / "other")
    done, calls = clone("--mnist", str(other))
    assert done.returncode == 0
    assert len(calls) == 4
    assert str(other) in calls[0]
    assert "--snapshot" not in calls[2]


def test_a_folder_without_digits_is_an_error(clone, tmp_path):
    done, calls = clone("--mnist", str(tmp_path))
    assert done.returncode == 1
    assert "has no train-images-idx3-ubyte" in done.stderr
    assert calls == []

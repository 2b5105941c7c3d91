"""The effects of signals on a run: none if configured so, otherwise a snapshot and an end; a run can be ended at any time."""
import ctypes
import os
import re
import signal
import subprocess
import time

import pytest

from programs import PATIENCE


def as_a_shell_does():
    for one in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(one, signal.SIG_DFL)


class Run:
    """A training run; signals can be sent to it. Its log is a file, so it never waits for a reader."""

    def __init__(self, command, log):
        self.log = log
        with open(log, "w") as file:
            self.process = subprocess.Popen([str(part) for part in command], stderr=file, preexec_fn=as_a_shell_does)

    def wait_until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"it ended before {what}: {self.log.read_text()[-2000:]}"
            assert time.monotonic() < end, f"no {what} within {PATIENCE} s: {self.log.read_text()[-2000:]}"
            time.sleep(0.05)

    def wait_for(self, pattern):
        self.wait_until(lambda: re.search(pattern, self.log.read_text(), re.MULTILINE), f"'{pattern}'")

    def iteration(self):
        return int(re.findall(r"Iteration (\d+)", self.log.read_text())[-1])

    def goes_on(self):
        wanted = self.iteration() + 100
        self.wait_until(lambda: self.iteration() >= wanted, f"iteration {wanted}")

    def status(self):
        """The exit status, as soon as the run has ended."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it has not ended after {PATIENCE} s: {self.log.read_text()[-2000:]}")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()


@pytest.fixture
def training(tmp_path, program, solver):
    runs = []

    def start(*flags, **fields):
        file = solver("run", max_iter=10000000, display=20, **fields)
        run = Run([program("caffe"), "train", f"--solver={file}", *flags], tmp_path / "log")
        runs.append(run)
        run.wait_for("Iteration 20")
        return run
    yield start
    for run in runs:
        run.end()


@pytest.mark.parametrize("name", ["int", "hup", "term"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_whose_effect_is_none_is_ignored(training, name, workers, tmp_path):
    """`-sighup_effect none` is for runs that survive a closed terminal; once it ended them."""
    run = training(f"-sig{name}_effect=none", f"-workers={workers}")
    run.process.send_signal(getattr(signal, f"SIG{name.upper()}"))
    run.goes_on()
    assert not list(tmp_path.glob("run_iter_*"))


IMPATIENT = """
import os
import caffe
class Impatient(caffe.Layer):
    def setup(self, bottom, top):
        os.kill(os.getpid(), int(self.param_str))
    def reshape(self, bottom, top):
        top[0].reshape(1)
    def forward(self, bottom, top):
        top[0].data[...] = 1
"""


@pytest.mark.parametrize(("flag", "name", "snapshots"), [("-sigint_effect=none", "INT", 0), ("-sighup_effect=snapshot", "HUP", 1)])
def test_a_signal_before_the_solver_is_there_does_not_end_the_run(flag, name, snapshots, tmp_path, program, monkeypatch):
    """A layer sends the signal while the net is built."""
    (tmp_path / "impatient.py").write_text(IMPATIENT)
    (tmp_path / "solver.prototxt").write_text(f"""base_lr: 0.1 lr_policy: "fixed" max_iter: 2 snapshot_after_train: false
snapshot_prefix: "{tmp_path}/run" net_param {{
  layer {{ name: "x" type: "Python" top: "x" python_param {{ module: "impatient" layer: "Impatient"
    param_str: "{int(getattr(signal, 'SIG' + name))}" }} }}
  layer {{ name: "y" type: "InnerProduct" bottom: "x" top: "y" inner_product_param {{ num_output: 1 axis: 0 }} }}
  layer {{ name: "l" type: "Reduction" bottom: "y" top: "l" loss_weight: 1 }} }}""")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    run = Run([program("caffe"), "train", f"--solver={tmp_path}/solver.prototxt", "--allow_python", flag], tmp_path / "log")
    assert run.status() == 0, run.log.read_text()[-2000:]
    assert len(list(tmp_path.glob("run_iter_*.solverstate"))) == snapshots


def test_ctrl_c_stops_with_a_snapshot(training, tmp_path):
    run = training()
    run.process.send_signal(signal.SIGINT)
    assert run.status() == 0
    assert len(list(tmp_path.glob("run_iter_*.solverstate"))) == 1


# Products of fully connected layers and their gradients: in these, libraries use the stack pointer themselves.
PRODUCTS = """
layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
  shape { dim: 64 dim: 1 dim: 28 dim: 28 } shape { dim: 64 dim: 10 }
  data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "f" type: "InnerProduct" bottom: "c" top: "f"
  inner_product_param { num_output: 100 weight_filler { type: "xavier" } } }
layer { name: "y" type: "InnerProduct" bottom: "f" top: "y"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "l" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "l" }
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_storm_of_signals_changes_nothing(threads, tmp_path, program, monkeypatch):
    """The frames of their handlers were once written into the heap."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    (tmp_path / "solver.prototxt").write_text(
        f'base_lr: 1e-6 lr_policy: "fixed" max_iter: 10000000 display: 1 random_seed: 1 net_param {{ {PRODUCTS} }}')
    run = Run([program("caffe"), "train", f"--solver={tmp_path}/solver.prototxt", "-sighup_effect=none",
               f"-set=snapshot_prefix={tmp_path}/run"], tmp_path / "log")
    try:
        run.wait_for("Iteration 1 ")
        for _ in range(40):
            assert run.process.poll() is None, run.log.read_text()[-2000:]
            run.process.send_signal(signal.SIGHUP)
            time.sleep(0.02)
        run.process.send_signal(signal.SIGTERM)
        assert run.status() == 0, run.log.read_text()[-2000:]
    finally:
        run.end()
    assert len(list(tmp_path.glob("run_iter_*.solverstate"))) == 1


@pytest.fixture
def stalled(tmp_path, program):
    """A run whose reader waits for ever: the last entry of its image list is a pipe that nobody writes to."""
    (tmp_path / "gray.pgm").write_bytes(b"P5 16 16 255\n" + bytes(256))
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "list").write_text(f"{tmp_path}/gray.pgm 1\n" * 24 + f"{tmp_path}/pipe.jpg 0\n")
    (tmp_path / "net.prototxt").write_text("""
layer { name: "d" type: "ImageData" top: "data" top: "label"
  image_data_param { source: "%s/list" batch_size: 2 is_color: false } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "l" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
""" % tmp_path)
    (tmp_path / "solver.prototxt").write_text(
        f'net: "{tmp_path}/net.prototxt" base_lr: 1e-7 lr_policy: "fixed" max_iter: 100000 display: 1 random_seed: 3 '
        f'snapshot_prefix: "{tmp_path}/snap"')
    runs = []

    def start(*flags):
        run = Run([program("caffe"), "train", f"--solver={tmp_path}/solver.prototxt", *flags], tmp_path / "log")
        runs.append(run)
        return run
    yield start
    for run in runs:
        run.end()


# The watchdog prints this when training waits for the pipe. On a busy machine it may first print that the reader has reached
# the pipe while the run is still starting.
HANGS = r"No progress for 0\.5 s: (?=.*pipe\.jpg)(?=.*waits for the (parsers|reader) of)"


def press_twice_at_once(process):
    """One press of the keys, passed on by a script: two signals that are pending together until the stopped process continues.

    Two signals to the process would be merged; the second one is for the main thread.
    """
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    assert ctypes.CDLL(None).tgkill(process.pid, process.pid, signal.SIGINT) == 0
    process.send_signal(signal.SIGCONT)


def test_a_second_ctrl_c_ends_a_run_whose_reader_hangs(stalled):
    run = stalled("-watchdog_seconds=0.5")
    run.wait_for(HANGS)
    press_twice_at_once(run.process)
    run.wait_for("Ctrl-C once more")
    time.sleep(0.8)  # or longer: a separate press
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    assert run.status() == -signal.SIGINT
    assert run.log.read_text().count("Ended at once; the last snapshot is whole.") == 1


def test_the_watchdog_names_what_hangs(stalled):
    run = stalled("-watchdog_seconds=0.5")
    run.wait_for(HANGS)
    assert run.process.poll() is None  # it only prints this


@pytest.mark.parametrize("workers", [1, 2])
def test_the_watchdog_ends_a_run_that_hangs_with_a_snapshot(stalled, tmp_path, program, run, workers):
    # Longer than a step on a busy machine.
    hanging = stalled("-watchdog=abort", "-watchdog_seconds=4", f"-workers={workers}")
    assert hanging.status() == 1
    log = hanging.log.read_text()
    assert "No progress for 4 s" in log and "was told to end" in log and "pipe.jpg" in log
    states = list(tmp_path.glob("snap_iter_*.solverstate"))
    assert len(states) == 1
    # The record that could not be read comes next, and is readable now: all 25, repeatedly.
    os.remove(tmp_path / "pipe.jpg")
    (tmp_path / "pipe.jpg").write_bytes((tmp_path / "gray.pgm").read_bytes())
    iteration = int(states[0].stem.split("_")[-1])
    flags = [f"--solver={tmp_path}/solver.prototxt", f"-workers={workers}", f"-set=max_iter={iteration + 30}"]
    whole = run(program("caffe"), "train", *flags, f"-set=snapshot_prefix={tmp_path}/whole", "-set=random_seed=3")
    assert whole.returncode == 0, whole.stderr[-2000:]
    done = run(program("caffe"), "train", *flags, f"--snapshot={states[0]}")
    assert done.returncode == 0, done.stderr[-2000:]
    end = f"iter_{iteration + 30}.caffemodel"
    assert (tmp_path / f"whole_{end}").read_bytes() == (tmp_path / f"snap_{end}").read_bytes()


def test_a_process_that_was_stopped_has_not_hung(training):
    """SIGSTOP suspends a job, as clusters do: the time until SIGCONT does not count, because the run could make no progress."""
    run = training("-watchdog=abort", "-watchdog_seconds=3")
    for _ in range(2):
        run.process.send_signal(signal.SIGSTOP)
        time.sleep(5)  # or longer
        run.process.send_signal(signal.SIGCONT)
        run.goes_on()
    assert "No progress" not in run.log.read_text()

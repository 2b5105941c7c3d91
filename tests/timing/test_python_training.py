"""Training in Python while other threads run, and Ctrl-C. Both run in separate processes, which a pause of the test does not stop."""
import os
import signal
import subprocess
import sys

import pytest

from programs import PACKAGE, PATIENCE, Deadline, wait_for_line

NET = """
layer { name: "x" type: "DummyData" top: "x" top: "y" dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 1 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
"""


@pytest.fixture(name="python")
def python_with_a_solver(tmp_path):
    """Starts a script in a folder with solver.prototxt."""
    if not list(PACKAGE.glob("caffe/_caffe*.so")):
        pytest.skip(f"package caffe is not built in {PACKAGE}")
    (tmp_path / "solver.prototxt").write_text(f'base_lr: 0.01 lr_policy: "fixed" display: 100 net_param {{ {NET} }}')

    def start(script):
        return subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    return start


def test_a_thread_may_train_while_others_work(python):
    with python("""
import caffe, threading, time
solver = caffe.get_solver('solver.prototxt')
trainer = threading.Thread(target=solver.step, args=(100000,))
trainer.start()
turns = 0
while trainer.is_alive():
    turns += 1
    time.sleep(0.001)
print(solver.iter, turns > 1)
""") as process, Deadline(process):
        said = process.communicate()
    assert said[0].split() == ["100000", "True"], said


def test_ctrl_c_stops_between_iterations(python):
    with python("""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a script starts in the background
import caffe
solver = caffe.get_solver('solver.prototxt')
try:
    solver.step(1 << 30)
except KeyboardInterrupt:
    done = solver.iter
    solver.step(1)
    print('stopped', done > 0, solver.iter == done + 1)
""") as process:
        wait_for_line(process, r"Iteration 100 \(")
        process.send_signal(signal.SIGINT)
        with Deadline(process):
            errors = process.stderr.read()
            assert process.stdout.read().strip() == "stopped True True", errors[-2000:]
    assert process.returncode == 0, f"{errors[-2000:]} (or killed after {PATIENCE} s)"


# Products of a fully connected layer and its gradients: in these, libraries use the stack pointer themselves.
PRODUCTS = """
force_backward: true
layer { name: "x" type: "DummyData" top: "x" dummy_data_param {
  shape { dim: 16 dim: 1 dim: 28 dim: 28 } data_filler { type: "gaussian" } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "f" type: "InnerProduct" bottom: "c" top: "f"
  inner_product_param { num_output: 100 weight_filler { type: "xavier" } } }
layer { name: "l" type: "Reduction" bottom: "f" top: "l" loss_weight: 1 }
"""


def test_a_timer_may_ring_while_a_net_computes(python, tmp_path):
    """The frames of CPython's own handlers were once written into the heap."""
    (tmp_path / "products.prototxt").write_text(PRODUCTS)
    with python("""
import signal
import caffe
net = caffe.Net('products.prototxt', caffe.TRAIN)
rings = []
signal.signal(signal.SIGALRM, lambda *ignored: rings.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while len(rings) < 300:
    net.forward()
    net.backward()
signal.setitimer(signal.ITIMER_REAL, 0)
print('went well')
""") as process, Deadline(process):
        said = process.communicate()
    assert said[0].strip() == "went well", said[1][-2000:]

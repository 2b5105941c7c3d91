"""Child processes made by fork(): nets and solvers that they inherit, and new ones."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from built_package import PACKAGE

BEGIN = """
import gc, multiprocessing, os, sys
import numpy as np
import caffe

def wide(path):
    open(path, "w").write('''
        layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 256 dim: 1 dim: 28 dim: 28 } } }
        layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
                convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
        layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
        layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
                inner_product_param { num_output: 100 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "ip" top: "loss" }''')
    return path

def in_child(work):
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(60)
    hangs = process.is_alive()
    if hangs:
        process.kill()
    assert not hangs, "the child hangs"
    assert process.exitcode == 0, process.exitcode

def solver_of(net):
    open("solver.prototxt", "w").write(f"net: '{net}' base_lr: 0.01 lr_policy: 'fixed' max_iter: 10 random_seed: 1")
    return caffe.get_solver("solver.prototxt")
"""


def run(script, folder):
    """Runs a script in a separate process, with two threads and a time limit."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "GLOG_minloglevel": "2", "PYTHONPATH": str(PACKAGE)}
    outcome = subprocess.run([sys.executable, "-c", BEGIN + script], cwd=folder, env=environment, timeout=200, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert outcome.returncode == 0, outcome.stdout
    return outcome.stdout


def test_a_child_runs_a_net_that_has_run_before(tmp_path):
    run("""
net = caffe.Net(wide("net.prototxt"), caffe.TEST)
net.blobs["data"].data[...] = 1
before = net.forward(["ip"])["ip"].copy()

def work():
    net.blobs["data"].data[...] = 1
    assert (net.forward(["ip"])["ip"] == before).all()
    other = caffe.Net("net.prototxt", caffe.TEST)
    other.share_with(net)
    other.blobs["data"].data[...] = 1
    assert (other.forward(["ip"])["ip"] == before).all()

in_child(work)
in_child(work)
assert (net.forward(["ip"])["ip"] == before).all()
""", tmp_path)


def test_a_child_trains(tmp_path):
    run("""
solver = solver_of(wide("net.prototxt"))
solver.step(2)

def work():
    solver.step(2)
    assert solver.iter == 4
    mine = solver_of("net.prototxt")
    mine.step(1)

in_child(work)
solver.step(1)
assert solver.iter == 3
""", tmp_path)


def test_a_snapshot_prefix_stays_locked_by_the_parent(tmp_path):
    run("""
net = wide("net.prototxt")
open("solver.prototxt", "w").write(f"net: '{net}' base_lr: 0.01 lr_policy: 'fixed' max_iter: 10 snapshot: 100 snapshot_prefix: 'run'")
solver = caffe.get_solver("solver.prototxt")
solver.step(1)

def let_go():
    global solver
    del solver
    gc.collect()

def train():
    try:
        solver.step(1)
    except caffe.IoError as error:
        assert f"run.lock: another run (process {os.getppid()}) writes snapshots" in str(error), error
    else:
        raise AssertionError("no error")

in_child(let_go)
assert os.path.exists("run.lock")
in_child(train)
solver.step(1)
del solver
gc.collect()
assert not os.path.exists("run.lock")
""", tmp_path)


def write_list(folder):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "black.png")
    (folder / "list.txt").write_text("black.png 0\nblack.png 1\n")
    (folder / "list.prototxt").write_text("""
        layer { name: "data" type: "ImageData" top: "data" top: "label"
                image_data_param { source: "list.txt" batch_size: 2 } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
                inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""")


def test_a_child_is_told_that_readers_stay_with_the_parent(tmp_path):
    write_list(pathlib.Path(tmp_path))
    run("""
net = caffe.Net("list.prototxt", caffe.TEST)
net.forward()

def work():
    try:
        net.forward()
    except caffe.InvalidArgument as error:
        assert "list.txt" in str(error) and "fork() does not copy" in str(error), error
    else:
        raise AssertionError("no error")
    mine = caffe.Net("list.prototxt", caffe.TEST)
    mine.forward()

in_child(work)
net.forward()
""", tmp_path)


def test_a_child_lets_go_of_what_it_inherits(tmp_path):
    write_list(pathlib.Path(tmp_path))
    run("""
net = caffe.Net("list.prototxt", caffe.TEST)
solver = solver_of("list.prototxt")
solver.step(1)

def work():
    global net, solver
    del net, solver
    gc.collect()

in_child(work)
solver.step(1)
""", tmp_path)

"""Solvers: types, stepping, callbacks, state files, interruption."""
import io
import os
import pathlib
import re
import subprocess
import sys
import threading

import caffe
import numpy as np
import pytest

from built_package import PACKAGE

IMAGE = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "image" / "rgb.jpg"

NET = """
name: 'line'
layer {{ name: 'x' type: 'DummyData' top: 'x' top: 't' dummy_data_param {{
  shape {{ dim: 4 dim: 3 }} shape {{ dim: 4 dim: 1 }}
  data_filler {{ type: 'gaussian' std: 1 }} data_filler {{ type: 'constant' value: 3 }} }} }}
layer {{ name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
  inner_product_param {{ num_output: 1 weight_filler {{ type: 'constant' value: {weight} }} }} }}
layer {{ name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }}
"""
OPTIONS = "base_lr: 0.1 lr_policy: 'step' gamma: 0.5 stepsize: 10 max_iter: 20 display: 0 "


@pytest.fixture
def solver_file(write, tmp_path):
    def make(options="", weight=0.5):
        options += "" if "random_seed" in options else " random_seed: 5"
        net = write(NET.format(weight=weight))
        return write(f"net: '{net}' {OPTIONS} snapshot_prefix: '{tmp_path}/run' {options}", "solver.prototxt")

    return make


def test_classes_and_types(solver_file):
    solver = caffe.get_solver(solver_file("type: 'Adam'"))
    assert type(solver) is caffe.AdamSolver and isinstance(solver, caffe.Solver) and solver.type == "Adam"
    assert type(caffe.get_solver(solver_file("solver_type: NESTEROV"))) is caffe.NesterovSolver
    for name in ("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"):
        extra = "rms_decay: 0.9" if name == "RMSProp" else ""
        solver = getattr(caffe, name + "Solver")(solver_file(extra))
        assert solver.type == name
        before = solver.net.params["ip"][0].data.copy()
        solver.step(2)
        assert solver.iter == 2 and (solver.net.params["ip"][0].data != before).all()
    with pytest.raises(caffe.InvalidArgument):
        caffe.get_solver(solver_file("type: 'Adams'"))
    with pytest.raises(RuntimeError, match="Could not open file"):
        caffe.get_solver(solver_file() + "x")


def test_param_rate_and_nets(solver_file):
    solver = caffe.get_solver(solver_file("test_iter: 2 test_interval: 100"))
    param = solver.param
    assert (param.max_iter, param.display, param.layer_wise_reduce) == (20, 0, True)
    assert param.base_lr == pytest.approx(0.1) and solver.lr == pytest.approx(0.1)
    assert len(solver.test_nets) == 1 and solver.test_nets[0].phase == caffe.TEST and solver.net.phase == caffe.TRAIN
    solver.step(11)
    assert solver.lr == pytest.approx(0.05)
    assert solver.net is solver.net and solver.net.forward()["loss"].shape == ()
    assert (solver.test_nets[0].params["ip"][0].data == solver.net.params["ip"][0].data).all()
    solver.test()


def test_max_iter_is_that_of_the_file_or_of_its_epochs(solver_file, tmp_path):
    assert caffe.get_solver(solver_file()).max_iter == 20
    (tmp_path / "images.txt").write_text(f"{IMAGE} 0\n" * 10, encoding="utf-8")
    (tmp_path / "images.prototxt").write_text(
        f"name: 'line' layer {{ name: 'x' type: 'ImageData' top: 'x' top: 't' image_data_param {{ source: '{tmp_path}/images.txt' "
        "batch_size: 4 new_height: 4 new_width: 4 } transform_param { scale: 0.001 } } "
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 1 } } "
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }", encoding="utf-8")
    options = OPTIONS.replace("max_iter: 20", "max_epoch: 2")
    (tmp_path / "epochs.prototxt").write_text(f"net: '{tmp_path}/images.prototxt' {options} snapshot_after_train: false", encoding="utf-8")
    solver = caffe.get_solver(str(tmp_path / "epochs.prototxt"))
    assert solver.max_iter == 5 and solver.param.max_epoch == 2 and not solver.param.HasField("max_iter")
    assert caffe.train(solver, progress=False).iter == 5


def test_a_changed_copy_of_the_definition_is_refused_once(solver_file):
    solver = caffe.get_solver(solver_file())
    assert solver.param is solver.param
    solver.param.snapshot_format = solver.param.snapshot_format  # now set, but unchanged
    solver.step(1)
    for train in (lambda: solver.step(1), solver.solve):
        solver.param.base_lr = 3
        solver.param.test_state.add().level = 1
        with pytest.raises(caffe.InvalidArgument, match=r"solver\.param is a copy.*\(base_lr, test_state\) does not change the solver"):
            train()
        assert solver.iter == 1 and solver.param.base_lr == pytest.approx(0.1)
    solver.step(1)
    assert solver.iter == 2


def test_a_snapshot_prefix_need_not_be_utf_8(solver_file, tmp_path):
    prefix = os.fsencode(tmp_path) + b"/gr\xf6n"
    file = solver_file()
    pathlib.Path(file).write_bytes(pathlib.Path(file).read_bytes().replace(os.fsencode(tmp_path / "run"), prefix))
    solver = caffe.SGDSolver(file)
    solver.step(1)
    state = solver.snapshot()
    assert os.fsencode(state) == prefix + b"_iter_1.solverstate" and os.path.exists(state)
    solver.restore(state)


def test_loaded_weights_that_are_not_finite_are_blamed(solver_file, tmp_path):
    solver = caffe.SGDSolver(solver_file())
    solver.net.params["ip"][0].data[...] = np.nan
    weights = str(tmp_path / "nan.caffemodel")
    solver.net.save(weights)
    for keep_all in (True, False):
        tuned = caffe.get_solver(solver_file(f"weights: '{weights}'"), keep_all=keep_all)
        with pytest.raises(caffe.Error, match="loss of iteration 0 is not a number: parameter ip.0 is not finite at element 0: "
                           "no update has changed it, so the weights that were loaded hold it"):
            tuned.step(1)
    other = caffe.SGDSolver(solver_file())
    other.step(3)
    other.net.params["ip"][0].data[...] = np.nan
    with pytest.raises(caffe.Error, match="no snapshot of iteration 3 is written: parameter ip.0 is not finite"):
        other.snapshot()
    assert not list(tmp_path.glob("run_iter_*"))
    other = caffe.SGDSolver(solver_file())
    other.step(1)
    other.net.params["ip"][0].data[...] = np.nan
    with pytest.raises(caffe.Error, match="an update was too large"):
        other.step(1)


def test_what_a_training_plan_does_not_keep_cannot_be_read(solver_file):
    solver = caffe.get_solver(solver_file(), keep_all=False)
    solver.step(1)
    for blob in ("x", "t", "y"):
        with pytest.raises(caffe.InvalidArgument, match="not kept by this net's plan.*keep_all=True"):
            solver.net.blobs[blob].data
    assert solver.net.blobs["loss"].data > 0 and solver.net.params["ip"][0].data.any()


def test_a_step_by_hand(solver_file):
    one, two = caffe.SGDSolver(solver_file()), caffe.SGDSolver(solver_file())
    one.step(1)
    two.net.clear_param_diffs()
    two.net.forward()
    two.net.backward()
    two.apply_update()
    assert (one.net.params["ip"][0].data == two.net.params["ip"][0].data).all() and two.iter == 0


def test_the_net_outlives_the_solver(solver_file):
    solver = caffe.get_solver(solver_file())
    net, tests = solver.net, solver.test_nets
    del solver
    assert float(net.forward()["loss"]) > 0 and net.backward() == {} and len(tests) == 0


def test_solve_and_its_files(solver_file, tmp_path):
    solver = caffe.get_solver(solver_file("snapshot: 10"))
    solver.solve()
    assert solver.iter == 20
    names = {f"run_iter_{i}.{kind}" for i in (10, 20) for kind in ("caffemodel", "solverstate")}
    assert names <= {path.name for path in tmp_path.iterdir()}
    resumed = caffe.get_solver(solver_file())
    resumed.solve(str(tmp_path / "run_iter_10.solverstate"))
    assert (resumed.net.params["ip"][0].data == solver.net.params["ip"][0].data).all()
    assert resumed.snapshot().endswith("run_iter_20.solverstate")


def test_restore_keeps_the_net_object_and_its_views(solver_file):
    first = caffe.get_solver(solver_file())
    first.step(3)
    state = first.snapshot()
    first.step(2)
    for seed in (5, 6):  # another seed also changes the net's random numbers
        solver = caffe.get_solver(solver_file(f"random_seed: {seed}"))
        net, param = solver.net, solver.net.params["ip"][0]
        view = param.data
        solver.restore(state)
        assert solver.iter == 3 and solver.net is net
        solver.step(2)
        assert (view == first.net.params["ip"][0].data).all() and (view == param.data).all()


def test_callbacks(solver_file):
    solver = caffe.get_solver(solver_file("iter_size: 2"))
    calls = []
    weights = solver.net.params["ip"][0]
    solver.add_callback(lambda: calls.append("start"),
                        lambda: calls.append(np.abs(weights.diff).sum() > 0))
    solver.step(2)
    assert calls == ["start", True, "start", True]

    def stop():
        raise LookupError("stop here")

    solver.add_callback(stop, stop)
    with pytest.raises(LookupError, match="stop here"):
        solver.step(1)
    assert solver.iter == 2


def test_gradients_changed_in_a_callback_are_applied(solver_file):
    solver = caffe.SGDSolver(solver_file())
    before = {i: blob.data.copy() for i, blob in enumerate(solver.net.params["ip"])}

    def clear():
        for blob in solver.net.params["ip"]:
            blob.diff[...] = 0

    solver.add_callback(lambda: None, clear)
    solver.step(1)
    for i, blob in enumerate(solver.net.params["ip"]):
        assert (blob.data == before[i]).all()


def test_share_weights(solver_file, write):
    solver = caffe.get_solver(solver_file())
    other = caffe.Net(write(NET.format(weight=9), "other.prototxt"), caffe.TEST)
    solver.share_weights(other)
    solver.step(1)
    assert (other.params["ip"][0].data == solver.net.params["ip"][0].data).all()


def test_train_calls_back(solver_file, capsys):
    losses = []
    solver = caffe.train(solver_file("average_loss: 5"), callback=lambda solver: losses.append(solver.loss))
    assert solver.iter == 20 and len(losses) == 20 and losses[-1] < losses[0]
    assert capsys.readouterr().err == ""  # no terminal, no notebook
    caffe.train(solver, iterations=30, progress=False, callback=lambda solver: solver.iter < 25)
    assert solver.iter == 25 and capsys.readouterr().err == ""
    with pytest.raises(ZeroDivisionError):
        caffe.train(solver, iterations=3, progress=False, callback=lambda solver: 1 / 0)


def test_a_terminal_shows_one_line_below_the_log(solver_file):
    path = pathlib.Path(solver_file())
    path.write_text(path.read_text().replace("display: 0", "display: 100"))
    script = f"import caffe; caffe.train('{path}', iterations=300)"
    package = str(pathlib.Path(caffe.__file__).parents[1])
    quoted = f"'{sys.executable}' -c \"{script}\""
    shown = subprocess.run(["script", "-qec", quoted, "/dev/null"], check=True, stdin=subprocess.DEVNULL,
                           env={**os.environ, "TERM": "xterm", "PYTHONPATH": package},
                           stdout=subprocess.PIPE).stdout.decode()
    assert re.search(r"\r\x1b\[Kiteration \d+/300, loss \S+, \S+ left, .*lr \S+", shown)
    rows = shown.replace("\r\x1b[K", "\n").splitlines()  # a log line begins at the erased line
    assert not [row for row in rows if "Iteration 200" in row and not row.startswith("I")]
    assert shown.endswith("\r\x1b[K")


def test_a_notebook_shows_one_line(solver_file, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(caffe.solver, "_is_notebook", lambda stream: True)
    monkeypatch.setattr(sys, "stderr", stream)
    caffe.train(solver_file())
    assert "iteration 20/20" in stream.getvalue() and "lr 0.025" in stream.getvalue() and stream.getvalue().endswith("\n")


def test_a_solver_trains_once_at_a_time(solver_file):
    solver = caffe.get_solver(solver_file())
    inside, done, within = threading.Event(), threading.Event(), []

    def wait():
        for call in (lambda: solver.step(1), solver.solve, solver.apply_update, lambda: solver.restore(__file__),
                     lambda: solver.add_callback(wait, wait)):
            with pytest.raises(caffe.InvalidArgument, match="its own callback"):
                call()
        within.append(solver.snapshot())
        inside.set()
        done.wait(300)

    solver.add_callback(wait, lambda: None)
    trainer = threading.Thread(target=solver.step, args=(1,))
    trainer.start()
    assert inside.wait(300)
    for call in (lambda: solver.step(1), solver.snapshot, solver.test, solver.apply_update):
        with pytest.raises(caffe.InvalidArgument, match="in another thread"):
            call()
    done.set()
    trainer.join()
    assert solver.iter == 1 and within[0].endswith("run_iter_0.solverstate")


def test_no_training_while_another_thread_tests(solver_file):
    solver = caffe.get_solver(solver_file("test_iter: 1 test_interval: 100"))
    inside, done = threading.Event(), threading.Event()

    def hold(_):
        inside.set()
        done.wait(300)

    solver.test_nets[0].before_forward(hold)
    tester = threading.Thread(target=solver.test)
    tester.start()
    assert inside.wait(300)
    for call in (lambda: solver.step(1), solver.snapshot):
        with pytest.raises(caffe.InvalidArgument, match="in another thread"):
            call()
    done.set()
    tester.join()
    solver.step(1)
    assert solver.iter == 1


def test_a_solver_trains_by_the_plan_of_caffe_train(write):
    net = write('layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 dim: 6 dim: 6 } '
                'data_filler { type: "gaussian" } } } '
                'layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 '
                'weight_filler { type: "xavier" } } } layer { name: "r" type: "ReLU" bottom: "c" top: "c" } '
                'layer { name: "l" type: "Reduction" bottom: "c" top: "l" loss_weight: 1 reduction_param { operation: SUMSQ } }',
                "fused.prototxt")
    file = write(f'net: "{net}" base_lr: 0.001 lr_policy: "fixed" random_seed: 1 type: "Adam"', "fused_solver.prototxt")
    plain, fused = caffe.get_solver(file), caffe.get_solver(file, keep_all=False)
    assert type(fused) is caffe.AdamSolver
    plain.step(3)
    fused.step(3)
    np.testing.assert_allclose(fused.net.params["c"][0].data, plain.net.params["c"][0].data, rtol=1e-4, atol=1e-6)
    assert [bool(re.search(r"\bRelu\b", str(solver.net.plan()))) for solver in (plain, fused)] == [True, False]


def test_precision(solver_file):
    solver = caffe.get_solver(solver_file(), precision="bf16")
    assert solver.param.precision == caffe.proto.caffe_pb2.BF16
    assert "bfloat16" in str(solver.net.plan()) and "bfloat16" not in str(caffe.get_solver(solver_file()).net.plan())
    assert caffe.SGDSolver(solver_file("precision: FP16"), precision="fp32").param.precision == caffe.proto.caffe_pb2.FP32
    with pytest.raises(caffe.InvalidArgument, match="precision is 'BF61'; use 'fp32'"):
        caffe.get_solver(solver_file(), precision="bf61")


def test_the_modules_log_is_the_programs(solver_file, tmp_path):
    """It has no year, which Caffe's parsers and tools/extra/parse_log.py cannot read."""
    code = f"import caffe; caffe.init_log(); caffe.train({solver_file()!r}, progress=False)"
    log = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(PACKAGE)}, text=True,
                         capture_output=True, check=True).stderr
    lines = [line for line in log.splitlines() if "] Solving" in line or "Optimization Done" in line]
    assert lines and all(re.match(r"I\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \w+\.cpp:\d+\] ", line) for line in lines)

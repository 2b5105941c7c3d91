"""Solvers from messages, and overrides of their fields, so that sweeps in Python need no files."""
import os
import pathlib

import caffe
import numpy as np
import pytest
from caffe.proto import caffe_pb2
from google.protobuf import text_format

NET = """
name: 'line'
layer { name: 'x' type: 'DummyData' top: 'x' top: 't' dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 }
  data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 3 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
  inner_product_param { num_output: 1 weight_filler { type: 'constant' value: 0.5 } } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }
"""
OPTIONS = "base_lr: 0.1 lr_policy: 'step' gamma: 0.5 stepsize: 10 max_iter: 20 display: 0 random_seed: 5 snapshot_after_train: false "


def message(text, kind=caffe_pb2.SolverParameter):
    return text_format.Parse(text, kind())


@pytest.fixture
def files(write):
    """The net's file, and a solver's file."""
    net = write(NET)
    return net, write(f"net: '{net}' {OPTIONS}", "solver.prototxt")


def weights(solver):
    return solver.net.params["ip"][0].data.copy()


def test_a_message_trains_as_its_file_does(files):
    net, file = files
    of_file = caffe.get_solver(file)
    of_file.step(3)
    for text in (f"net: '{net}' {OPTIONS}", f"net_param {{ {NET} }} {OPTIONS}", f"train_net_param {{ {NET} }} {OPTIONS}"):
        of_message = caffe.get_solver(message(text))
        assert type(of_message) is caffe.SGDSolver and repr(of_message).startswith("<caffe.SGDSolver of net 'line'")
        of_message.step(3)
        assert (weights(of_message) == weights(of_file)).all()
    again = caffe.get_solver(of_file.param)
    again.step(3)
    assert (weights(again) == weights(of_file)).all()


def test_each_way_to_a_solver_takes_a_message(files):
    net, _ = files
    definition = message(f"net: '{net}' {OPTIONS} type: 'Adam'")
    assert type(caffe.get_solver(definition)) is caffe.AdamSolver
    assert caffe.NesterovSolver(definition).type == "Nesterov"
    assert caffe.Solver(definition).type == "Adam" and caffe.Solver(definition, "SGD").type == "SGD"
    trained = caffe.train(definition, progress=False)
    assert (trained.iter, trained.type) == (20, "Adam")
    old = message(f"net: '{net}' {OPTIONS} solver_type: NESTEROV")
    assert type(caffe.get_solver(old)) is caffe.NesterovSolver and old.HasField("solver_type")


def test_paths_in_a_message_are_relative_to_the_working_folder(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solver = caffe.get_solver(message("net: 'net.prototxt'" + OPTIONS))
    solver.step(1)
    assert solver.snapshot() == "solver_iter_1.solverstate" and (tmp_path / "solver_iter_1.caffemodel").exists()
    with pytest.raises(caffe.InvalidArgument, match=f"solver: net is 'none.prototxt', and no such file.*{tmp_path}"):
        caffe.get_solver(message("net: 'none.prototxt'" + OPTIONS))


def test_overrides_of_each_type(files):
    solver = caffe.get_solver(files[1], base_lr=0.25, stepsize=np.int64(7), type="Adam", momentum=np.float32(0.5), iter_size=2,
                              snapshot_diff=True, lr_policy="multistep", stepvalue=[5, 9], weights=(), average_loss=3,
                              regularization_type="L1", solver_mode=caffe_pb2.SolverParameter.CPU, clip_gradients=1e-5)
    param = solver.param
    assert type(solver) is caffe.AdamSolver and param.snapshot_diff is True and list(param.stepvalue) == [5, 9]
    assert (param.base_lr, param.stepsize, param.momentum, param.iter_size, param.lr_policy) == (0.25, 7, 0.5, 2, "multistep")
    assert param.clip_gradients == pytest.approx(1e-5) and param.solver_mode == 0 and param.regularization_type == "L1"
    assert caffe.SGDSolver(files[1], set={"base_lr": 0.5}).lr == 0.5 and caffe.Solver(files[1], base_lr=0.5).lr == 0.5
    assert caffe.get_solver(files[1], set={"base_lr": 0.5}, max_iter=3, keep_all=False).param.max_iter == 3
    trained = caffe.train(files[1], progress=False, max_iter=4, set={"base_lr": 0.5}, keep_all=False)
    assert trained.iter == 4 and trained.param.base_lr == 0.5


def test_overrides_reach_into_the_net(files):
    net, file = files
    by_name, by_number = "layer[ip].inner_product_param.weight_filler.value", "layer[1].inner_product_param.weight_filler.value"
    for definition in (file, message(f"net: '{net}' {OPTIONS}"), message(f"net_param {{ {NET} }} {OPTIONS}"),
                       message(f"train_net: '{net}' {OPTIONS}")):
        for path in (by_name, by_number):
            solver = caffe.get_solver(definition, set={path: 2})
            assert (weights(solver) == 2).all()
    before = message(f"net_param {{ {NET} }} {OPTIONS}")
    caffe.get_solver(before, set={by_name: 2})
    assert before == message(f"net_param {{ {NET} }} {OPTIONS}")  # the caller's message does not change


def test_wrong_overrides_are_named_with_their_neighbours(files):
    for fields, error in (({"base_rl": 1}, "override 'base_rl=1': SolverParameter has no field 'base_rl'; did you mean 'base_lr'"),
                          ({"base_lr": "fast"}, "override 'base_lr=fast': 'base_lr' is of type float, now 0.1, and cannot be 'fast'"),
                          ({"solver_mode": "CPUS"}, "its values are CPU, GPU; did you mean 'CPU'"),
                          ({"solver_mode": 7}, "its values are CPU, GPU"),
                          ({"max_iter": None}, "set: max_iter is None; give a number, a string"),
                          ({"net_param": {}}, "set: net_param is {}; give a number"),
                          ({"weights": ["a,b"]}, "an element of weights is 'a,b', and a comma would end it"),
                          ({"type": "Adams"}, "'Adams'.*did you mean 'Adam'")):
        for call in (caffe.get_solver, caffe.SGDSolver, caffe.Solver, caffe.train):
            if "type" in fields and call is caffe.SGDSolver:
                continue  # its type is fixed
            with pytest.raises(caffe.InvalidArgument, match=error):
                call(files[1], **fields)
    with pytest.raises(caffe.InvalidArgument, match=r"layer\[pi\].*no 'layer' has the name 'pi'; did you mean 'ip'"):
        caffe.get_solver(files[1], set={"layer[pi].name": "x"})
    with pytest.raises(caffe.InvalidArgument, match="^.*solver.prototxt:1:1: solver: net is 'gone', and no such file is there"):
        caffe.get_solver(files[1], net="gone", set={"layer[ip].name": "x"})
    with pytest.raises(TypeError, match="unexpected keyword 'kepp_all'; did you mean 'keep_all'?"):
        caffe.get_solver(files[1], kepp_all=True)
    for wrong in ("base_lr=1", ["base_lr=1"], 3):
        with pytest.raises(TypeError, match="set is .*give a dict"):
            caffe.get_solver(files[1], set=wrong)
    with pytest.raises(caffe.InvalidArgument, match="train: base_lr is given for a solver that is made already"):
        caffe.train(caffe.get_solver(files[1]), base_lr=1)


def test_wrong_messages(files):
    with pytest.raises(caffe.InvalidArgument, match="is a message of type caffe.NetParameter; give a file's name or a caffe.SolverParameter"):
        caffe.get_solver(message(NET, caffe_pb2.NetParameter))
    with pytest.raises(caffe.InvalidArgument, match="solver: no train net is given"):
        caffe.get_solver(caffe_pb2.SolverParameter(base_lr=1, lr_policy="fixed"))
    with pytest.raises(caffe.InvalidArgument, match="both solver_type: ADAM and type"):
        caffe.get_solver(message(f"net: '{files[0]}' {OPTIONS} solver_type: ADAM type: 'SGD'"))
    with pytest.raises(caffe.InvalidArgument, match="file's name is empty"):
        caffe.get_solver("")
    with pytest.raises(TypeError):
        caffe.get_solver({"base_lr": 1})


def test_a_sweep_writes_no_files(files, tmp_path, monkeypatch):
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    losses = {lr: caffe.train(files[1], base_lr=lr, progress=False).loss for lr in (0.001, 0.1)}
    assert losses[0.1] < losses[0.001] and not os.listdir(folder)


def test_a_changed_copy_of_a_definition_makes_another_solver(files):
    solver = caffe.get_solver(files[1])
    changed = solver.param
    changed.base_lr = 0.7
    with pytest.raises(caffe.InvalidArgument, match=r"make a solver of the changed definition: caffe.get_solver\(definition\)"):
        solver.step(1)
    assert caffe.get_solver(changed).lr == pytest.approx(0.7) and pathlib.Path(files[1]).exists()

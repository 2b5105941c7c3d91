"""caffe.fit on arrays: its results, the order of records, and how training continues."""
import _thread
import gc
import weakref

import caffe
import numpy as np
import pytest
from caffe.fitting.arrays import Records
from caffe.proto import caffe_pb2
from google.protobuf import text_format

INPUTS = """
name: 'little'
layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 8 dim: 4 } } }
layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 8 } } }
"""
LOSS = """
layer { name: 'fc' type: 'InnerProduct' bottom: '%s' top: 'fc'
        inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }
layer { name: 'accuracy' type: 'Accuracy' bottom: 'fc' bottom: 'label' top: 'accuracy' include { phase: TEST } }
"""
NET = INPUTS + LOSS % "data"
DEEP = INPUTS + """
layer { name: 'h' type: 'InnerProduct' bottom: 'data' top: 'h' inner_product_param { num_output: 16 weight_filler { type: 'xavier' } } }
layer { name: 'norm' type: 'BatchNorm' bottom: 'h' top: 'norm' }
layer { name: 'relu' type: 'ReLU' bottom: 'norm' top: 'norm' }
layer { name: 'drop' type: 'Dropout' bottom: 'norm' top: 'norm' dropout_param { dropout_ratio: 0.3 } }
""" + LOSS % "norm"
SGD = {"type": "SGD", "base_lr": 0.2, "momentum": 0.9}


def message(text, kind=caffe_pb2.NetParameter):
    return text_format.Parse(text, kind())


def problem(count=103):
    draw = np.random.default_rng(4)
    x = draw.standard_normal((count, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0)


@pytest.fixture
def fed(monkeypatch):
    """The numbers of the records that nets are trained on, pass by pass."""
    passes = []
    fill = Records.fill

    def remember(self, net, numbers):
        passes.append(list(numbers))
        fill(self, net, numbers)

    monkeypatch.setattr(Records, "fill", remember)
    return passes


def weights(run):
    return [blob.data.copy() for blobs in run.solver.net.params.values() for blob in blobs]


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def loss_of(scores, y):
    return -np.log(softmax(scores)[np.arange(len(y)), y])


@pytest.mark.parametrize("iter_size", (1, 2))
def test_it_trains_as_numpy_does(fed, iter_size):
    x, y = problem(30)
    run = caffe.fit(message(NET), x, y, epochs=3, batch=8, solver={**SGD, "iter_size": iter_size}, seed=1)
    assert [len(numbers) for numbers in fed] == [8, 8, 8, 6] * 3

    start = caffe.fit(message(NET), x, y, epochs=1, batch=30, solver={**SGD, "base_lr": 0.0}, seed=1)  # changes nothing
    weight, bias = [values.astype(np.float64) for values in weights(start)]
    steps, sums = [np.zeros_like(weight), np.zeros_like(bias)], [0, 0]
    losses = []
    for number, numbers in enumerate(fed[:-1]):
        scores = x[numbers] @ weight.T + bias
        losses.append(loss_of(scores, y[numbers]).sum())
        slope = (softmax(scores) - np.eye(3)[y[numbers]]) / len(numbers) / iter_size
        sums = [sums[0] + slope.T @ x[numbers], sums[1] + slope.sum(axis=0)]
        if (number + 1) % iter_size == 0:
            steps = [0.9 * step + 0.2 * gradient for step, gradient in zip(steps, sums)]
            weight, bias, sums = weight - steps[0], bias - steps[1], [0, 0]
    np.testing.assert_allclose(weights(run)[0], weight, atol=1e-5)
    np.testing.assert_allclose(weights(run)[1], bias, atol=1e-5)
    rows = run.history
    assert [(row["epoch"], row["iteration"]) for row in rows] == [(e, 4 * e // iter_size) for e in (1, 2, 3)]
    np.testing.assert_allclose([row["loss"] for row in rows], np.reshape(losses, (3, 4)).sum(axis=1) / 30, rtol=1e-4)


def test_each_record_is_used_once_in_an_epoch(fed):
    x, y = problem()
    run = caffe.fit(message(NET), x, y, epochs=3, batch=10, solver=SGD, seed=1)
    assert run.epochs == 3 and run.solver.iter == 33
    epochs = [sum(fed[11 * e:11 * e + 11], []) for e in range(3)]
    assert all(sorted(numbers) == list(range(103)) for numbers in epochs)
    assert epochs[0] != epochs[1] != epochs[2] and epochs[0] != sorted(epochs[0])
    first = list(fed)
    fed.clear()
    again = caffe.fit(message(NET), x, y, epochs=3, batch=10, solver=SGD, seed=1)
    assert fed == first and all((a == b).all() for a, b in zip(weights(run), weights(again))) and again.history == run.history
    fed.clear()
    caffe.fit(message(NET), x, y, epochs=1, batch=10, solver=SGD, seed=2)
    assert fed != first[:11]
    fed.clear()
    caffe.fit(message(NET), x, y, epochs=2, batch=10, solver=SGD, seed=2, shuffle=False)
    assert sum(fed, []) == list(range(103)) * 2


def test_the_log_does_not_repeat_the_nets(capfd):
    x, y = problem()
    caffe.fit(message(NET), x, y, epochs=1, batch=10, solver=SGD)
    said = capfd.readouterr().err
    assert "Setting up" not in said and "needs backward" not in said and said.count("\n") < 40, said


@pytest.mark.parametrize("batch", (1, 10, 103, 500))
def test_each_record_is_evaluated_once(batch):
    x, y = problem()
    run = caffe.fit(message(NET), x, y, epochs=2, batch=10, solver=SGD, seed=1)
    weight, bias = weights(run)
    scores = x @ weight.T + bias
    np.testing.assert_allclose(run.predict(x, batch=batch), softmax(scores), atol=1e-5)
    found = run.evaluate(x, y, batch=batch, metric={"right": "accuracy", "sum": lambda y, p: p.sum()})
    accuracy = (scores.argmax(axis=1) == y).mean()
    assert found == pytest.approx({"loss": loss_of(scores, y).mean(), "accuracy": accuracy, "right": accuracy, "sum": 103}, rel=1e-5)


def test_a_batch_may_be_larger_than_the_set(fed):
    x, y = problem(7)
    run = caffe.fit(message(NET), x, y, epochs=2, batch=1000, solver=SGD)
    assert [len(numbers) for numbers in fed] == [7, 7] and run.solver.iter == 2 and run.predict(x).shape == (7, 3)


def test_the_nets_batch_holds_where_none_is_given(fed):
    caffe.fit(message(NET), *problem(20), epochs=1, solver=SGD)
    assert [len(numbers) for numbers in fed] == [8, 8, 4]


def test_validation_data_and_metrics():
    x, y = problem()
    run = caffe.fit(message(DEEP), x, y, epochs=2, batch=16, solver=SGD, seed=1, validation=(x[:50], y[:50]), metric="accuracy")
    row = run.history[-1]
    assert set(row) == {"epoch", "iteration", "lr", "loss", "val_loss", "val_accuracy"} and row["lr"] == pytest.approx(0.2)
    scores = run.predict(x[:50])
    assert row["val_accuracy"] == pytest.approx((scores.argmax(axis=1) == y[:50]).mean())
    assert row["val_loss"] == pytest.approx(run.evaluate(x[:50], y[:50])["loss"])


def test_a_share_is_held_out(fed):
    x, y = problem()
    held = []
    run = caffe.fit(message(NET), x, y, epochs=2, batch=10, solver=SGD, seed=1, validation=0.2,
                    metric={"count": lambda y, p: len(y)}, callbacks=lambda run: held.append(run._validation.arrays["data"]))
    assert run.history[-1]["val_count"] == 21
    used = set(sum(fed, []))
    assert len(used) == 82 and sorted(sum(fed[:9], [])) == sorted(used)
    rest = x[[i for i in range(103) if i not in used]]
    assert sorted(rest.tolist()) == sorted(held[0].tolist())


def test_a_snapshot_goes_on_exactly(tmp_path):
    x, y = problem()
    options = {"batch": 10, "solver": {**SGD, "snapshot": 17, "snapshot_prefix": str(tmp_path / "run")}, "validation": 0.1}
    caffe.set_random_seed(9)
    whole = caffe.fit(message(DEEP), x, y, epochs=4, **options)
    assert whole.solver.iter == 40
    caffe.set_random_seed(10)  # the snapshot has the seed, which decides order, share and dropout
    resumed = caffe.fit(message(DEEP), x, y, epochs=4, resume=tmp_path / "run_iter_17.solverstate", **options)
    assert resumed.seed == whole.seed and resumed.solver.iter == 40
    assert all((a == b).all() for a, b in zip(weights(whole), weights(resumed)))
    assert [row["epoch"] for row in resumed.history] == [2, 3, 4] and resumed.history[1:] == whole.history[2:]
    assert resumed.history[0]["val_loss"] == whole.history[1]["val_loss"]
    state = resumed.snapshot()
    done = caffe.fit(message(DEEP), x, y, epochs=4, resume=state, **options)  # nothing is left to do
    assert done.solver.iter == 40 and done.history == [] and (done.predict(x) == whole.predict(x)).all()


def test_training_goes_on_as_if_it_had_been_longer():
    x, y = problem()
    whole = caffe.fit(message(DEEP), x, y, epochs=4, batch=10, solver=SGD, seed=1)
    parts = caffe.fit(message(DEEP), x, y, epochs=1, batch=10, solver=SGD, seed=1)
    assert parts.train(4) is parts and parts.history == whole.history
    assert all((a == b).all() for a, b in zip(weights(whole), weights(parts)))


def test_ctrl_c_leaves_an_object_that_goes_on(monkeypatch):
    x, y = problem()
    whole = caffe.fit(message(DEEP), x, y, epochs=3, batch=10, solver=SGD, seed=1, validation=(x, y))
    for when in (1, 4, 11, 12, 25):
        taken = Records.fill
        count = []

        def interrupt(self, net, numbers, taken=taken, count=count, when=when):
            taken(self, net, numbers)
            count.append(1)
            if len(count) == when:
                _thread.interrupt_main()

        monkeypatch.setattr(Records, "fill", interrupt)
        run = caffe.fit(message(DEEP), x, y, epochs=3, batch=10, solver=SGD, seed=1, validation=(x, y))
        monkeypatch.setattr(Records, "fill", taken)
        assert run.interrupted and run.solver.iter < 33 and run.predict(x).shape == (103, 3)
        run.train()
        assert not run.interrupted and run.history == whole.history
        assert all((a == b).all() for a, b in zip(weights(whole), weights(run)))


def test_ctrl_c_while_an_epoch_ends():
    x, y = problem()
    calls = []

    def metric(labels, predictions):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return predictions.sum()

    run = caffe.fit(message(NET), x, y, epochs=3, batch=10, solver=SGD, seed=1, validation=0.1, metric=metric)
    assert run.interrupted and run.solver.iter == 20 and len(run.history) == 1
    run.train()
    assert [row["epoch"] for row in run.history] == [1, 2, 3] and not run.interrupted


def test_callbacks_see_the_history_and_stop():
    x, y = problem()
    seen = []
    run = caffe.fit(message(NET), x, y, epochs=9, batch=10, solver=SGD,
                    callbacks=[lambda run: seen.append(run.history[-1]["loss"]), lambda run: len(run.history) < 3])
    assert len(run.history) == 3 == len(seen) and run.solver.iter == 33 and not run.interrupted
    assert seen[2] < seen[0]
    with pytest.raises(ZeroDivisionError):
        caffe.fit(message(NET), x, y, epochs=1, callbacks=lambda run: 1 / 0)


def test_folded_normalisation_follows_training():
    x, y = problem()
    run = caffe.fit(message(DEEP), x, y, epochs=1, batch=10, solver=SGD, seed=1)
    before = run.predict(x)
    run.train(3)
    after = run.predict(x)
    assert abs(after - before).max() > 0.01
    run.net.blobs["data"].reshape(103, 4)
    np.testing.assert_allclose(run.net.forward(data=x)["prob"], after, atol=1e-5)
    assert run.net.phase == caffe.TEST and run.net.inputs == ["data"] and run.net.blobs["norm"].data.shape == (103, 16)


def test_saved_weights(tmp_path, write):
    x, y = problem()
    run = caffe.fit(message(DEEP), x, y, epochs=2, batch=10, solver=SGD)
    run.save(tmp_path / "w.caffemodel")
    tuned = caffe.fit(message(DEEP), x, y, epochs=1, batch=10,
                      solver={"base_lr": 1e-9, "weights": [str(tmp_path / "w.caffemodel")]})
    np.testing.assert_allclose(weights(tuned)[0], weights(run)[0], atol=1e-4)


def test_nothing_outlives_the_object():
    x, y = problem()
    run = caffe.fit(message(NET), x, y, epochs=1, validation=0.5, metric="accuracy", callbacks=lambda run: None)
    kept = [weakref.ref(thing) for thing in (run, run.solver, run.solver.net, run._feed.records.arrays["data"], run.net)]
    solver = run.solver
    del run
    gc.collect()
    with pytest.raises(caffe.InvalidArgument, match="on arrays of a caffe.Fit that is gone; keep that object"):
        solver.step(1)
    del solver
    gc.collect()
    assert [thing() for thing in kept] == [None] * 5


def test_each_form_of_a_net_and_of_a_solver(write, tmp_path):
    x, y = problem()
    spec = caffe.NetSpec()
    spec.data = caffe.layers.Input(input_param={"shape": {"dim": [8, 4]}})
    spec.label = caffe.layers.Input(input_param={"shape": {"dim": [8]}})
    spec.fc = caffe.layers.InnerProduct(spec.data, num_output=3, weight_filler={"type": "xavier"})
    spec.loss = caffe.layers.SoftmaxWithLoss(spec.fc, spec.label)
    old = "name: 'old' input: 'data' input_dim: 8 input_dim: 4 input_dim: 1 input_dim: 1 " + NET.split("\n", 3)[3] % ()
    text = "base_lr: 0.2 momentum: 0.9 lr_policy: 'fixed' net: 'gone.prototxt' test_iter: 3 test_interval: 5"
    file = write(text, "some_solver.prototxt")
    results = []
    for net in (NET, old):
        results.append(caffe.fit(write(net), x, y, epochs=2, batch=10, solver=SGD, seed=1))
    results.append(caffe.fit(spec, x, y, epochs=2, batch=10, solver=SGD, seed=1))
    for solver in (message(text, caffe_pb2.SolverParameter), file):
        results.append(caffe.fit(message(NET), x, y, epochs=2, batch=10, solver=solver, seed=1))
    assert all((a == b).all() for run in results[1:] for a, b in zip(weights(results[0]), weights(run)))
    assert results[-1].snapshot() == str(tmp_path / "some_solver_iter_22.solverstate")
    assert type(caffe.fit(message(NET), x, y, epochs=1).solver) is caffe.AdamSolver


def test_the_solver_says_how_long_where_epochs_do_not():
    x, y = problem()
    run = caffe.fit(message(NET), x, y, batch=10, solver={**SGD, "max_iter": 15})
    assert run.solver.iter == 15 and len(run.history) == 1 and run.epochs == pytest.approx(15 / 11)
    run = caffe.fit(message(NET), x, y, batch=10, solver={**SGD, "max_epoch": 2, "metric": "accuracy", "early_stopping": 1})
    assert run.solver.iter == 22 and len(run.history) == 2
    poly = caffe.fit(message(NET), x, y, epochs=2, batch=10, solver={**SGD, "lr_policy": "poly", "power": 1, "max_iter": 15})
    assert poly.solver.iter == 22 and poly.solver.param.max_iter == 22 and poly.history[-1]["lr"] == pytest.approx(0.2 / 22)


def test_inputs_by_name():
    two = """
    layer { name: 'a' type: 'Input' top: 'a' top: 'b' input_param { shape { dim: 4 dim: 2 } shape { dim: 4 dim: 2 } } }
    layer { name: 'goal' type: 'Input' top: 'goal' input_param { shape { dim: 4 dim: 1 } } }
    layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'sum' }
    layer { name: 'fc' type: 'InnerProduct' bottom: 'sum' top: 'fc' inner_product_param { num_output: 1 } }
    layer { name: 'l' type: 'EuclideanLoss' bottom: 'fc' bottom: 'goal' top: 'l' loss_weight: 2 }
    """
    a = np.random.default_rng(2).standard_normal((30, 4))
    goal = a[:, :2].sum(axis=1) + a[:, 2:].sum(axis=1)
    given = {"a": a[:, :2], "b": a[:, 2:]}
    for x, y in ((given, goal), (given, {"goal": goal}), ({**given, "goal": goal}, None)):
        run = caffe.fit(message(two), x, y, epochs=60, batch=7, solver={"base_lr": 0.1})
        row = run.history[-1]
        assert row["loss"] == pytest.approx(2 * row["l"]) and row["l"] < 0.01  # the sum of the losses has its own name
        assert run.predict(given)[:, 0] == pytest.approx(goal, abs=0.3)
    with pytest.raises(caffe.InvalidArgument, match="fit: x: the net has the inputs a, b, goal; say which one the array is for: x={'a': array}"):
        caffe.fit(message(two), a[:, :2], goal, epochs=1)
    with pytest.raises(caffe.InvalidArgument, match="fit: y: the net has the inputs a, b, goal; say which one the array is for: y={'b': array}"):
        caffe.fit(message(two), {"a": a[:, :2]}, goal, epochs=1)
    with pytest.raises(caffe.InvalidArgument, match="fit: the net also needs b; give a dict with 'b'"):
        caffe.fit(message(two), {"a": a[:, :2]}, {"goal": goal}, epochs=1)
    with pytest.raises(caffe.InvalidArgument, match="fit: x: the net has no input 'c'; its inputs: a, b, goal"):
        caffe.fit(message(two), {"c": a}, goal, epochs=1)
    with pytest.raises(caffe.InvalidArgument, match="fit: input 'goal' is given in x and in y"):
        caffe.fit(message(two), {**given, "goal": goal}, {"goal": goal}, epochs=1)


def test_a_net_without_labels_learns_its_input():
    net = """
    layer { name: 'in' type: 'Input' top: 'in' input_param { shape { dim: 4 dim: 6 } } }
    layer { name: 'code' type: 'InnerProduct' bottom: 'in' top: 'code' inner_product_param { num_output: 6 weight_filler { type: 'xavier' } } }
    layer { name: 'loss' type: 'EuclideanLoss' bottom: 'code' bottom: 'in' top: 'loss' }
    """
    x = np.random.default_rng(2).standard_normal((40, 6))
    run = caffe.fit(message(net), x, epochs=80, batch=8, solver={"type": "Adam", "momentum": 0.9, "base_lr": 0.02})
    assert run.history[-1]["loss"] < 0.05 and run.evaluate(x)["loss"] < 0.05


def test_what_arrays_may_be(tmp_path):
    x, y = problem(40)
    pixels = (x * 20 + 100).clip(0, 255).astype(np.uint8)
    floats = pixels.astype(np.float32)
    on_disk = np.memmap(tmp_path / "x", np.uint8, "w+", shape=pixels.shape)
    on_disk[...] = pixels
    runs = [caffe.fit(message(NET), given, labels, epochs=2, batch=7, solver=SGD, seed=1)
            for given, labels in ((floats, y), (pixels, y.astype(np.uint8)), (floats.astype(np.float64), y.astype(float)),
                                  (on_disk, y[:, None]), (floats[::-1][::-1], y.tolist()), (np.asfortranarray(floats), y),
                                  (floats.reshape(40, 4, 1), y.reshape(40, 1, 1, 1)))]
    assert all((a == b).all() for run in runs[1:] for a, b in zip(weights(runs[0]), weights(run)))


def test_shares_of_classes_and_ignored_labels():
    x, y = problem(40)
    soft = np.eye(3)[y] * 0.8 + 0.2 / 3
    wide = NET.replace("'label' input_param { shape { dim: 8 }", "'label' input_param { shape { dim: 8 dim: 3 }")
    wide = wide[:wide.index("layer { name: 'accuracy'")]
    assert caffe.fit(message(wide), x, soft, epochs=1, solver=SGD).history[0]["loss"] > 0
    y[::2] = 255
    ignoring = NET.replace("top: 'loss' }", "top: 'loss' loss_param { ignore_label: 255 } }").replace(
        "include {", "accuracy_param { ignore_label: 255 } include {")
    assert caffe.fit(message(ignoring), x, y, epochs=1, solver=SGD).history[0]["loss"] > 0
    with pytest.raises(caffe.InvalidArgument, match="the label of record 0 is 255, but layer 'loss'"):
        caffe.fit(message(NET), x, y, epochs=1)


def test_precision_and_plans():
    x, y = problem(40)
    run = caffe.fit(message(DEEP), x, y, epochs=2, solver=SGD, precision="bf16")
    assert run.solver.param.precision == caffe_pb2.BF16 and run.predict(x).shape == (40, 3)
    with pytest.raises(caffe.InvalidArgument, match="not kept by this net's plan"):
        run.solver.net.blobs["fc"].data
    assert caffe.fit(message(DEEP), x, y, epochs=1, keep_all=True).solver.net.blobs["fc"].data.any()


def test_progress_lines(monkeypatch, capsys):
    x, y = problem(40)
    caffe.fit(message(NET), x, y, epochs=2, solver=SGD)
    assert capsys.readouterr().err == ""  # neither a terminal nor a notebook
    monkeypatch.setattr(caffe.fitting.fitted, "_is_notebook", lambda stream: True)
    caffe.fit(message(NET), x, y, epochs=2, solver=SGD, validation=0.5)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2: lr 0.2, loss ") and "val_accuracy" in lines[1]
    caffe.fit(message(NET), x, y, epochs=2, solver=SGD, progress=False)
    assert capsys.readouterr().err == ""

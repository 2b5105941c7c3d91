"""Arrays, nets and options that caffe.fit refuses, before it has trained anything."""
import caffe
import numpy as np
import pytest
from caffe.proto import caffe_pb2
from google.protobuf import text_format

NET = """
name: 'little'
layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 8 dim: 3 dim: 5 dim: 4 } } }
layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 8 } } }
layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }
"""
X, Y = np.zeros((20, 3, 5, 4), np.float32), np.arange(20) % 3


def message(text):
    return text_format.Parse(text, caffe_pb2.NetParameter())


def changed(array, place, value):
    array = array.astype(float)
    array[place] = value
    return array


@pytest.mark.parametrize("x, y, error", (
    (X[:, :2], Y, r"fit: x \(input 'data'\) has records of shape \(2, 5, 4\), the net wants \(3, 5, 4\)$"),
    (np.moveaxis(X, 1, -1), Y, r"records of shape \(5, 4, 3\), the net wants \(3, 5, 4\); channels come first: np.moveaxis\(x, -1, 1\)"),
    (X.reshape(20, 60), Y, r"records of shape \(60,\), the net wants \(3, 5, 4\); x.reshape\(-1, 3, 5, 4\) has them"),
    (X, np.eye(3)[Y], r"fit: y \(input 'label'\) has records of shape \(3,\), the net wants \(\)"),
    (X[:0], Y[:0], r"fit: x is empty: shape \(0, 3, 5, 4\); its first axis counts records"),
    ({}, Y, "fit: x is an empty dict"),
    (np.float32(3), Y, r"fit: x is empty: shape \(\)"),
    (X, Y[:0], r"fit: y \(input 'label'\) is empty"),
    (X, 3, r"fit: y \(input 'label'\) is one number"),
    (X, np.arange(21) % 3, r"different numbers of records: x \(input 'data'\) has 20, y \(input 'label'\) has 21"),
    (X[:5], Y, "different numbers of records.* has 5, .* has 20"),
    (X, Y.astype(str), "y has dtype <U"),
    (X.astype(complex), Y, "x has dtype complex"),
    ([["a", "b"]], Y, "x has dtype"),
    (changed(X, (7, 1, 2, 3), np.nan), Y, r"fit: x \(input 'data'\): record 7 holds nan; numbers have to be finite"),
    (changed(X, 19, -np.inf), Y, "record 19 holds -inf"),
    (changed(X, 3, 1e39), Y, r"record 3 holds 1e\+39; numbers have to be finite in float32"),
    (X, changed(Y, 4, np.nan), r"fit: y \(input 'label'\): record 4 holds nan"),
    (X, changed(Y, 6, 3), r"the label of record 6 is 3.0, but layer 'loss' \(SoftmaxWithLoss\) has the classes 0 to 2; .*num_output"),
    (X, Y + 1, "the label of record 2 is 3, but layer 'loss'"),
    (X, Y - 1, "the label of record 0 is -1, but layer 'loss'.*give whole numbers from 0$"),
    (X, changed(Y, 2, 0.5), "the label of record 2 is 0.5, but layer 'loss'"),
    (X, None, "fit: the net also needs label; give y"),
    ({"dat": X}, Y, "fit: x: the net has no input 'dat'; its inputs: data, label"),
    ({"data": X}, {"labels": Y}, "fit: y: the net has no input 'labels'"),
))
def test_wrong_arrays(x, y, error):
    with pytest.raises(caffe.InvalidArgument, match=error):
        caffe.fit(message(NET), x, y, epochs=1)


def test_wrong_arrays_later():
    run = caffe.fit(message(NET), X, Y, epochs=1)
    before = run.predict(X)
    for call, error in ((lambda: run.predict(X[:, :2]), "predict: x .*wants"), (lambda: run.predict(X[:0]), "predict: x .* is empty"),
                        (lambda: run.predict(changed(X, 3, np.nan)), "predict: .*record 3 holds nan"),
                        (lambda: run.predict(X, batch=0), "batch is 0; give a whole number from 1"),
                        (lambda: run.evaluate(X, Y + 1), "evaluate: y .*label of record 2 is 3"),
                        (lambda: run.evaluate(X), "evaluate: the net also needs label; give y"),
                        (lambda: run.evaluate(X, Y[:3]), "evaluate: the arrays have different numbers"),
                        (lambda: run.train(0), "epochs is 0; give a whole number from 1")):
        with pytest.raises(caffe.InvalidArgument, match=error):
            call()
    assert (run.predict(X) == before).all()


@pytest.mark.parametrize("options, error", (
    ({"epochs": 0}, "fit: epochs is 0; give a whole number from 1"),
    ({"epochs": 1.5}, "fit: epochs is 1.5; give a whole number"),
    ({"epochs": None}, "how long to train is not said; give epochs, or a solver with max_epoch or max_iter"),
    ({"batch": 0}, "fit: batch is 0"),
    ({"batch": True}, "fit: batch is True"),
    ({"seed": -1}, "fit: seed is -1"),
    ({"validation": 1.5}, r"validation is 1.5; give \(x, y\), or a share"),
    ({"validation": 0.01}, "validation 0.01 of 20 records is 0; both parts need at least one"),
    ({"validation": 0.99}, "is 20; both parts"),
    ({"validation": "0.1"}, "validation is '0.1'"),
    ({"validation": (X, Y, Y)}, "validation has 3 parts"),
    ({"validation": (X, Y + 1)}, "fit: validation: y .*label of record 2 is 3"),
    ({"validation": (X[:, :1], Y)}, "fit: validation: x .*the net wants"),
    ({"metric": "accuracy"}, "a metric is computed on validation data"),
    ({"metric": "acuracy", "validation": 0.5}, "metric is 'acuracy'; give 'accuracy', a function"),
    ({"solver": {"base_rl": 1}}, "SolverParameter has no field 'base_rl'; did you mean 'base_lr'"),
    ({"solver": {"base_lr": "fast"}}, "'base_lr' is of type float"),
    ({"solver": {"base_lr": 1, "type": "Adams"}}, "'Adams'"),
    ({"solver": caffe_pb2.NetParameter()}, "solver is a message of type caffe.NetParameter"),
    ({"solver": {"base_lr": 1, "iter_size": 2}, "batch": 8}, "20 records are 3 batches of 8, which iter_size 2 does not divide"),
    ({"solver": {"base_lr": 1, "ema_decay": 0.9}}, "the solver has ema_decay 0.9, and predictions would be"),
    ({"precision": "bf61"}, "precision is 'BF61'; use 'fp32'"),
))
def test_wrong_options(options, error):
    with pytest.raises(caffe.InvalidArgument, match=error):
        caffe.fit(message(NET), X, Y, **{"epochs": 1, **options})


def test_files_that_are_missing(tmp_path):
    for options in ({"net": tmp_path / "none"}, {"solver": tmp_path / "none"}, {"resume": tmp_path / "none"}):
        with pytest.raises(caffe.IoError, match="none"):
            caffe.fit(**{"net": message(NET), "x": X, "y": Y, "epochs": 1, **options})


def test_nets_that_cannot_be_fitted():
    without_loss = NET[:NET.index("layer { name: 'loss'")]
    with pytest.raises(caffe.InvalidArgument, match="net 'little' has no loss in phase TRAIN; add a loss layer"):
        caffe.fit(message(without_loss), X, Y, epochs=1)
    in_testing = NET.replace("top: 'loss' }", "top: 'loss' include { phase: TEST } }")
    with pytest.raises(caffe.InvalidArgument, match="has no loss in phase TRAIN"):
        caffe.fit(message(in_testing), X, Y, epochs=1)
    reading = NET.replace("'Input' top: 'data' input_param { shape { dim: 8 dim: 3 dim: 5 dim: 4 } }",
                          "'Data' top: 'data' top: 'label' data_param { source: 'db' batch_size: 8 }")
    reading = "\n".join(line for line in reading.splitlines() if "'Input'" not in line)
    with pytest.raises(caffe.InvalidArgument, match=r"the net has no Input layer .*it reads 'data' \(Data\) itself: replace its data layers by layers of type Input"):
        caffe.fit(message(reading), X, Y, epochs=1)
    with pytest.raises(caffe.InvalidArgument, match="net is a message of type caffe.SolverParameter; give a file's name or a caffe.NetParameter"):
        caffe.fit(caffe_pb2.SolverParameter(), X, Y, epochs=1)


def test_a_net_that_has_its_loss_in_training_only():
    net = NET.replace("top: 'loss' }", "top: 'loss' include { phase: TRAIN } }") + """
        layer { name: 'prob' type: 'Softmax' bottom: 'fc' top: 'prob' include { phase: TEST } }
        layer { name: 'accuracy' type: 'Accuracy' bottom: 'fc' bottom: 'label' top: 'accuracy' include { phase: TEST } }"""
    run = caffe.fit(message(net), X, Y, epochs=1)
    assert run.predict(X).shape == (20, 3) and run.net.inputs == ["data"] and set(run.evaluate(X, Y)) == {"accuracy"}

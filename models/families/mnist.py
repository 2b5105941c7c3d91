"""Nets for the MNIST digits: an autoencoder (Hinton and Salakhutdinov 2006) and a pair of nets that learn a distance.

LeNet itself is in lenet.py and, written by hand to be read, in examples/mnist.
"""
from caffe.net_spec import NetSpec, layers as L, params as P

from caffe.zoo.common import TEST, TRAIN, XAVIER, constant, solver, write

DATABASE = "examples/mnist/mnist_{}_lmdb"


def digits(name, rule, source, batch, scale):
    return L.Data(name=name, include=rule, transform_param=dict(scale=scale),
                  data_param=dict(source=source, batch_size=batch, backend=P.Data.LMDB))


# -------------------------------------------------------------------------------------------------
# Autoencoder: 784 pixels through 30 numbers and back.

ENCODED, DECODED = (1000, 500, 250, 30), (250, 500, 1000, 784)


def dense(bottom, outputs):
    # Each unit starts with 15 inputs: with more, sums of 784 pixels would saturate the sigmoids.
    return L.InnerProduct(bottom, num_output=outputs, weight_filler=dict(type="gaussian", std=1, sparse=15),
                          bias_filler=constant(0), param=[dict(lr_mult=1, decay_mult=1), dict(lr_mult=1, decay_mult=0)])


def autoencoder():
    n, scale = NetSpec(), 1 / 255
    n.data = digits("data", TRAIN, DATABASE.format("train"), 100, scale)
    n.flatdata = x = L.Flatten(n.data)
    for i, outputs in enumerate(ENCODED, start=1):
        n[f"encode{i}"] = x = dense(x, outputs)
        if i < len(ENCODED):
            n[f"encode{i}neuron"] = x = L.Sigmoid(x)
    for i, outputs in zip((4, 3, 2, 1), DECODED):
        n[f"decode{i}"] = x = dense(x, outputs)
        if i > 1:
            n[f"decode{i}neuron"] = x = L.Sigmoid(x)
    n.cross_entropy_loss = L.SigmoidCrossEntropyLoss(x, n.flatdata, name="loss", loss_weight=1)
    n.decode1neuron = L.Sigmoid(x)
    n.l2_error = L.EuclideanLoss(n.decode1neuron, n.flatdata, name="error", loss_weight=0)
    net = write(n, "MNISTAutoencoder")
    for place, part in enumerate(("train", "test"), start=1):
        test = NetSpec()
        test.data = digits("data", dict(TEST, stage=f"test-on-{part}"), DATABASE.format(part), 100, scale)
        net.layer.insert(place, test.to_proto().layer[0])
    return net


def autoencoder_solver(suffix="", **fields):
    settings = dict(
        test_state=[dict(stage="test-on-train"), dict(stage="test-on-test")], test_iter=[500, 100], test_interval=500,
        test_initialization=None, test_compute_loss=True, display=100, average_loss=None, max_iter=65000,
        weight_decay=0.0005, snapshot_prefix=f"examples/mnist/mnist_autoencoder{suffix}")
    return solver("examples/mnist", "mnist_autoencoder.prototxt", **{**settings, **fields})


# -------------------------------------------------------------------------------------------------
# Siamese nets: two LeNets with the same weights, which put equal digits close together.

def lenet(n, x, suffix, shared):
    """LeNet up to 2 numbers; shared: whether its parameters have the names that tie them to its twin's."""
    def learning(name):
        return [dict(dict(name=f"{name}_{part}") if shared else {}, lr_mult=rate) for part, rate in (("w", 1), ("b", 2))]

    fill = dict(weight_filler=XAVIER, bias_filler=constant(0))
    for i, outputs in ((1, 20), (2, 50)):
        n[f"conv{i}{suffix}"] = x = L.Convolution(
            x, param=learning(f"conv{i}"), num_output=outputs, kernel_size=5, **fill)
        n[f"pool{i}{suffix}"] = x = L.Pooling(x, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    for name, outputs in (("ip1", 500), ("ip2", 10), ("feat", 2)):
        n[f"{name}{suffix}"] = x = L.InnerProduct(x, param=learning(name), num_output=outputs, **fill)
        if name == "ip1":
            n[f"relu1{suffix}"] = x = L.ReLU(x, in_place=True)
    return x


def siamese():
    n, test = NetSpec(), NetSpec()
    for spec, rule, part, batch in ((n, TRAIN, "train", 64), (test, TEST, "test", 100)):
        spec.pair_data, spec.sim = L.Data(
            ntop=2, name="pair_data", include=rule, transform_param=dict(scale=1 / 256),
            data_param=dict(source=f"examples/siamese/mnist_siamese_{part}_lmdb", batch_size=batch, backend=P.Data.LMDB))
    n.data, n.data_p = L.Slice(n.pair_data, ntop=2, name="slice_pair", slice_dim=1, slice_point=1)
    n.loss = L.ContrastiveLoss(lenet(n, n.data, "", True), lenet(n, n.data_p, "_p", True), n.sim, margin=1)
    net = write(n, "mnist_siamese_train_test")
    net.layer.insert(1, test.to_proto().layer[0])
    return net


def half_of_siamese():
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[10000, 1, 28, 28]))
    lenet(n, n.data, "", False)
    return write(n, "mnist_siamese")


def files():
    folder = "examples/mnist"
    yield f"{folder}/mnist_autoencoder.prototxt", autoencoder(), ""
    steps = dict(base_lr=0.01, lr_policy="step", gamma=0.1, stepsize=10000)
    for suffix, comment, fields in (
            ("", "A tenth of the rate each 10,000 iterations.", steps),
            ("_nesterov", "Nesterov's momentum.", dict(steps, type="Nesterov", momentum=0.95)),
            ("_adagrad", "AdaGrad.", dict(type="AdaGrad", base_lr=0.01, lr_policy="fixed", momentum=None)),
            ("_adadelta", "AdaDelta needs no rate; momentum is its decay of the mean squares.",
             dict(type="AdaDelta", base_lr=1, lr_policy="fixed", momentum=0.95, delta=1e-8))):
        yield f"{folder}/mnist_autoencoder_solver{suffix}.prototxt", autoencoder_solver(suffix, **fields), comment
    folder = "examples/siamese"
    yield f"{folder}/mnist_siamese_train_test.prototxt", siamese(), ""
    yield f"{folder}/mnist_siamese.prototxt", half_of_siamese(), "One of the two nets: images in, points out."
    yield f"{folder}/mnist_siamese_solver.prototxt", solver(
        folder, "mnist_siamese_train_test.prototxt", "mnist_siamese", base_lr=0.01, lr_policy="inv", gamma=0.0001,
        power=0.75, max_iter=50000, test_iter=[100], test_interval=500, test_initialization=None, display=100,
        average_loss=None, weight_decay=0, snapshot=5000), "No decay: the loss pulls only on pairs that are wrong."

"""The larger of the two CIFAR-10 nets that go back to cuda-convnet (Krizhevsky 2012)."""
from caffe.net_spec import NetSpec, layers as L, params as P

from caffe.zoo.common import TEST, TRAIN, constant, gaussian, solver, write

FOLDER = "examples/cifar10"
MEAN = dict(mean_file=f"{FOLDER}/mean.binaryproto")


def data(n, rule, part, batch=100):
    n.data, n.label = L.Data(ntop=2, name="cifar", include=rule, transform_param=MEAN, data_param=dict(
        source=f"{FOLDER}/cifar10_{part}_lmdb", batch_size=batch, backend=P.Data.LMDB))


def relu(n, i, x, _):
    n[f"relu{i}"] = top = L.ReLU(x, in_place=True)
    return top


def sigmoid(n, i, x, norm):
    if norm:
        n[f"bn{i}"] = x = L.BatchNorm(x)
    n[f"sigmoid{i}"] = top = L.Sigmoid(x)
    return top


def full(n, neuron=relu, norm="lrn"):
    """Three convolutions and a classifier; norm: "lrn", "batch" (before the neuron) or None."""
    x = n.data
    bias = dict(bias_term=False) if norm == "batch" else dict(bias_filler=constant(0))
    for i, outputs, kind, std in ((1, 32, "MAX", 0.0001), (2, 32, "AVE", 0.01), (3, 64, "AVE", 0.01)):
        rates = [dict(lr_mult=1), dict(lr_mult=2)][:1 if norm == "batch" else 2] if i < 3 else []
        n[f"conv{i}"] = x = L.Convolution(x, param=rates, num_output=outputs, pad=2, kernel_size=5,
                                          weight_filler=gaussian(std), **bias)
        pool = dict(pool=getattr(P.Pooling, kind), kernel_size=3, stride=2)
        if i == 1:
            n.pool1 = x = L.Pooling(x, **pool)
            x = neuron(n, i, x, norm == "batch")
        else:
            n[f"pool{i}"] = x = L.Pooling(neuron(n, i, x, norm == "batch"), **pool)
        if i < 3 and norm == "lrn":
            n[f"norm{i}"] = x = L.LRN(x, local_size=3, alpha=5e-5, beta=0.75, norm_region=P.LRN.WITHIN_CHANNEL)
    decay = 250 if norm == "lrn" else 1
    n.ip1 = L.InnerProduct(x, num_output=10, weight_filler=gaussian(0.01), bias_filler=constant(0),
                           param=[dict(lr_mult=1, decay_mult=decay), dict(lr_mult=1, decay_mult=0)])
    return n.ip1


def train_test(test_batch=100, **options):
    n, test = NetSpec(), NetSpec()
    data(n, TRAIN, "train")
    data(test, TEST, "test", test_batch)
    scores = full(n, **options)
    n.accuracy = L.Accuracy(scores, n.label, include=TEST)
    n.loss = L.SoftmaxWithLoss(scores, n.label)
    net = write(n, "CIFAR10_full")
    net.layer.insert(1, test.to_proto().layer[0])
    return net


def deploy():
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 3, 32, 32]))
    n.prob = L.Softmax(full(n))
    return write(n, "CIFAR10_full_deploy")


def files():
    yield f"{FOLDER}/cifar10_full_train_test.prototxt", train_test(), ""
    yield f"{FOLDER}/cifar10_full.prototxt", deploy(), ""
    for suffix, rate, iterations, comment in (
            ("", 0.001, 60000, "First stage: 120 epochs at rate 0.001."),
            ("_lr1", 0.0001, 65000, "Second stage: 10 epochs at a tenth of the rate, from iteration 60,000."),
            ("_lr2", 0.00001, 70000, "Third stage: 10 more at a hundredth, from iteration 65,000.")):
        yield f"{FOLDER}/cifar10_full_solver{suffix}.prototxt", solver(
            FOLDER, "cifar10_full_train_test.prototxt", "cifar10_full", base_lr=rate, lr_policy="fixed",
            max_iter=iterations, weight_decay=0.004, test_iter=[100], test_interval=1000, test_initialization=None,
            display=200, average_loss=None, snapshot_format=P.Solver.HDF5), comment
    for suffix, norm, comment in (("", None, "Sigmoids alone learn slowly."),
                                  ("_bn", "batch", "Sigmoids with batch normalisation before them.")):
        net = f"cifar10_full_sigmoid_train_test{suffix}.prototxt"
        yield f"{FOLDER}/{net}", train_test(1000, neuron=sigmoid, norm=norm), ""
        yield f"{FOLDER}/cifar10_full_sigmoid_solver{suffix}.prototxt", solver(
            FOLDER, net, f"cifar10_full_sigmoid{suffix}", base_lr=0.001, lr_policy="fixed", max_iter=60000,
            weight_decay=0, test_iter=[10], test_interval=1000, test_initialization=None, display=100,
            average_loss=None), comment

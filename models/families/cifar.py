"""The larger of the two CIFAR-10 nets that go back to cuda-convnet (Krizhevsky 2012)."""
from caffe.net_spec import NetSpec, layers as L, params as P

from .common import TEST, TRAIN, constant, gaussian, solver, write

FOLDER = "examples/cifar10"
MEAN = dict(mean_file=f"{FOLDER}/mean.binaryproto")


def data(n, rule, part):
    n.data, n.label = L.Data(ntop=2, name="cifar", include=rule, transform_param=MEAN, data_param=dict(
        source=f"{FOLDER}/cifar10_{part}_lmdb", batch_size=100, backend=P.Data.LMDB))


def full(n):
    x = n.data
    for i, outputs, kind, std in ((1, 32, "MAX", 0.0001), (2, 32, "AVE", 0.01), (3, 64, "AVE", 0.01)):
        rates = [dict(lr_mult=1), dict(lr_mult=2)] if i < 3 else []
        n[f"conv{i}"] = x = L.Convolution(x, param=rates, num_output=outputs, pad=2, kernel_size=5,
                                          weight_filler=gaussian(std), bias_filler=constant(0))
        pool = dict(pool=getattr(P.Pooling, kind), kernel_size=3, stride=2)
        if i == 1:
            n.pool1 = x = L.Pooling(x, **pool)
            n.relu1 = x = L.ReLU(x, in_place=True)
        else:
            n[f"relu{i}"] = x = L.ReLU(x, in_place=True)
            n[f"pool{i}"] = x = L.Pooling(x, **pool)
        if i < 3:
            n[f"norm{i}"] = x = L.LRN(x, local_size=3, alpha=5e-5, beta=0.75, norm_region=P.LRN.WITHIN_CHANNEL)
    n.ip1 = L.InnerProduct(x, num_output=10, weight_filler=gaussian(0.01), bias_filler=constant(0),
                           param=[dict(lr_mult=1, decay_mult=250), dict(lr_mult=1, decay_mult=0)])
    return n.ip1


def train_test():
    n, test = NetSpec(), NetSpec()
    data(n, TRAIN, "train")
    data(test, TEST, "test")
    scores = full(n)
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

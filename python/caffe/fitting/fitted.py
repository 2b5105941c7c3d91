"""fit() trains a net on arrays and returns a Fit for predictions and evaluation."""
import sys
import time
from collections.abc import Mapping

import numpy as np

from .._caffe import InvalidArgument
from ..net_files import read_net
from ..proto import caffe_pb2
from ..pycaffe import Net
from ..solver import _is_notebook, get_solver
from . import definitions
from .arrays import count_of, label_inputs, records_for
from .passes import Feed, all_outputs, mean_outputs


def _accuracy(labels, predicted):
    """The share of records whose label has the largest score."""
    return float(np.mean(predicted.argmax(axis=1).reshape(-1) == np.asarray(labels).reshape(-1)))


def _metrics(metric):
    """{name: function(y, predictions)} from the caller's argument."""
    if metric is None:
        return {}
    if isinstance(metric, Mapping):
        found = dict(metric)
    else:
        found = {getattr(metric, "__name__", "metric") if callable(metric) else metric: metric}
    for name, function in found.items():
        if isinstance(function, str) and function == "accuracy":
            found[name] = _accuracy
        elif not callable(function):
            raise InvalidArgument(f"fit: metric is {function!r:.80}; give 'accuracy', a function of (y, predictions), or a dict of those")
    return found


def _whole(value, name, least):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidArgument(f"fit: {name} is {value!r:.80}; give a whole number from {least}")
    return int(value)


def _drawn(validation, count):
    """How many of `count` records `validation` sets aside."""
    if validation is None or isinstance(validation, (tuple, list)):
        return 0
    if not isinstance(validation, (float, np.floating)) or not 0 < validation < 1:
        raise InvalidArgument(f"fit: validation is {validation!r:.80}; give (x, y), or a share of the records between 0 and 1")
    drawn = round(count * float(validation))
    if not 0 < drawn < count:
        raise InvalidArgument(f"fit: validation {validation} of {count} records is {drawn}; both parts need at least one")
    return drawn


class Fit:
    """A net trained on arrays, for further training and inference. caffe.fit() makes it; see there
    for arguments.

    Attributes:
        history: one dict per epoch: "epoch" (from 1), "iteration" (done so far), "lr" (of the last
            iteration); the means over records of the training net's scalar outputs, and "loss"; the
            same for the validation data, named "val_...", and the metrics.
        solver: the caffe.Solver that trains; `solver.net` is the net of phase TRAIN.
        seed: for fillers, dropout, and the order of the records.
        interrupted: True if Ctrl-C ended the last training.
    """

    def __init__(self, net, x, y=None, epochs=None, batch=None, solver=None, validation=None, metric=None, callbacks=(), seed=None,
                 resume=None, shuffle=True, progress=True, precision=None, keep_all=False):
        self._definition = read_net(net)
        own_batch = definitions.batch_of(self._definition)
        self._batch = own_batch if batch is None else _whole(batch, "batch", 1)
        definitions.set_batch(self._definition, self._batch)
        self._metrics = _metrics(metric)
        self._callbacks = [callbacks] if callable(callbacks) else list(callbacks)
        self._progress = progress
        count = count_of(x)
        drawn = _drawn(validation, count)
        if self._metrics and validation is None:
            raise InvalidArgument("fit: a metric is computed on validation data; give validation=(x, y), or a share of the records")

        self._param = definitions.read_solver(solver)
        if seed is not None:
            self._param.random_seed = _whole(seed, "seed", 0)
        if epochs is None and self._param.HasField("max_epoch"):
            epochs = self._param.max_epoch
        self._param.ClearField("max_epoch")
        if epochs is not None:
            batches = -(-(count - drawn) // self._batch)
            self._param.max_iter = _whole(epochs, "epochs", 1) * batches // max(1, self._param.iter_size)
        elif not self._param.HasField("max_iter"):
            raise InvalidArgument("fit: how long to train is not said; give epochs, or a solver with max_epoch or max_iter")
        param = caffe_pb2.SolverParameter()
        param.CopyFrom(self._param)
        param.net_param.CopyFrom(self._definition)
        self.solver = get_solver(param, keep_all=keep_all, precision=precision)
        self._precision = caffe_pb2.Precision.Name(self.solver.param.precision).lower()
        records = records_for(self.solver.net, x, y, "fit")
        if resume is not None:
            self.solver.restore(resume)
        self.seed = self.solver._seed
        labels = records.labels or label_inputs(self.solver.net)
        self._inputs = [name for name in records.arrays if name not in labels]
        self._nets, self.history, self.interrupted = {}, [], False

        members = np.arange(records.count)
        self._validation = None
        if drawn:
            order = np.random.default_rng([self.seed, 0, 1]).permutation(members)
            self._validation, members = records.take(order[:drawn]), np.sort(order[drawn:])
        elif validation is not None:
            if not 1 <= len(validation) <= 2:
                raise InvalidArgument(f"fit: validation has {len(validation)} parts; give (x, y)")
            self._validation = records_for(self._net_of("test"), *validation, "fit: validation")
        if self._metrics and len(self._validation.labels) != 1:
            raise InvalidArgument("fit: a metric compares predictions with y; give y as one array")
        self._feed = Feed(self.solver, records, members, self._batch, self.seed, shuffle)
        self._last = self._param.max_iter

    def __repr__(self):
        last = ", ".join(f"{name} {value:.4g}" for name, value in (self.history[-1] if self.history else {}).items()
                         if name not in ("epoch", "iteration", "lr"))
        return f"<caffe.Fit of net {self.solver.net.name!r} at iteration {self.solver.iter}{': ' + last if last else ''}>"

    @property
    def epochs(self):
        """Number of epochs trained so far, including a fraction: a float."""
        return self.solver.iter / self._feed.iterations

    @property
    def net(self):
        """The trained net for inference: phase TEST, without labels and losses, sharing the training net's
        weights. Its blobs can be read; predict() is faster than its forward()."""
        return self._net_of("inference")

    def train(self, epochs=None):
        """Trains up to `epochs` epochs in total, or to the end that fit() was given. Returns self.

        Continues where training ended, with the records that come next, also after Ctrl-C and from
        snapshots. Ctrl-C ends training after the current iteration, and sets `interrupted`.
        """
        last = self._last if epochs is None else _whole(epochs, "epochs", 1) * self._feed.iterations
        self._feed.begin()
        self.interrupted = False
        begun = time.monotonic()

        def after_iteration():
            nonlocal begun
            self._feed.after_iteration()
            if self.solver.iter % self._feed.iterations:
                return True
            goes_on = self._end_epoch(time.monotonic() - begun)
            begun = time.monotonic()
            return goes_on

        try:
            at_end = self.solver.iter > 0 and self.solver.iter % self._feed.iterations == 0
            goes_on = True
            if at_end and self._feed.means.records:  # an interruption came at the end of an epoch
                goes_on = self._end_epoch(0)
            if goes_on and last > self.solver.iter:
                line = self._progress and sys.stderr is not None and sys.stderr.isatty()
                self.solver._step(last - self.solver.iter, after_iteration, None, 0, line)
        except KeyboardInterrupt:
            self.interrupted = True
            self._say(f"interrupted at iteration {self.solver.iter} of {last}; train() goes on from there")
        return self

    def predict(self, x, batch=None):
        """Outputs of the trained net for records.

        x: an array whose first axis counts records, or a dict of them by input, as for fit(). batch:
        number of records per pass, by default that of fit(); the last batch may be smaller. Returns an
        array with a row for each record, or a dict of such arrays by output if the net has several. The
        softmax of a loss is included. Raises InvalidArgument for arrays that do not fit the net.
        """
        net = self._net_of("prediction")
        records = records_for(net, x, None, "predict")
        outputs = all_outputs(net, records, self._batch if batch is None else _whole(batch, "batch", 1))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def evaluate(self, x, y=None, batch=None, metric=None):
        """Means over records of the scalar outputs of the net of phase TEST.

        Each record counts once: the last batch may be smaller, and each batch is weighted by its number
        of records. x, y: as for fit(); metric: as for fit(), added under its name. Returns a dict, with
        "loss". Raises InvalidArgument for arrays that do not fit the net.
        """
        metrics = _metrics(metric)
        records = records_for(self._net_of("test"), x, y, "evaluate")
        return self._evaluate(records, metrics, self._batch if batch is None else _whole(batch, "batch", 1))

    def save(self, file):
        """Writes definition and weights as a .caffemodel, atomically. Raises IoError."""
        self.solver.net.save(file)

    def snapshot(self):
        """Writes PREFIX_iter_N.caffemodel and .solverstate; returns the latter's name, for fit(resume=...)."""
        return self.solver.snapshot()

    def _evaluate(self, records, metrics, batch):
        net = self._net_of("test")
        values = mean_outputs(net, records, batch)
        if metrics:
            asked = {name: records.arrays[name] for name in self._inputs}
            predicted = self.predict(asked, batch)
            label = records.arrays[records.labels[0]]
            values.update({name: float(function(label, predicted)) for name, function in metrics.items()})
        return values

    def _end_epoch(self, seconds):
        """Adds a row to the history. Returns False if a callback wants to stop."""
        feed = self._feed
        row = {"epoch": self.solver.iter // feed.iterations, "iteration": self.solver.iter, "lr": feed.lr, **feed.means.values()}
        if self._validation is not None:
            values = self._evaluate(self._validation, self._metrics, self._batch)
            row.update({f"val_{name}": value for name, value in values.items()})
        self.history.append(row)
        feed.means.clear()
        told = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if name not in ("epoch", "iteration"))
        self._say(f"epoch {row['epoch']}: {told}, {seconds:.1f} s")
        return all([callback(self) is not False for callback in self._callbacks])

    def _say(self, text):
        shown = self._progress and sys.stderr is not None and (sys.stderr.isatty() or _is_notebook(sys.stderr))
        if shown:
            print(("\r\x1b[K" if sys.stderr.isatty() else "") + text, file=sys.stderr, flush=True)  # overwrites the progress line

    def _net_of(self, use):
        """A net of phase TEST that shares the training net's weights, made on first use.

        use: "test" has labels and losses; "prediction" has neither; "inference" is like "prediction" but
        keeps all blobs.
        """
        if use not in self._nets:
            definition = self._definition if use == "test" else definitions.for_prediction(self._net_of("test"), self._inputs)
            if use != "test":
                definitions.set_batch(definition, self._batch)
            calibration = self._param.calibration or None
            self._nets[use] = Net(definition, caffe_pb2.TEST, precision=self._precision, calibration=calibration,
                                  keep_all=use == "inference")
            self.solver.share_weights(self._nets[use])
        return self._nets[use]


def fit(net, x, y=None, epochs=None, batch=None, solver=None, validation=None, metric=None, callbacks=(), seed=None, resume=None,
        shuffle=True, progress=True, precision=None, keep_all=False):
    """Trains a net on arrays, and returns it as a caffe.Fit.

        run = caffe.fit("lenet.prototxt", x, y, epochs=5, batch=64, validation=0.1,
                        solver={"base_lr": 0.01, "momentum": 0.9})
        print(run.history[-1], run.predict(x_new).argmax(axis=1))

    net: a prototxt's name, a caffe_pb2.NetParameter or a caffe.NetSpec. Its data come from Input
    layers, and its training phase has a loss.

    x, y: arrays of finite real numbers whose first axis counts records. They are converted to float32
    batch by batch, so uint8 images and memory maps take no extra memory. x is for the input "data", or
    for the first of two; y is for "label", or for the remaining input. For other nets pass dicts of
    arrays by input as x, y or both. A record has the shape of its input without the batch axis; axes of
    extent 1 may be missing. Labels are whole numbers from 0.

    epochs: how often each record is used. Each epoch uses each record once, in a new random order, or
    in the given order with shuffle=False; the last batch may be smaller. Without epochs, the solver's
    max_epoch or max_iter ends the training; with epochs, rate policies that end at max_iter end with
    the training.

    batch: number of records per pass; by default the first extent of the net's first Input layer. With
    the solver's iter_size, gradients accumulate over several passes; it must divide the number of
    batches per epoch.

    solver: a dict of fields of SolverParameter ({"type": "SGD", "base_lr": 0.01}), keyed like --set; a
    caffe_pb2.SolverParameter; or a solver prototxt's name, whose nets and tests are ignored. lr_policy
    defaults to "fixed" in a dict. Default: Adam, rate 0.001. `snapshot` and `snapshot_prefix` write
    snapshots as usual, `weights` loads initial weights.

    validation: (x, y), or the share of the records, between 0 and 1, to set aside; the seed determines
    which ones. metric: "accuracy", a function of (y, predictions) that returns a number, or a dict of
    such functions by name; computed on the validation data after each epoch.

    callbacks: a function or several, each called with the Fit after each epoch; training stops if one
    returns False. An exception in a callback ends the training and reaches the caller; to keep the
    object in that case, use caffe.Fit(...), with the same arguments, and then train().

    seed: for fillers, dropout and order; default: the solver's random_seed, else that of
    caffe.set_random_seed(), else a new one. resume: a .solverstate of such a run; with the same arrays,
    batch, validation and solver, training continues bit for bit as without an interruption, with the
    seed of that run. The history starts empty.

    Ctrl-C ends the training after an iteration: fit() returns, `interrupted` is True, and train()
    continues. progress: prints a line per epoch, in terminals and notebooks. precision, keep_all: as
    for get_solver(); keep_all=True lets callbacks read every blob of solver.net.

    Raises InvalidArgument, before training, for arrays that do not fit the net (shape, dtype,
    number, NaN, labels without a class), and for a net without Input layers or a loss.
    """
    return Fit(net, x, y, epochs, batch, solver, validation, metric, callbacks, seed, resume, shuffle, progress, precision,
               keep_all).train()

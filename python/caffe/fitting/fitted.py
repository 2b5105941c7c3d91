"""fit(): a net trained on arrays, and what is asked of it afterwards."""
import sys
import time
from collections.abc import Mapping

import numpy as np

from .._caffe import InvalidArgument
from ..proto import caffe_pb2
from ..pycaffe import Net
from ..solver import _is_notebook, get_solver
from . import definitions
from .arrays import count_of, label_inputs, records_for
from .passes import Feed, all_outputs, mean_outputs


def _accuracy(labels, predicted):
    """The share of records whose largest score is that of their label."""
    return float(np.mean(predicted.argmax(axis=1).reshape(-1) == np.asarray(labels).reshape(-1)))


def _metrics(metric):
    """{name: function(y, predictions)} of what a caller may give."""
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
    """How many of `count` records `validation` takes away from training."""
    if validation is None or isinstance(validation, (tuple, list)):
        return 0
    if not isinstance(validation, (float, np.floating)) or not 0 < validation < 1:
        raise InvalidArgument(f"fit: validation is {validation!r:.80}; give (x, y), or a share of the records between 0 and 1")
    drawn = round(count * float(validation))
    if not 0 < drawn < count:
        raise InvalidArgument(f"fit: validation {validation} of {count} records is {drawn}; both parts need at least one")
    return drawn


class Fit:
    """A net that is trained on arrays, and goes on to answer. caffe.fit() makes it and has the arguments.

    Attributes:
        history: a dict for each epoch: "epoch" (from 1), "iteration" (done by then), "lr" (of its
            last iteration); means over its records of the training net's outputs that are single
            numbers, and "loss"; the same of the validation data, named "val_...", and the metrics.
        solver: the caffe.Solver that trains; `solver.net` is the net of phase TRAIN.
        seed: of fillers, dropout, and the order of the records.
        interrupted: True where Ctrl-C ended the last training.
    """

    def __init__(self, net, x, y=None, epochs=None, batch=None, solver=None, validation=None, metric=None, callbacks=(), seed=None,
                 resume=None, shuffle=True, progress=True, precision=None, keep_all=False):
        self._definition = definitions.read_net(net)
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
        """How many epochs are trained so far, in whole or in part: a float."""
        return self.solver.iter / self._feed.iterations

    @property
    def net(self):
        """The trained net for inference: phase TEST, without labels and losses, with the weights of the
        training net in its memory. Its blobs can be read; predict() is faster than its forward()."""
        return self._net_of("inference")

    def train(self, epochs=None):
        """Trains up to `epochs` epochs in all, or to the end that fit() was given. Returns the object.

        It goes on where training ended, with the records that come next, after Ctrl-C and after
        snapshots as well. Ctrl-C ends it after the iteration, and sets `interrupted`.
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
            if at_end and self._feed.means.records:  # the end of an epoch was interrupted
                goes_on = self._end_epoch(0)
            if goes_on and last > self.solver.iter:
                line = self._progress and sys.stderr is not None and sys.stderr.isatty()
                self.solver._step(last - self.solver.iter, after_iteration, None, 0, line)
        except KeyboardInterrupt:
            self.interrupted = True
            self._say(f"interrupted at iteration {self.solver.iter} of {last}; train() goes on from there")
        return self

    def predict(self, x, batch=None):
        """What the trained net says of records.

        x: an array whose first axis counts records, or a dict of them by input, as for fit(); batch:
        how many records run at a time, fit()'s by default; the last batch is smaller. Returns an
        array with a row for each record, or a dict of such arrays by output where the net has
        several. The softmax of a loss is part of it. Raises InvalidArgument for arrays that do not
        fit the net.
        """
        net = self._net_of("prediction")
        records = records_for(net, x, None, "predict")
        outputs = all_outputs(net, records, self._batch if batch is None else _whole(batch, "batch", 1))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def evaluate(self, x, y=None, batch=None, metric=None):
        """Means over records of the outputs of the net of phase TEST that are single numbers.

        Each record counts once: the last batch is smaller, and the mean of a batch weighs as much as
        it has records. x, y: as for fit(); metric: as for fit(), added under its name. Returns a
        dict, with "loss". Raises InvalidArgument for arrays that do not fit the net.
        """
        metrics = _metrics(metric)
        records = records_for(self._net_of("test"), x, y, "evaluate")
        return self._evaluate(records, metrics, self._batch if batch is None else _whole(batch, "batch", 1))

    def save(self, file):
        """Writes definition and weights as a .caffemodel, whole or not at all. Raises IoError."""
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
        """Adds a row to the history. Returns whether all callbacks want to go on."""
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
            print(("\r\x1b[K" if sys.stderr.isatty() else "") + text, file=sys.stderr, flush=True)  # over the live line

    def _net_of(self, use):
        """A net of phase TEST that reads the training net's weights, made when it is first asked for.

        use: "test" has labels and losses; "prediction" has none, "inference" neither, and all blobs.
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

    net: a prototxt's name, a caffe_pb2.NetParameter or a caffe.NetSpec, whose data are Input layers
    and whose training phase has a loss.

    x, y: arrays of real numbers whose first axis counts records, finite and converted to float32
    batch by batch, so that uint8 images and memory maps take no more memory. x is for the input
    "data", or the first of two; y for "label", or the one that is left. A dict of arrays by input
    says it for any net, in x, in y or in both. A record has the shape of its input without the
    batch; axes of extent 1 may be missing. Labels are whole numbers from 0.

    epochs: how often each record is used. Each is used once in an epoch, in an order drawn anew, or
    as they come with shuffle=False; the last batch is smaller. Without it the solver's max_epoch
    counts them, or its max_iter batches; with it, rate policies that end at max_iter end with the
    training.

    batch: how many records a pass has; the first extent of the net's first Input layer by default.
    iter_size of the solver adds up the gradients of several passes, and must divide their number.

    solver: a dict of fields of SolverParameter ({"type": "SGD", "base_lr": 0.01}), by the paths of
    --set; a caffe_pb2.SolverParameter; or a solver prototxt's name, whose nets and tests are left
    out. lr_policy is "fixed" in a dict that does not say. Default: Adam, rate 0.001. `snapshot` and
    `snapshot_prefix` write snapshots as ever, `weights` loads weights to start from.

    validation: (x, y), or a share of the records between 0 and 1, which are drawn by the seed and
    not trained on. metric: "accuracy", a function of (y, predictions) that returns a number, or a
    dict of those by name; computed on the validation data after each epoch.

    callbacks: a function or several, each called with the Fit after each epoch; training stops when
    one returns False. What one raises ends the training and reaches the caller; caffe.Fit(...), with
    the same arguments, then train() leaves an object all the same.

    seed: of the fillers, of dropout and of the order; else the solver's random_seed, else that of
    caffe.set_random_seed(), else a new one. resume: a .solverstate of such a run; with the same
    arrays, batch, validation and solver, training goes on bit by bit as without an interruption,
    and takes the seed from there. The history begins again.

    Ctrl-C ends the training after an iteration: fit() returns, `interrupted` is True, and train()
    goes on. progress: a line for each epoch, in terminals and notebooks. precision, keep_all: as for
    get_solver(); keep_all=True lets callbacks read every blob of solver.net.

    Raises InvalidArgument, before training, for arrays that do not fit the net (shape, dtype,
    number, NaN, labels that it has no class for), and for a net without Input layers or a loss.
    """
    return Fit(net, x, y, epochs, batch, solver, validation, metric, callbacks, seed, resume, shuffle, progress, precision,
               keep_all).train()

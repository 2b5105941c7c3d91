"""Feeds nets batch by batch in training, and reads the results of nets in testing."""
import weakref

import numpy as np

from .._caffe import InvalidArgument


class Means:
    """Means over records of a net's scalar outputs and of its loss."""

    def __init__(self, net):
        weights = net.blob_loss_weights
        self.outputs = [(name, net.blobs[name], weights[name]) for name in net.outputs
                        if net.blobs[name].shape == () or (net.blobs[name].count == 1 and weights[name])]
        names = {name for name, _, _ in self.outputs}
        self.adds_loss = "loss" not in names and any(weight for _, _, weight in self.outputs)
        self.clear()

    def clear(self):
        self.sums, self.records = {}, 0

    def read(self):
        """The results of the last pass: {output: number}."""
        found, loss = {}, 0.0
        for name, blob, weight in self.outputs:
            found[name] = float(blob.data.reshape(()))
            loss += weight * found[name]
        if self.adds_loss:
            found["loss"] = loss
        return found

    def add(self, results, records):
        """Adds the results of a pass of `records` records."""
        for name, value in results.items():
            self.sums[name] = self.sums.get(name, 0.0) + records * value
        self.records += records

    def values(self):
        """{output: mean}; "loss" is the weighted sum of all losses unless an output has that name."""
        return {name: value / self.records for name, value in self.sums.items()} if self.records else {}


class Feed:
    """Gives a solver's net each record once per epoch, in an order determined by seed and epoch.

    The solver's iteration alone determines which records come next, so training that resumes from a
    snapshot, or after an interruption, sees the same records as an uninterrupted run.

    members: the numbers of the training records; shuffle: False keeps their order.
    """

    def __init__(self, solver, records, members, batch, seed, shuffle):
        self.solver, self.net, self.records, self.members = solver, solver.net, records, members
        self.batch, self.seed, self.shuffle = batch, seed, shuffle
        self.passes = solver.param.iter_size  # per iteration
        self.batches = -(-len(members) // batch)  # per epoch
        if self.batches % self.passes:
            raise InvalidArgument(f"fit: {len(members)} records are {self.batches} batches of {batch}, which iter_size {self.passes} "
                                  "does not divide; choose another batch, or iter_size: 1")
        self.iterations = self.batches // self.passes  # per epoch
        self.means = Means(self.net)
        self.lr = 0.0
        self._order = self._epoch = None
        self._results = []  # [records, results or None] for each pass of the iteration
        # A strong reference back to this object would form a cycle that keeps its arrays alive for ever.
        fed = weakref.ref(self)

        def before_forward():
            feed = fed()
            if feed is None:
                raise InvalidArgument("the solver trains on arrays of a caffe.Fit that is gone; keep that object")
            feed.before_forward()

        solver._add_feed(before_forward)

    def begin(self):
        """Discards the passes of an unfinished iteration."""
        self._results = []

    def _order_of(self, epoch):
        if epoch != self._epoch:
            draw = np.random.default_rng([self.seed, epoch])
            self._order = draw.permutation(self.members) if self.shuffle else self.members
            self._epoch = epoch
        return self._order

    def before_forward(self):
        """Fills in the records of the next pass."""
        self._read()
        epoch, place = divmod(self.solver.iter * self.passes + len(self._results), self.batches)
        numbers = self._order_of(epoch)[place * self.batch:(place + 1) * self.batch]
        self.records.fill(self.net, numbers)
        if not self._results:
            self.lr = self.solver.lr
        self._results.append([len(numbers), None])

    def after_iteration(self):
        """Adds the iteration's results to the means."""
        self._read()
        for records, results in self._results:
            self.means.add(results, records)
        self._results = []

    def _read(self):
        if self._results and self._results[-1][1] is None:
            self._results[-1][1] = self.means.read()


def batches(net, records, batch):
    """Runs `net` on all records in order; the last batch may be smaller. Yields (records, outputs) for
    each batch; the outputs are views."""
    for first in range(0, records.count, batch):
        last = min(first + batch, records.count)
        records.fill_in_order(net, first, last)
        yield last - first, net.forward()


def mean_outputs(net, records, batch):
    """Means over the records of all scalar outputs of `net`."""
    means = Means(net)
    for count, _ in batches(net, records, batch):
        means.add(means.read(), count)
    return means.values()


def all_outputs(net, records, batch):
    """{output: array with a row for each record}."""
    collected = {}
    for count, outputs in batches(net, records, batch):
        for name, values in outputs.items():
            if values.ndim == 0 or values.shape[0] != count:
                raise InvalidArgument(f"predict: output {name!r} has shape {values.shape} for {count} records, not a row for each; "
                                      "use fit.net.forward()")
            collected.setdefault(name, []).append(values.copy())
    return {name: np.concatenate(rows) for name, rows in collected.items()}

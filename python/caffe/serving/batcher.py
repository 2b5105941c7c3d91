"""Collects requests for a model into batches."""
import collections
import concurrent.futures
import dataclasses
import threading
import time

import numpy as np


class QueueFull(Exception):
    """More requests wait than may."""


@dataclasses.dataclass
class _Request:
    inputs: dict
    count: int
    arrived: float
    future: concurrent.futures.Future


class Batcher:
    """Threads that compute what waits for a model.

    A thread that is free takes all that waits, up to the model's largest batch, at once: batches form while the
    threads are busy, so nobody waits for a batch to fill.

    model: a Model
    instances: number of threads
    max_queue: requests that may wait
    max_delay: seconds that a thread waits for further requests before it computes less than a whole batch
    observe: a function of (items, seconds of waiting of each request, seconds of computing), called after each batch
    begin: a function that each thread calls first, for example to choose a device
    """

    def __init__(self, model, *, instances=1, max_queue=256, max_delay=0.0, observe=None, begin=None):
        self.model = model
        self._max_queue = max_queue
        self._max_delay = max_delay
        self._observe = observe or (lambda items, waited, computed: None)
        self._waiting = collections.deque()
        self._changed = threading.Condition()
        self._is_open = True
        ready = [concurrent.futures.Future() for _ in range(instances)]
        self._threads = [threading.Thread(target=self._work, args=(future, begin), name=f"{model.name} {number}", daemon=True)
                         for number, future in enumerate(ready)]
        for thread in self._threads:
            thread.start()
        for future in ready:
            future.result()

    def __len__(self):
        return len(self._waiting)

    def submit(self, inputs, count):
        """Queues a request for `count` items. Returns a Future of a dict of arrays by output. Raises QueueFull."""
        request = _Request(inputs, count, time.monotonic(), concurrent.futures.Future())
        with self._changed:
            if not self._is_open or len(self._waiting) >= self._max_queue:
                raise QueueFull
            self._waiting.append(request)
            self._changed.notify()
        return request.future

    def close(self):
        """Computes what waits, and ends the threads."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self, ready, begin):
        try:
            if begin:
                begin()
            nets = self.model.nets()
            for size in nets:  # plans are made when a net first runs
                zeros = {one.name: np.zeros((size, *one.shape[1:]) if size else one.shape, np.float32) for one in self.model.inputs}
                self.model.run(nets, [zeros], [size])
            ready.set_result(None)
        except BaseException as error:  # pylint: disable=broad-except  # for the thread that waits for this one
            ready.set_exception(error)
            return
        while batch := self._take():
            self._compute(nets, batch)

    def _take(self):
        """The next requests to compute together; [] at the end."""
        with self._changed:
            while True:
                while self._is_open and not self._waiting:
                    self._changed.wait()
                if not self._waiting:
                    return []
                self._wait_for_more()
                batch, items = [], 0
                while self._waiting and (not batch or items + self._waiting[0].count <= self.model.max_batch):
                    request = self._waiting.popleft()
                    if request.future.set_running_or_notify_cancel():
                        batch.append(request)
                        items += request.count
                if batch:
                    return batch

    def _wait_for_more(self):
        if not self._max_delay:
            return
        until = self._waiting[0].arrived + self._max_delay
        while (self._is_open and self._waiting and sum(request.count for request in self._waiting) < self.model.max_batch
               and (left := until - time.monotonic()) > 0):
            self._changed.wait(left)

    def _compute(self, nets, batch):
        begin = time.monotonic()
        try:
            answers = self.model.run(nets, [request.inputs for request in batch], [request.count for request in batch])
        except Exception as error:  # pylint: disable=broad-except  # belongs to those who asked
            self._fail(nets, batch, error)
            return
        self._observe(sum(request.count for request in batch), [begin - request.arrived for request in batch], time.monotonic() - begin)
        for request, answer in zip(batch, answers):
            request.future.set_result(answer)

    def _fail(self, nets, batch, error):
        """Computes each request alone, so that one that fails does not fail the others."""
        if len(batch) == 1:
            batch[0].future.set_exception(error)
            return
        for request in batch:
            self._compute(nets, [request])

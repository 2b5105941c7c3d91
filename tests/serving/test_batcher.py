"""Batches of what waits."""
import threading

import numpy as np
import pytest

from caffe.serving import QueueFull
from caffe.serving.model import Tensor


class Gate:
    """A model whose computations wait until the test lets them go. It adds one."""
    name = "gate"
    max_batch = 4
    inputs = [Tensor("x", (-1,))]

    def __init__(self):
        self.counts, self.open, self.begun = [], threading.Semaphore(0), threading.Semaphore(0)
        self._warm = False

    def nets(self):
        return {4: None}

    def run(self, nets, requests, counts):
        if not self._warm:
            self._warm = True
            return [{}]
        self.begun.release()
        self.open.acquire()
        self.counts.append(counts)
        if any((request["x"] < 0).any() for request in requests):
            raise ValueError("negative")
        return [{"y": request["x"] + 1} for request in requests]


def ask(batcher, *values):
    return batcher.submit({"x": np.array(values, np.float32)}, len(values))


@pytest.fixture
def gate():
    return Gate()


def hold(batcher, gate):
    """Lets a request keep the thread busy."""
    first = ask(batcher, 0)
    gate.begun.acquire()
    return first


def test_what_waits_is_computed_together(gate, closing):
    seen = []
    batcher = closing(gate, observe=lambda items, waited, seconds: seen.append((items, len(waited))))
    futures = [hold(batcher, gate), *(ask(batcher, *values) for values in ([1], [2, 3], [4], [5, 6, 7], [8, 9, 10, 11, 12]))]
    assert len(batcher) == 5
    for _ in range(4):
        gate.open.release()
    assert [future.result()["y"].tolist() for future in futures] == [[1], [2], [3, 4], [5], [6, 7, 8], [9, 10, 11, 12, 13]]
    assert gate.counts == [[1], [1, 2, 1], [3], [5]]
    assert seen == [(1, 1), (4, 3), (3, 1), (5, 1)]


def test_one_that_fails_fails_alone(gate, closing):
    batcher = closing(gate)
    futures = [hold(batcher, gate), ask(batcher, 1), ask(batcher, -1), ask(batcher, 2)]
    for _ in range(5):
        gate.open.release()
    assert futures[1].result()["y"] == 2 and futures[3].result()["y"] == 3
    assert str(futures[2].exception()) == "negative"
    assert gate.counts == [[1], [1, 1, 1], [1], [1], [1]]


def test_more_than_may_wait_are_refused(gate, closing):
    batcher = closing(gate, max_queue=2)
    futures = [hold(batcher, gate), ask(batcher, 1), ask(batcher, 2)]
    with pytest.raises(QueueFull):
        ask(batcher, 3)
    gate.open.release(2)
    assert [future.result()["y"].tolist() for future in futures] == [[1], [2], [3]]


def test_what_nobody_waits_for_is_not_computed(gate, closing):
    batcher = closing(gate)
    futures = [hold(batcher, gate), ask(batcher, 1), ask(batcher, 2)]
    assert futures[1].cancel()
    gate.open.release(2)
    assert futures[2].result()["y"] == 3
    assert gate.counts == [[1], [1]]


def test_closing_computes_what_waits(gate, closing):
    batcher = closing(gate)
    futures = [hold(batcher, gate), ask(batcher, 1)]
    gate.open.release(2)
    batcher.close()
    assert all(future.done() for future in futures)
    with pytest.raises(QueueFull):
        ask(batcher, 1)


def test_a_delay_fills_batches(gate, closing):
    batcher = closing(gate, max_delay=3600)
    futures = [ask(batcher, 1), ask(batcher, 2), ask(batcher, 3), ask(batcher, 4)]
    gate.open.release()
    assert [future.result()["y"].tolist() for future in futures] == [[2], [3], [4], [5]]
    assert gate.counts == [[1, 1, 1, 1]]


def test_an_error_of_a_thread_is_that_of_the_start(classes, closing):
    def fail():
        raise RuntimeError("no device")

    with pytest.raises(RuntimeError, match="no device"):
        closing(classes, begin=fail)

"""Runs models from strangers in onnxruntime, in a separate process with limits for memory and time.

A model that crashes the process, hangs, or needs too much memory causes an error here.
"""
import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from .._caffe import InvalidArgument
from .check import NotComputed

MEMORY = 4 << 30  # limit for a model's address space in bytes, including libraries;
MEMORY_BY_SIZE = 16  # or this multiple of the model's size, if that is larger
SECONDS = 600  # limit for a model's run time

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_model.py")


class _Worker:
    """A process that runs one model after another."""

    def __init__(self):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "MALLOC_ARENA_MAX": "2"}
        self.process = subprocess.Popen([sys.executable, _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=environment)

    def ask(self, request, seconds):
        """The process's answer; None if it does not answer in time, or ends."""
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            return None
        end, answer = time.monotonic() + seconds, b""
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            part = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not part:
                return None
            answer += part
        return answer.decode("utf-8", "replace").rstrip("\n")

    def end(self):
        """How the process ended: a negative signal number, or an exit status; None if it was still running."""
        status = self._status()
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        return status

    def _status(self):
        try:
            return self.process.wait(1)
        except subprocess.TimeoutExpired:
            return None


_workers = []


@atexit.register
def end_workers():
    """Ends the process; the next model starts a new one."""
    while _workers:
        _workers.pop().end()


def run(model, arrays):
    """Runs a model, given as bytes, and returns all its tensors by name.

    Raises InvalidArgument if the model is not valid, cannot be run, or exceeds a limit, and NotComputed if onnxruntime lacks a
    kernel.
    """
    if not _workers:
        _workers.append(_Worker())
    with tempfile.TemporaryDirectory(prefix="caffe_onnx_") as folder:
        with open(os.path.join(folder, "model.onnx"), "wb") as file:
            file.write(model)
        for k, array in enumerate(arrays.values()):
            np.save(os.path.join(folder, f"input{k}.npy"), array)
        with open(os.path.join(folder, "inputs.json"), "w", encoding="utf-8") as file:
            json.dump({name: f"input{k}.npy" for k, name in enumerate(arrays)}, file)
        size = len(model) + sum(array.nbytes for array in arrays.values())
        memory = max(MEMORY, MEMORY_BY_SIZE * size)
        answer = _workers[0].ask([folder, memory], SECONDS)
        if answer != "done":
            _refuse(answer, memory)
        with open(os.path.join(folder, "outputs.json"), encoding="utf-8") as file:
            files = json.load(file)
        return {name: np.load(os.path.join(folder, file), allow_pickle=False) for name, file in files.items()}


def _refuse(answer, memory):
    kind, _, text = (answer or "").partition(" ")
    if answer is None:
        status = _workers.pop().end()
        if status is None:
            raise InvalidArgument(f"the model runs for more than {SECONDS} s")
        cause = signal.Signals(-status).name if status < 0 else f"status {status}"
        raise InvalidArgument(f"the model ends onnxruntime ({cause})")
    if kind == "invalid":
        raise InvalidArgument(f"the model is not valid: {text}")
    if kind == "unknown":
        raise NotComputed(f"onnxruntime cannot run the model: {text}")
    if kind == "memory" or "bad_alloc" in text or "Failed to allocate memory" in text:
        raise InvalidArgument(f"the model needs more than {memory >> 20} MiB of memory")
    raise InvalidArgument(f"onnxruntime cannot run the model: {text}")

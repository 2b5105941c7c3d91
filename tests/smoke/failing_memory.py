"""Programs in which one allocation fails, because tests/disk/memory.cpp is preloaded into them."""
import array
import os
import subprocess

from programs import BINARIES

LIBRARY = BINARIES.parent / "lib" / "libcaffe_test_memory.so"


class FailingMemory:
    """A program that waits before its main(), and runs once for each request, in a separate process."""

    def __init__(self, command, folder):
        self.output = folder / "output"
        self.failed_stack = 0  # call stack of the failed allocation; 0: none failed
        # With this policy `caffe` does not have to start itself a second time.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1",
                       "LD_PRELOAD": str(LIBRARY), "CAFFE_MEMORY_SERVER": "1"}
        self.server = subprocess.Popen([str(part) for part in command], cwd=folder, env=environment, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait(timeout=60)

    def run(self, failing=0):
        """Makes that allocation fail, counted from 1. Returns the exit status (-N after signal N), all output, the allocations made."""
        self.server.stdin.write(f"{failing} {self.output}\n")
        self.server.stdin.flush()
        status, allocations, self.failed_stack = map(int, self.server.stdout.readline().split())
        return os.waitstatus_to_exitcode(status), self.output.read_text(errors="replace"), allocations

    def stacks(self):
        """Runs the program undisturbed. Returns a number for the call stack of each allocation."""
        self.run(-1)
        numbers = array.array("Q")
        numbers.frombytes(self.output.with_name(self.output.name + ".stacks").read_bytes())
        return numbers

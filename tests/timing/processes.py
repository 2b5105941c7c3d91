"""Processes that a test has not started itself: whether they exist, and whether they end."""
import os
import select
import time

from programs import PATIENCE


def is_alive(process):
    """True for a process that has not ended; a zombie has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(process):
    """True once the process has ended, which may take a moment."""
    end = time.monotonic() + PATIENCE
    while is_alive(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_alive(process)


def line_from(pipe, process):
    """The line that a process, or one of its children, writes to a named pipe; the test fails if the process ends before."""
    end = os.pidfd_open(process.pid)
    try:
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
            ready, _, _ = select.select([file, end], [], [])
            assert file in ready, f"{process.args} ended with status {process.wait()} before it wrote to {pipe}"
            return file.readline()
    finally:
        os.close(end)

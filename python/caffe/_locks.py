"""Locks of files, which the kernel releases when their process ends, however it ends."""
import contextlib
import fcntl
import os


def open_lock(file):
    """A descriptor for try_lock() and wait_for_lock(). The file is made if it is missing, its folder is not."""
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def try_lock(descriptor):
    """True if the lock is taken; false if another process, or another descriptor, holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor):
    """Returns when the lock is taken."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def is_locked(file):
    """True if another descriptor holds the lock of a file. The lock is shared for a moment, so that callers do not see each other."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def locked(file):
    """Waits for the lock of a file, and holds it."""
    descriptor = open_lock(file)
    try:
        wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)

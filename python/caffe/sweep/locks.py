"""The lock of Optuna's journal."""
import os

from optuna.storages.journal import JournalFileOpenLock

from .._locks import open_lock, wait_for_lock


class JournalLock(JournalFileOpenLock):
    """Optuna's own locks are files, which stay when a process is killed; this one is the kernel's."""

    def __init__(self, file):
        super().__init__(file)
        self._file = file + ".flock"
        self._descriptor = None

    def acquire(self):
        descriptor = open_lock(self._file)
        wait_for_lock(descriptor)
        self._descriptor = descriptor
        return True

    def release(self):
        os.close(self._descriptor)
        self._descriptor = None

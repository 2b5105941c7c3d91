"""Makes folders whole or not at all."""
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from ._caffe import IoError
from ._locks import try_lock


@contextlib.contextmanager
def new_folder(folder):
    """A folder to fill, hidden and next to `folder`, whose name it takes at the end. An exception removes it. Those that killed
    processes have left for `folder` are removed at the start. Raises OSError, and IoError if the folder around it is missing."""
    folder = Path(folder)
    if not folder.parent.is_dir():
        raise IoError(f"{folder}: there is no folder {folder.parent}; make it first")
    _remove_left(folder)
    partial = tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent)
    lock = os.open(partial, os.O_RDONLY | os.O_CLOEXEC)  # held while this process exists
    try:
        _is_owned(lock)
        os.chmod(partial, 0o755)
        yield Path(partial)
        os.rename(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def _remove_left(folder):
    name = re.compile(rf"\.{re.escape(folder.name)}\.[a-z0-9_]{{8}}\.partial")
    for entry in os.scandir(folder.parent):
        if not name.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _is_owned(lock):
                    shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(lock)


def _is_owned(lock):
    """True if this process now holds the lock; false if another one does, or the file system has no locks."""
    try:
        return try_lock(lock)
    except OSError:
        return False

"""Reads the lines of a file that grows."""
import os

_CHUNK = 4 << 20
_LONGEST = 1 << 24  # a line is shorter, unless the file is not a log


class GrowingLines:
    """Whole lines of a file, each once. The line that is being written comes when it is complete.

    If the file has become shorter, or is another one, reading begins again: `restarted` is then true after next().
    """

    def __init__(self, file):
        self.file = file
        self.restarted = False
        self._position = 0
        self._rest = b""
        self._identity = None

    def next(self):
        """Yields the lines that were added, as bytes without the line's end. None at all if there is no file."""
        self.restarted = False
        if not os.path.isfile(self.file):  # a pipe would never end
            return
        try:
            with open(self.file, "rb") as content:
                status = os.fstat(content.fileno())
                identity = (status.st_dev, status.st_ino)
                if self._identity is not None and (identity != self._identity or status.st_size < self._position):
                    self._position, self._rest, self.restarted = 0, b"", True
                self._identity = identity
                content.seek(self._position)
                while chunk := content.read(_CHUNK):
                    self._position += len(chunk)
                    *lines, self._rest = (self._rest + chunk).split(b"\n")
                    if len(self._rest) > _LONGEST:
                        self._rest = self._rest[:_LONGEST]
                    yield from lines
        except (FileNotFoundError, NotADirectoryError):
            return

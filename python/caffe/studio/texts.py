"""Text files that users edit in the browser while other programs, or other pages, may change them."""
import os

from .. import InvalidArgument
from .._locks import locked
from .._output import write_whole


class EditedText:
    """A text file as it was when a page opened it.

    path: of the file
    text: with \\n as line ends, as browsers have them
    Raises InvalidArgument if the file cannot be written back as it is: it is not UTF-8, or has line ends of several kinds. OSError
    """

    def __init__(self, path):
        self.path = os.fspath(path)
        self._content = self._read()
        try:
            text = self._content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self._content.count(b"\n", 0, error.start) + 1
            raise InvalidArgument(f"{self.path}:{line}: the byte 0x{self._content[error.start]:02x} is not UTF-8, so that the file cannot be "
                                  "edited here; convert it, for example by iconv") from None
        windows, returns, lines = text.count("\r\n"), text.count("\r"), text.count("\n")
        if returns and not windows == returns == lines:
            raise InvalidArgument(f"{self.path}: {windows} of its lines end with CR LF, {lines - windows} with LF and {returns - windows} with "
                                  "CR, so that the file cannot be edited here; make them equal, for example by dos2unix")
        self._end = "\r\n" if returns else "\n"
        self.text = text.replace(self._end, "\n")

    def _read(self):
        with open(self.path, "rb") as file:
            return file.read()

    def bytes_of(self, text):
        """The bytes that the file has to hold for a text."""
        return text.replace("\n", self._end).encode("utf-8")

    def require_same(self):
        """Raises InvalidArgument if the file has changed since it was opened or saved here, OSError."""
        if self._read() != self._content:
            raise InvalidArgument(f"{os.path.basename(self.path)} has changed on the disk since you opened it. Copy your changes, load the "
                                  "page again and repeat them there.")

    def save(self, text, lock):
        """Replaces the file. lock: a file, the same one for all that edit. Raises as require_same(), IoError."""
        content = self.bytes_of(text)
        with locked(lock):
            self.require_same()
            write_whole(self.path, content)
        self._content = content

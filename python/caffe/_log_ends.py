"""The ends of log files."""
import os
import re

_PREFIX = re.compile(r"[IWEF]\d{4} [\d:.]+ +\d+ [^ ]+\] ")


def end_of(file, most=65536):
    """The text at the end of a file, "" if it cannot be read. most: bytes."""
    if not os.path.isfile(file):  # a pipe would never end
        return ""
    try:
        with open(file, "rb") as content:
            size = content.seek(0, os.SEEK_END)
            content.seek(max(0, size - most))
            return content.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def last_words(text):
    """The last line of a log that says something, without the prefix of logs; "" if there is none. Indented lines continue the
    line before them."""
    lines = [line for line in text.splitlines() if line.strip() and not line[0].isspace()]
    return _PREFIX.sub("", lines[-1].strip(), count=1) if lines else ""

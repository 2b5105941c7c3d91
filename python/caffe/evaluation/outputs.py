"""The files that an evaluation writes: whole or not at all, and over nothing but its own."""
from __future__ import annotations

import json
import os
from typing import Any, Dict

from .. import InvalidArgument, IoError
from .._output import require_place

MADE_BY = "caffe evaluate"
# Marks at the beginning of the files that we write, by which they are known.
_MARKS = (f'"made_by": "{MADE_BY}"', f'<meta name="generator" content="{MADE_BY}">')
_BEGINNING = 1024  # bytes


def require_own(file: str, flag: str) -> None:
    """Raises IoError where the file cannot be written, InvalidArgument where one of this name is there
    that `caffe evaluate` has not written. flag: by which it was named."""
    require_place(file)
    if not os.path.lexists(file):
        return
    try:
        with open(file, "rb") as there:
            beginning = there.read(_BEGINNING).decode("utf-8", "replace")
    except OSError as error:
        raise IoError(f"{file}: {error.strerror}") from None
    if not any(mark in beginning for mark in _MARKS):
        raise InvalidArgument(f"{file}: is there already, and {MADE_BY} has not written it; give another {flag}, or remove it")


def write_whole(file: str, text: str) -> None:
    """Writes a temporary file in the same folder and renames it. Raises IoError."""
    content = text.encode("utf-8")
    partial = os.path.join(os.path.dirname(file), f".{os.path.basename(file)}.{os.getpid()}.partial")
    try:
        try:
            with open(partial, "xb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            os.replace(partial, file)
        except FileExistsError:
            raise
        except BaseException:
            os.unlink(partial)
            raise
    except OSError as error:
        raise IoError(f"{file}: cannot be written: {error.strerror}") from None


def json_text(figures: Dict[str, Any]) -> str:
    """As the file: the mark is in its first line but one."""
    return json.dumps({"made_by": MADE_BY, **figures}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

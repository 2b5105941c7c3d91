"""Writes the files of an evaluation atomically, and overwrites only files of earlier evaluations."""
from __future__ import annotations

import json
import os
from typing import Any, Dict

from .. import InvalidArgument, IoError
from .._output import require_place

MADE_BY = "caffe evaluate"
# Marks near the beginning of files that we wrote.
_MARKS = (f'"made_by": "{MADE_BY}"', f'<meta name="generator" content="{MADE_BY}">')
_BEGINNING = 1024  # bytes searched for a mark


def require_own(file: str, flag: str) -> None:
    """Raises IoError if the file cannot be written, InvalidArgument if it exists and `caffe evaluate` did
    not write it. flag: the option that named it."""
    require_place(file)
    if not os.path.lexists(file):
        return
    try:
        with open(file, "rb") as there:
            beginning = there.read(_BEGINNING).decode("utf-8", "replace")
    except OSError as error:
        raise IoError(f"{file}: {error.strerror}") from None
    if not any(mark in beginning for mark in _MARKS):
        raise InvalidArgument(f"{file}: already exists, and {MADE_BY} has not written it; give another {flag}, or remove it")


def json_text(figures: Dict[str, Any]) -> str:
    """The content of the JSON file: the mark is on the second line."""
    return json.dumps({"made_by": MADE_BY, **figures}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

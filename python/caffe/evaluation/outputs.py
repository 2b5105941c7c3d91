"""Writes the files of an evaluation atomically, and overwrites only files of earlier evaluations."""
from __future__ import annotations

import json
from typing import Any, Dict

from .. import _output

MADE_BY = "caffe evaluate"
# Marks near the beginning of files that we wrote.
_MARKS = (f'"made_by": "{MADE_BY}"'.encode(), f'<meta name="generator" content="{MADE_BY}">'.encode())


def require_own(file: str, flag: str) -> None:
    """Raises IoError if the file cannot be written, InvalidArgument if it exists and `caffe evaluate` did
    not write it. flag: the option that named it."""
    _output.require_own(file, _MARKS, MADE_BY, flag)


def json_text(figures: Dict[str, Any]) -> str:
    """The content of the JSON file: the mark is on the second line."""
    return json.dumps({"made_by": MADE_BY, **figures}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

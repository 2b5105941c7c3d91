"""Writes messages as readable prototxt."""
from __future__ import annotations

from typing import Any, Iterator

from google.protobuf import text_format

from .net_spec import is_repeated

WIDTH = 100


def _lines(message: Any, indent: str = "") -> Iterator[str]:
    for field, value in message.ListFields():
        for item in value if is_repeated(field) else [value]:
            if field.message_type is None:
                one = type(message)(**{field.name: [item] if is_repeated(field) else item})
                yield f"{indent}{text_format.MessageToString(one, as_one_line=True, as_utf8=True).strip()}"
                continue
            body = text_format.MessageToString(item, as_one_line=True, as_utf8=True).strip()
            whole = f"{indent}{field.name} {{ {body} }}" if body else f"{indent}{field.name} {{}}"
            if indent and len(whole) <= WIDTH:
                yield whole
            else:
                yield f"{indent}{field.name} {{"
                yield from _lines(item, indent + "  ")
                yield f"{indent}}}"


def text_of(message: Any, comment: str = "") -> str:
    """The text form of a message, below the comment: one line per field, and per message that fits on one
    line."""
    head = [f"# {line}".rstrip() for line in comment.strip().splitlines()]
    return "\n".join([*head, *_lines(message)]) + "\n"

"""Reads nets from prototxts and writes messages as readable prototxt."""
from __future__ import annotations

import os
from typing import Any, Iterator, Union

from google.protobuf import text_format

from . import _caffe
from .net_spec import is_repeated
from .proto import caffe_pb2

WIDTH = 100


def read_net(net: Any, lenient: bool = False) -> caffe_pb2.NetParameter:
    """The caffe_pb2.NetParameter of a prototxt of any Caffe, in the current format, with includes,
    blocks and defaults written out (docs/short_nets.md).

    net: the name of a prototxt, a NetParameter or a NetSpec. lenient: fields that this version does
    not know are left out, with a warning. Raises IoError for a file that cannot be read,
    InvalidArgument with the line of a mistake.
    """
    if hasattr(net, "to_proto"):
        net = net.to_proto()
    return caffe_pb2.NetParameter.FromString(_caffe._read_net(net, lenient))


def expanded_text(file: Union[str, "os.PathLike[str]"], is_solver: bool = False) -> str:
    """The text of a net's prototxt, or a solver's, with includes, blocks and defaults written out.
    Loads no plug-ins. Raises OSError for a file that is not there, and as read_net."""
    os.stat(file)
    return _caffe._expanded_text(file, is_solver).decode("utf-8", "replace")


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

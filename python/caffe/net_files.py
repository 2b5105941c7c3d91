"""Reads nets from prototxts, short ones as well (docs/short_nets.md)."""
from __future__ import annotations

import os
from typing import Any, Union

from . import _caffe
from .proto import caffe_pb2


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

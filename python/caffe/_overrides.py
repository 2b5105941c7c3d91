"""Converts Python values to overrides of a solver's definition, as `caffe train --set` takes them."""
import difflib
import numbers
from collections.abc import Mapping

import numpy as np

from ._caffe import InvalidArgument


def _word(path, value):
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    raise InvalidArgument(f"set: {path} is {value!r:.80}; give a number, a string, True, False, or a list of them")


def _text(path, value):
    if isinstance(value, np.ndarray) and value.ndim <= 1:
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return _word(path, value)
    words = [_word(path, item) for item in value]
    split = [word for word in words if "," in word]
    if split:
        raise InvalidArgument(f"set: an element of {path} is {split[0]!r}, and a comma would end it; "
                              f"set elements by their numbers: {path}[0]")
    return ",".join(words)


def assignments(changes, fields, options):
    """Overrides in the extension's format: a list of b"path=value".

    changes: a dict from paths ("layer[conv1].convolution_param.num_output") to values, or None.
    fields: overrides given as keywords of a call, whose own options are `options`. Raises TypeError
    for a keyword that looks like a misspelt option, InvalidArgument for values that no field takes.
    """
    from .proto import caffe_pb2
    if changes is not None and not isinstance(changes, Mapping):
        raise TypeError(f"set is {changes!r:.80}; give a dict from fields to values, e.g. {{'base_lr': 0.1}}")
    known = caffe_pb2.SolverParameter.DESCRIPTOR.fields_by_name
    for name in fields:
        close = difflib.get_close_matches(name, [*options, *known], 1)
        if name not in known and close and close[0] in options:
            raise TypeError(f"unexpected keyword {name!r}; did you mean {close[0]!r}?")
    twice = fields.keys() & (changes or {}).keys()
    if twice:
        raise TypeError(f"{min(twice)!r} is given twice: in set, and as a keyword")
    texts = []
    # The solver's own fields come first: one of them may name the net that others change.
    for path, value in {**fields, **(changes or {})}.items():
        if not isinstance(path, str):
            raise TypeError(f"set: {path!r:.80} is not a name of a field")
        texts.append(f"{path}={_text(path, value)}".encode("utf-8", "surrogateescape"))
    return texts

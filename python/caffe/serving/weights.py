"""The weights of a net that is given without them."""
import os
import shlex
import sys

from .. import InvalidArgument

_KINDS = (".caffemodel", ".caffemodel.h5")


def weights_of(net, given):
    """The file with a net's weights: the given one, or the one in the same folder that has its name, as net.caffemodel has that of
    net.prototxt; "" if there is none.

    Raises InvalidArgument if there are two of the name.
    """
    stem, kind = os.path.splitext(net)
    if given or kind == ".caffemodel":  # a net in that form has its weights in itself
        return given
    found = [stem + one for one in _KINDS if os.path.isfile(stem + one)]
    if len(found) > 1:
        raise InvalidArgument(f"{net}: {' and '.join(found)} both have its name; move the wrong one away, or give the right one: "
                              f"caffe serve {shlex.quote(net)} --weights={shlex.quote(found[0])}")
    if found:
        print(f"{net}: takes the weights {found[0]}", file=sys.stderr, flush=True)
    return found[0] if found else ""

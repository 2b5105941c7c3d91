"""Registers rewrites by name."""

_REWRITES = {"onnx": {}, "caffe": {}}


class Rewrite:
    """A rewrite of some operators: its name, a sentence that describes it, and the function."""

    def __init__(self, operators, function):
        self.operators, self.function = operators, function
        self.name = function.__name__
        self.text = function.__doc__.strip().splitlines()[0].rstrip(".")


def rewrite(*operators, of="onnx"):
    """Registers a `function(node, onnx)` that rewrites nodes of these operators, under the function's name. The first line of its
    docstring appears in reports. of: "caffe" for layers of these types; one name may rewrite both."""
    def register(function):
        _REWRITES[of][function.__name__] = Rewrite(operators, function)
        return function
    return register


def rewrite_of(name, of="onnx"):
    return _REWRITES[of].get(name)


def rewrite_names(of="onnx"):
    return sorted(_REWRITES[of])

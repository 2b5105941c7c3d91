"""Which function rewrites which operators, by name."""

_REWRITES = {}


class Rewrite:
    """A rewrite of some operators: name, what it does in a sentence, the function."""

    def __init__(self, operators, function):
        self.operators, self.function = operators, function
        self.name = function.__name__
        self.text = function.__doc__.strip().splitlines()[0].rstrip(".")


def rewrite(*operators):
    """Decorator of `function(node, onnx)` that rewrites nodes of these operators. Its name is the rewrite's, the first line of
    its docstring what a report says."""
    def register(function):
        _REWRITES[function.__name__] = Rewrite(operators, function)
        return function
    return register


def rewrite_of(name):
    return _REWRITES.get(name)


def rewrite_names():
    return sorted(_REWRITES)

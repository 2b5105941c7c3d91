"""Limits of an operator, which a profile can state in addition to its name; each is a key in the profile's `operators`.

    "operators": {"Conv": {"most": {"strides": 63}, "width": 4096}}

A limit is a function of the node and of the value in the file. It returns an error text, or None.
"""

_LIMITS = {}


def limit(form):
    """Registers a limit under the function's name. `form`: the type of its value in the file."""
    def register(function):
        _LIMITS[function.__name__] = (form, function)
        return function
    return register


def limit_names():
    return sorted(_LIMITS)


def wrong_value(name, value):
    """Why the file's limit for an operator is invalid; None if it is valid."""
    if name not in _LIMITS:
        return f"there is no limit of this name; there are {', '.join(limit_names())}"
    form = _LIMITS[name][0]
    if isinstance(value, form) and not isinstance(value, bool):
        return None
    return f"is {value!r}; it must be {'a number' if form is int else 'a table'}"


def problems(node, limits):
    """Error texts for the limits that the node exceeds."""
    found = (_LIMITS[name][1](node, value) for name, value in limits.items())
    return [text for text in found if text]


@limit(int)
def batch(node, most):
    """Largest axis 0 of the first input."""
    shape = node.shape(0)
    if shape and shape[0] is not None and shape[0] > most:
        return f"a batch of {shape[0]}, and the chip takes {most}: --batch {most}"
    return None


@limit(int)
def width(node, most):
    """Largest last axis of the first input, if it is an image."""
    shape = node.shape(0)
    if shape and len(shape) == 4 and shape[3] is not None and shape[3] > most:
        return f"an image {shape[3]} wide, and the chip takes {most}"
    return None


@limit(dict)
def most(node, numbers):
    """Largest numbers of attributes."""
    for name, largest in numbers.items():
        given = node.attributes.get(name, [])
        given = given if isinstance(given, list) else [given]
        if any(number > largest for number in given):
            return f"{name} {given}, and the chip takes {largest}"
    return None


@limit(dict)
def values(node, choices):
    """Allowed values of attributes, if the node has these attributes."""
    for name, allowed in choices.items():
        given = node.attributes.get(name)
        if given is not None and given not in allowed:
            return f"{name} {given}, and the chip takes {', '.join(map(str, allowed))}"
    return None


@limit(int)
def padded_kernel(node, least):
    """Smallest kernel of a convolution that may have padding."""
    kernel, pads = node.attributes.get("kernel_shape"), node.attributes.get("pads", [])
    if kernel and max(kernel) < least and any(pads):
        return f"a kernel of {'x'.join(map(str, kernel))} with padding, which it computes wrongly"
    return None


@limit(int)
def joint_axes(node, first):
    """First axis that a reduction along several axes may include."""
    axes = node.axes()
    if axes is not None and len(axes) > 1 and min(axes) < first:
        return f"axes {axes} at once, which it computes wrongly"
    return None

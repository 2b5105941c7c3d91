"""Guards objects whose construction failed: debuggers and tracebacks may still hold references to them."""


def _refuse(self, name):
    if name in ("__class__", "__dict__", "__doc__"):
        return object.__getattribute__(self, name)
    raise RuntimeError(f"this {type(self).__mro__[1].__name__} was not made: its constructor raised an error")


def guard_construction(construct):
    """Wraps `construct`, an extension's __init__. After it fails the object has no attributes and its repr
    says that it was not constructed.

    Such an object has no C++ object, so any access by the extension would read invalid memory.
    """
    def __init__(self, *args, **kwargs):
        try:
            construct(self, *args, **kwargs)
        except BaseException:
            own = type(self)
            self.__class__ = type("Unmade" + own.__name__, (own,), {
                "__slots__": (), "__getattribute__": _refuse,
                "__repr__": lambda _: f"<caffe.{own.__name__} that was not made>"})
            raise

    __init__.__doc__ = construct.__doc__
    return __init__

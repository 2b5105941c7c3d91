"""Objects whose construction failed, of which debuggers and tracebacks still hold a reference."""


def _refuse(self, name):
    if name in ("__class__", "__dict__", "__doc__"):
        return object.__getattribute__(self, name)
    raise RuntimeError(f"this {type(self).__mro__[1].__name__} was not made: its constructor raised an error")


def guard_construction(construct):
    """`construct`, an extension's __init__, after whose failure the object has no attributes and shows
    itself as unmade.

    There is no C++ object behind it then, and the extension would read memory that is none.
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

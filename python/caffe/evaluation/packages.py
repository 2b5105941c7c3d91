"""Imports packages that an evaluation needs but `import caffe` does not."""
import importlib

from .. import Unsupported

_INSTALL = {"sklearn": ("scikit-learn", "python3-sklearn"), "jinja2": ("jinja2", "python3-jinja2"), "PIL": ("pillow", "python3-pil")}


def need(module):
    """The imported module. Raises Unsupported, with the command that installs it, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pip, debian = _INSTALL[module.partition(".")[0]]
        raise Unsupported(f"this needs the package {pip}, which this Python cannot import ({error}): pip install {pip}, "
                          f"or on Debian and Ubuntu apt-get install {debian}") from None

"""Packages that some commands need and `import caffe` does not, and the commands that install them."""
import importlib
import os
import sys
import sysconfig

_PYPI = {"sklearn": ["scikit-learn"], "PIL": ["pillow"], "torch": ["torch", "onnxscript"]}  # of modules with other names
_DEBIAN = {"jinja2": "python3-jinja2", "numpy": "python3-numpy", "pillow": "python3-pil", "protobuf": "python3-protobuf",
           "pydot": "python3-pydot", "scikit-learn": "python3-sklearn", "scipy": "python3-scipy"}  # all that are new enough
# In an environment that one command's error advises, all other commands must run, too.
OF_ALL_COMMANDS = ("numpy", "protobuf", "pillow", "scikit-learn", "jinja2", "onnx", "onnxruntime", "pycocotools")


def _refuses_pip():
    """True if this interpreter's distribution forbids pip outside of virtual environments (PEP 668)."""
    return sys.prefix == sys.base_prefix and os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))


def install_command(*packages):
    """The command that installs packages, named as on PyPI, for this interpreter. Where pip would refuse them, it is Debian's
    command if Debian has them, otherwise one that makes a virtual environment with the packages of all commands and these."""
    if not _refuses_pip():
        return f"{sys.executable} -m pip install {' '.join(packages)}"
    if all(name in _DEBIAN for name in packages):
        return f"apt-get install {' '.join(_DEBIAN[name] for name in packages)}"
    names = " ".join(dict.fromkeys([*OF_ALL_COMMANDS, *packages]))
    # Without the system's packages: NumPy of PyPI breaks those that were compiled for an older one, such as Debian's SciPy.
    return (f"{sys.executable} -m venv ~/cortado-venv && ~/cortado-venv/bin/pip install {names} && "
            "export PYTHON=~/cortado-venv/bin/python3")


def is_missing_package(error):
    """True if an ImportError is of a package of others, not of a mistake in this one."""
    return _package_of(error) not in ("", "caffe")


def _package_of(error):
    return (error.name or "").partition(".")[0]


def missing(error, *packages, user="this"):
    """The Unsupported to raise for an ImportError: with the missing package, and the command that installs it and `packages`."""
    from ._caffe import Unsupported  # here, because _checkout imports this module before it has found the compiled one

    name = _package_of(error)
    if name in sys.stdlib_module_names:
        return Unsupported(f"{user} needs the module {name} of Python, which {sys.executable} was built without ({error}): run another "
                           "interpreter, as in PYTHON=/usr/bin/python3")
    needed = list(dict.fromkeys([*_PYPI.get(name, [name]), *packages]))
    return Unsupported(f"{user} needs the package {needed[0]}, which this Python cannot import ({error}): {install_command(*needed)}")


def need(module, user="this"):
    """The imported module. Raises Unsupported, with the command that installs it for `user`, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        # Not always with a name: a compiled part that cannot be loaded has none.
        raise missing(ImportError(str(error), name=module), user=user) from None

"""Packages that some commands need and `import caffe` does not, and the commands that install them."""
import importlib
import os
import sys
import sysconfig

_PYPI = {"sklearn": ["scikit-learn"], "PIL": ["pillow"], "torch": ["torch", "onnxscript"]}  # of modules with other names
_DEBIAN = {"jinja2": "python3-jinja2", "numpy": "python3-numpy", "pillow": "python3-pil", "protobuf": "python3-protobuf",
           "pydot": "python3-pydot", "scikit-learn": "python3-sklearn", "scipy": "python3-scipy"}  # all that are new enough


def _refuses_pip():
    """True if this interpreter's distribution forbids pip outside of virtual environments (PEP 668)."""
    return sys.prefix == sys.base_prefix and os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))


def install_command(*packages):
    """The command that installs packages, named as on PyPI, for this interpreter. Where pip would refuse them, it is Debian's
    command if Debian has them, otherwise one that makes a virtual environment."""
    names = " ".join(packages)
    if not _refuses_pip():
        return f"{sys.executable} -m pip install {names}"
    if all(name in _DEBIAN for name in packages):
        return f"apt-get install {' '.join(_DEBIAN[name] for name in packages)}"
    # Without the system's packages: NumPy of PyPI breaks those that were compiled for an older one.
    return (f"{sys.executable} -m venv ~/cortado-venv && ~/cortado-venv/bin/pip install numpy protobuf {names} && "
            "export PYTHON=~/cortado-venv/bin/python3")


def need(module, user="this"):
    """The imported module. Raises Unsupported, with the command that installs it for `user`, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        from ._caffe import Unsupported  # here, because _checkout imports this module before it has found the compiled one

        name = module.partition(".")[0]
        packages = _PYPI.get(name, [name])
        raise Unsupported(f"{user} needs the package {packages[0]}, which this Python cannot import ({error}): "
                          f"{install_command(*packages)}") from None

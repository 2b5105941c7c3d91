"""How ONNX's operators are read: a module for each family, all of which are imported here."""
import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

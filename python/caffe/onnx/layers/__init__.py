"""How layers are written to ONNX: a module for each family of types, all of which are imported here."""
import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

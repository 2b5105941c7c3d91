"""Writes layers to ONNX: one module per family of layer types. All modules are imported here."""
import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

"""Rewrites: replace nodes by equivalent nodes. Profiles name them; one module per family, all imported here.

    @rewrite("Abs")
    def abs_as_max(node, onnx):
        "Abs as Max of both signs."
        return onnx.op("Max", node.inputs[0], onnx.scaled(node.inputs[0], -1))

`node` is a fitting.NodeView, `onnx` the Builder. The function returns the tensors that replace the node's outputs. If it does not
fit the node, it returns None before writing anything.

Rewrites of layers, for toolchains that read Caffe's files, are in caffe_layers.py. There `node` is a caffe_files.LayerNode and
the second argument a caffe_files.Draft.
"""
import importlib
import pkgutil

from .registry import rewrite, rewrite_names, rewrite_of

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["rewrite", "rewrite_names", "rewrite_of"]

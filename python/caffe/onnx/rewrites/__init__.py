"""Rewrites: nodes as other nodes that compute the same. Profiles name them; a module for each family, all imported here.

    @rewrite("Abs")
    def abs_as_max(node, onnx):
        "Abs as Max of both signs."
        return onnx.op("Max", node.inputs[0], onnx.scaled(node.inputs[0], -1))

`node` is a fitting.NodeView, `onnx` the Builder. It returns the tensors in the place of the node's outputs, or None, before
it has written anything, where it does not fit the node.

Rewrites of layers, for toolchains that read Caffe's files, are in caffe_layers.py. There `node` is a caffe_files.LayerNode and
the second argument a caffe_files.Draft.
"""
import importlib
import pkgutil

from .registry import rewrite, rewrite_names, rewrite_of

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["rewrite", "rewrite_names", "rewrite_of"]

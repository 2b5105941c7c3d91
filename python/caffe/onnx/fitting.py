"""Makes a graph fit a profile: rewrites operators that the chip does not support, and lists the remaining problems."""
from collections import OrderedDict

import onnx as onnx_package
from onnx import helper

from .rewrites import rewrite_of

# The result of a rewrite may itself need a rewrite.
_ROUNDS = 6


class NodeView:
    """A node as limits and rewrites see it. kind: its operator; layer: name of the layer that wrote it; inputs and outputs:
    names of tensors; attributes: values by name."""

    def __init__(self, node, graph):
        self._graph = graph
        self.kind, self.inputs, self.outputs = node.op_type, list(node.input), list(node.output)
        self.layer = graph.builder.layers.get(node.name, "")
        self.attributes = {attribute.name: _value(attribute) for attribute in node.attribute}

    def shape(self, index):
        """The shape of an input; None for an unknown extent, or for an unknown shape."""
        return self._graph.shapes.get(self.inputs[index]) if index < len(self.inputs) else None

    def output_shape(self, index):
        return self._graph.shapes.get(self.outputs[index])

    def constant(self, index):
        """The array of an input if it is a weight, else None."""
        return self._graph.builder.weights.get(self.inputs[index]) if index < len(self.inputs) else None

    def axes(self):
        """The axes of a reduction, from an attribute or a constant input; None for all axes, or if they are unknown."""
        axes = self.attributes.get("axes")
        given = self.constant(1) if axes is None else axes
        return None if given is None else [int(axis) for axis in given]


def _value(attribute):
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return list(value) if isinstance(value, (list, tuple)) else value


class _Graph:
    """The builder's nodes, with the shapes of their tensors."""

    def __init__(self, builder, inputs):
        self.builder = builder
        self.shapes = {name: array.shape for name, array in builder.weights.items()}
        model = builder.skeleton(inputs)
        for value in onnx_package.shape_inference.infer_shapes(model, data_prop=True).graph.value_info:
            tensor = value.type.tensor_type
            if tensor.HasField("shape"):
                self.shapes[value.name] = tuple(dim.dim_value if dim.HasField("dim_value") else None
                                                for dim in tensor.shape.dim)
        self.shapes.update(inputs)

    def view(self, node):
        return NodeView(node, self)


class Fit:
    """The result of fit(). rewritten: sentences by layer; problems: (layer, reason) of nodes that the chip does not support."""

    def __init__(self):
        self.rewritten, self.problems = OrderedDict(), []

    def add_rewrite(self, layer, text):
        texts = self.rewritten.setdefault(layer, [])
        if text not in texts:
            texts.append(text)


def fit(builder, profile, inputs):
    """Rewrites the builder's nodes for a profile; inputs: shapes of the model's inputs by name."""
    result = Fit()
    for _ in range(_ROUNDS):
        if not _rewrite_round(_Graph(builder, inputs), profile, result):
            break
    graph = _Graph(builder, inputs)
    for view in map(graph.view, builder.nodes):
        found = [(view.layer, text) for text in profile.problems(view)]
        result.problems.extend(pair for pair in found if pair not in result.problems)
    return result


def _rewrite_round(graph, profile, result):
    builder = graph.builder
    nodes, builder.nodes = builder.nodes, []
    count = 0
    for node in nodes:
        rewrite = _rewritten(graph.view(node), builder, profile)
        if rewrite is None:
            builder.nodes.append(node)
        else:
            result.add_rewrite(graph.view(node).layer, rewrite.text)
            count += 1
    return count


def _rewritten(view, builder, profile):
    """Applies the first suitable rewrite to a node; returns the rewrite, or None."""
    names = [*profile.always, *(profile.rewrites if profile.problems(view) else [])]
    builder.layer = view.layer
    first = len(builder.nodes)
    for rewrite in map(rewrite_of, names):
        if view.kind not in rewrite.operators:
            continue
        tensors = rewrite.function(view, builder)
        if tensors is not None:
            tensors = [tensors] if isinstance(tensors, str) else tensors
            builder.rename(dict(zip(tensors, view.outputs)), first)
            return rewrite
    return None

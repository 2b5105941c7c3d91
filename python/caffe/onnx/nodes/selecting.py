"""The largest values, and their positions."""
from .registry import reads


@reads("ArgMax")
def arg_max(node):
    axis = node.axis(node.get("axis", 0))
    if node.get("keepdims", 1):
        node.layer("ArgMax", argmax_param={"axis": axis})
        return
    kept = node.scratch("kept")
    node.layer("ArgMax", tops=[kept], argmax_param={"axis": axis})
    node.reshape(kept, node.outputs[0], node.top_shape)


@reads("TopK")
def top_k(node):
    """A layer for the values and a layer for their positions, whichever are read."""
    node.require(node.get("largest", 1) and node.get("sorted", 1), "the smallest values, or values in any order")
    count, axis = int(node.weights(1, "number of values").item()), node.axis(node.get("axis", -1))
    for are_values, top in zip((True, False), node.outputs):
        if top and (node.source.readers[top] or top in node.source.outputs):
            node.layer("ArgMax", tops=[top], argmax_param={"axis": axis, "top_k": count, "out_max_val": are_values})

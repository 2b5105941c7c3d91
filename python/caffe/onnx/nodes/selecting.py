"""Selections: the largest values and their positions, elements that a condition chooses, and updates at positions."""
from .registry import reads


@reads("ArgMax")
def arg_max(node):
    axis = node.axis(node.get("axis", 0))
    if node.get("keepdims", 1):
        node.layer("ArgMax", argmax_param={"axis": axis})
        return
    kept = node.scratch("kept")
    node.layer("ArgMax", tops=[kept], argmax_param={"axis": axis})
    node.reshape(kept, node.outputs[0], node.top_shape, keeps_items=axis != 0)


@reads("TopK")
def top_k(node):
    node.require(node.get("sorted", 1), "values in any order")
    count, axis = int(node.weights(1, "number of values").item()), node.axis(node.get("axis", -1))
    values = node.outputs[0] or node.scratch("values")
    places = node.outputs[1:2] if len(node.outputs) > 1 and node.is_read(node.outputs[1]) else []
    node.layer("TopK", tops=[values, *places], top_k_param={"axis": axis, "k": count, "largest": bool(node.get("largest", 1))})
    unread = [] if node.is_read(values) else [values]
    if unread:
        node.layer("Silence", bottoms=unread, tops=[])


@reads("Where")
def where(node):
    node.layer("Where", bottoms=[node.blob_of(k) for k in range(3)])


@reads("ScatterElements", "Scatter")
def scatter(node):
    reduction, axis = node.get("reduction", "none"), node.axis(node.get("axis", 0))
    node.require(reduction in ("none", "add"), f"a reduction by {reduction}")
    data, indices = node.shape(), node.shape(1)
    node.require(all(a == b or k == axis for k, (a, b) in enumerate(zip(data, indices))),
                 f"indices of shape {indices} for data of shape {data}, which differ along other axes than {axis}")
    node.layer("Scatter", bottoms=[node.blob_of(k) for k in range(3)], scatter_param={"axis": axis, "add": reduction == "add"})

"""Operators that only rearrange elements."""
import numpy as np

from .pooling import pads_a_pooling
from .registry import reads


@reads("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(node):
    if node.shape() == node.top_shape:
        node.alias()
        return
    if len(node.shape()) > 1 and node.top_shape == (node.shape()[0], int(np.prod(node.shape()[1:]))):
        node.layer("Flatten")
        return
    node.reshape(node.inputs[0], node.outputs[0], node.top_shape)


@reads("Transpose")
def transpose(node):
    axes = len(node.shape())
    order = list(node.get("perm", range(axes)[::-1]))
    node.layer("Permute", permute_param={"order": order})


@reads("DepthToSpace")
def depth_to_space(node):
    size, mode = node.get("blocksize"), node.get("mode", "DCR")
    if mode == "CRD":
        node.layer("PixelShuffle", pixel_shuffle_param={"upscale_factor": size})
        return
    node.layer("Reorg", reorg_param={"stride": size, "reverse": True})


@reads("Concat")
def concat(node):
    bottoms = [node.blob_of(k) for k in range(len(node.inputs))]
    axis = node.get("axis")
    node.layer("Concat", bottoms=bottoms, concat_param={"axis": axis % len(node.top_shape)})


@reads("Split")
def split(node):
    axis = node.axis(node.get("axis", 0))
    extents = [node.source.shape(name)[axis] for name in node.outputs]
    if len(extents) == 1:
        node.alias()
        return
    node.layer("Slice", tops=node.outputs, slice_param={"axis": axis, "slice_point": np.cumsum(extents)[:-1].tolist()})


@reads("Slice")
def slice_(node):
    """A range along each axis; cuts off the parts before and after it."""
    if "starts" in node.attributes:
        starts, ends = node.get("starts"), node.get("ends")
        axes, steps = node.get("axes", range(len(starts))), [1] * len(starts)
    else:
        starts, ends = (node.weights(k, "extents").tolist() for k in (1, 2))
        axes = node.weights(3, "axes").tolist() if node.has(3) else range(len(starts))
        steps = node.weights(4, "steps").tolist() if node.has(4) else [1] * len(starts)
    shape, bottom = node.shape(), node.inputs[0]
    parts = [(node.axis(axis), *slice(start, end, step).indices(shape[node.axis(axis)])[:2], step)
             for axis, start, end, step in zip(axes, starts, ends, steps)]
    parts = [part for part in parts if part[1:] != (0, shape[part[0]], 1)]
    if not parts:
        node.alias()
        return
    for number, (axis, start, end, step) in enumerate(parts):
        top = node.outputs[0] if number + 1 == len(parts) else node.scratch(f"part{number}")
        if (start, end, step) == (shape[axis] - 1, -1, -1):
            node.layer("Reverse", bottoms=[bottom], tops=[top], reverse_param={"axis": axis})
        elif step == 1 and end > start:
            _cut(node, bottom, top, axis, (start, end, shape[axis]))
        else:
            places = range(start, end, step)
            node.require(len(places) > 0, "an empty result")
            node.pick(bottom, top, axis, places)
        bottom = top


@reads("Gather")
def gather(node):
    """One position along an axis, or consecutive positions; or rows of weights, items or any positions, by their indices."""
    places, axis = node.constant(1), node.axis(node.get("axis", 0))
    extent = node.shape()[axis]
    if places is None:
        _by_index(node, axis)
        return
    first = int(places.ravel()[0]) % extent
    if not np.array_equal(places.ravel() % extent, first + np.arange(places.size)):
        node.pick(node.inputs[0], node.outputs[0], axis, places)
        return
    cut = node.outputs[0] if places.ndim == 1 else node.scratch("cut")
    if places.size == extent:
        cut = node.inputs[0]
    else:
        _cut(node, node.inputs[0], cut, axis, (first, first + places.size, extent))
    if cut == node.inputs[0] and places.ndim == 1:
        node.alias()
    elif cut != node.outputs[0]:
        node.reshape(cut, node.outputs[0], node.top_shape, keeps_items=axis != 0)


def _by_index(node, axis):
    rows = node.constant(0)
    if rows is not None and rows.ndim == 2 and axis == 0:
        node.layer("Embed", bottoms=[node.inputs[1]], blobs=[rows],
                   embed_param={"input_dim": rows.shape[0], "num_output": rows.shape[1], "bias_term": False})
    elif rows is None and axis == 0 and len(node.shape(1)) == 1:
        node.layer("BatchReindex", bottoms=node.inputs[:2])
    else:
        node.layer("Gather", bottoms=[node.blob_of(0), node.inputs[1]], gather_param={"axis": axis})


def _cut(node, bottom, top, axis, part):
    start, end, extent = part
    points = [point for point in (start, end) if 0 < point < extent]
    tops = [node.scratch(f"before{axis}")] * (start > 0) + [top] + [node.scratch(f"behind{axis}")] * (end < extent)
    node.layer("Slice", bottoms=[bottom], tops=tops, slice_param={"axis": axis, "slice_point": points})
    node.layer("Silence", bottoms=[name for name in tops if name != top], tops=[])


@reads("Pad")
def pad(node):
    pads = list(node.get("pads", [])) or node.weights(1, "extents").tolist()
    value = node.weights(2, "value").item() if node.has(2) else node.get("value", 0.0)
    mode, rank = node.get("mode", "constant"), len(node.shape())
    axes = [axis % rank for axis in (node.weights(3, "axes").tolist() if node.has(3) else range(rank))]
    begins, ends = ([dict(zip(axes, part)).get(axis, 0) for axis in range(rank)] for part in (pads[:len(axes)], pads[len(axes):]))
    if mode == "constant" and any(pads) and pads_a_pooling(node, begins, ends, value):
        return
    shape, bottom = list(node.shape()), node.inputs[0]
    padded = [axis for axis in range(rank) if begins[axis] or ends[axis]]
    if not padded:
        node.alias()
    for axis in padded:
        top = node.outputs[0] if axis == padded[-1] else node.scratch(f"padded{axis}")
        places = np.arange(-begins[axis], shape[axis] + ends[axis])
        if mode == "constant" and min(begins[axis], ends[axis]) >= 0:
            _surround(node, bottom, top, axis, [[*shape[:axis], extent, *shape[axis + 1:]] for extent in (begins[axis], ends[axis])], value)
        else:
            node.require(len(places) > 0, "an empty result")
            node.require(mode in _BEYOND or (places.min() >= 0 and places.max() < shape[axis]),
                         f"padding by mode {mode}, which also cuts off")
            node.pick(bottom, top, axis, _BEYOND.get(mode, lambda k, _: k)(places, shape[axis]))
        shape[axis], bottom = len(places), top


# The position that is read for position k of an axis, which may lie outside of it.
_BEYOND = {
    "edge": lambda k, extent: k.clip(0, extent - 1),
    "wrap": lambda k, extent: k % extent,
    "reflect": lambda k, extent: (extent - 1) - np.abs((extent - 1) - k % max(2 * extent - 2, 1)),
}


def _surround(node, bottom, top, axis, shapes, value):
    """Puts blobs of these two shapes, which have one value, before and after a blob."""
    before, after = ([node.hold(np.full(shape, value, np.float32), f"{where}{axis}")] if shape[axis] else []
                     for where, shape in zip(("before", "after"), shapes))
    node.layer("Concat", bottoms=[*before, bottom, *after], tops=[top], concat_param={"axis": axis})


@reads("Tile", "Expand")
def tile(node):
    node.weights(1, "repeats" if node.operator == "Tile" else "extents")
    shape, wanted = node.shape(), node.top_shape
    bottom, shape = node.blob_of(0), (1,) * (len(wanted) - len(shape)) + shape
    repeats = [into // extent for into, extent in zip(wanted, shape)]
    axes = [axis for axis, count in enumerate(repeats) if count != 1]
    if len(node.shape()) != len(wanted):
        flat = node.scratch("shaped") if axes else node.outputs[0]
        node.reshape(bottom, flat, shape)
        bottom = flat
    elif not axes:
        node.alias()
    for axis in axes:
        top = node.outputs[0] if axis == axes[-1] else node.scratch(f"repeated{axis}")
        node.layer("Tile", bottoms=[bottom], tops=[top], tile_param={"axis": axis, "tiles": repeats[axis]})
        bottom = top

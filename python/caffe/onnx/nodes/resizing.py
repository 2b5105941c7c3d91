"""Resizing of images."""
import numpy as np

from .registry import reads

_ROUNDINGS = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@reads("Resize", "Upsample")
def resize(node):
    shape, top = node.shape(), node.top_shape
    node.require(len(shape) == 4 and shape[:2] == top[:2], f"resizing from {shape} to {top}")
    mode, centres = node.get("mode", "nearest"), node.get("coordinate_transformation_mode", "half_pixel")
    rounding = node.get("nearest_mode", "round_prefer_floor")
    if len(node.inputs) == 2 or node.operator == "Upsample":  # before opset 11
        centres, rounding = "asymmetric", "floor"
    if mode == "nearest":
        _nearest(node, centres, rounding)
        return
    is_linear = mode == "linear" and not node.get("antialias", 0) and centres in ("align_corners", "half_pixel", "pytorch_half_pixel")
    node.require(is_linear and (centres != "pytorch_half_pixel" or 1 not in top[2:]), f"resizing by mode {mode}, {centres}")
    aligned = {} if centres == "align_corners" else {"align_corners": False}
    node.layer("Interp", interp_param={"height": top[2], "width": top[3], **aligned})


def _nearest(node, centres, rounding):
    shape, top = node.shape(), node.top_shape
    places = [_places(node, size, to, centres, rounding) for size, to in zip(shape[2:], top[2:])]
    factors = [to // size for size, to in zip(shape[2:], top[2:])]
    is_whole = [size * factor for size, factor in zip(shape[2:], factors)] == list(top[2:])
    if is_whole and all(np.array_equal(place, np.arange(len(place)) // factor) for place, factor in zip(places, factors)):
        scale = {"scale": factors[0]} if factors[0] == factors[1] else {"scale_h": factors[0], "scale_w": factors[1]}
        node.layer("Upsample", upsample_param=scale)
        return
    bottom = node.inputs[0]
    for axis, place in ((2, places[0]), (3, places[1])):
        result = node.outputs[0] if axis == 3 else node.scratch("rows")
        node.pick(bottom, result, axis, place)
        bottom = result


def _places(node, size, outputs, centres, rounding):
    """The pixel that each output copies."""
    steps = np.arange(outputs)
    positions = {
        "asymmetric": steps * size / outputs,
        "half_pixel": (steps + 0.5) * size / outputs - 0.5,
        "pytorch_half_pixel": (steps + 0.5) * size / outputs - 0.5 if outputs > 1 else np.zeros(1),
        "align_corners": steps * (size - 1) / max(outputs - 1, 1),
    }
    node.require(centres in positions, f"nearest pixels by {centres}")
    return _ROUNDINGS[rounding](positions[centres]).clip(0, size - 1).astype(np.int64)

"""Resizing of images."""
from .registry import reads


@reads("Resize", "Upsample")
def resize(node):
    shape, top = node.shape(), node.top_shape
    node.require(len(shape) == 4 and shape[:2] == top[:2], f"resizing from {shape} to {top}")
    mode, centres = node.get("mode", "nearest"), node.get("coordinate_transformation_mode", "half_pixel")
    if node.operator == "Upsample":
        centres = "asymmetric"
    factors = [to // size for size, to in zip(shape[2:], top[2:])]
    if mode == "nearest" and [size * factor for size, factor in zip(shape[2:], factors)] == list(top[2:]):
        # Each pixel is repeated, whichever convention for centres applies.
        floor = node.get("nearest_mode", "round_prefer_floor") == "floor"
        node.require(centres == "half_pixel" or (centres == "asymmetric" and (floor or node.operator == "Upsample")),
                     f"nearest pixels by {centres}, {node.get('nearest_mode', 'round_prefer_floor')}")
        if factors[0] == factors[1]:
            node.layer("Upsample", upsample_param={"scale": factors[0]})
        else:
            node.layer("Upsample", upsample_param={"scale_h": factors[0], "scale_w": factors[1]})
        return
    node.require(mode == "linear" and centres == "align_corners", f"resizing by mode {mode}, {centres}")
    node.layer("Interp", interp_param={"height": top[2], "width": top[3]})

"""Maps coordinates between blobs, through convolutions, poolings and crops.

A layer maps coordinates by y = a * x + b along each spatial axis, from its bottom to its top.
`coord_map(fn)` is the map of one layer and `coord_map_from_to` the map between two blobs of a
NetSpec. `crop` makes the Crop layer that aligns one blob with another, which nets for segmentation
need after upsampling.
"""
from typing import Any, Iterable, Mapping, NamedTuple

import numpy as np

from .net_spec import Function, Top, layers as L

# Each value depends only on the value at the same position (LRN and Softmax look along channels).
PASS_THROUGH_LAYERS = frozenset((
    "AbsVal", "BatchNorm", "Bias", "BNLL", "Dropout", "Eltwise", "ELU", "Log", "LRN", "Exp", "MVN", "Power", "ReLU",
    "PReLU", "Scale", "Sigmoid", "Split", "TanH", "Threshold"))


class UndefinedMapException(Exception):
    """The layer's type has no map of coordinates."""


class AxisMismatchException(Exception):
    """Two consecutive layers have different first spatial axes."""


class CropError(ValueError, AssertionError):
    """One blob cannot be cropped to another. Also an AssertionError, because Caffe raises that."""


class CoordMap(NamedTuple):
    """y = a * x + b. axis: the axis before the first spatial one, or None if the layer does not
    restrict it.

    a, b: float arrays with one element for all spatial axes, or one for each.
    """

    axis: int | None
    a: np.ndarray
    b: np.ndarray


IDENTITY = CoordMap(None, np.ones(1), np.zeros(1))


def _options(fn: Function, message: str) -> Mapping[str, Any]:
    return fn.params.get(message, fn.params)


def _array(value: Any) -> np.ndarray:
    return np.array(value, dtype=float, ndmin=1)


def conv_params(fn: Function) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """(channel axis, stride, extent of the dilated window, pad) of a layer with a window.

    Raises UndefinedMapException if the window is the whole image, or is given by fields that end in
    _h and _w.
    """
    options = _options(fn, "pooling_param" if fn.type_name == "Pooling" else "convolution_param")
    legacy = [name for name in options if name in {f"{field}_{side}" for field in ("kernel", "stride", "pad")
                                                   for side in "hw"}]
    if legacy:
        raise UndefinedMapException(f"{fn.type_name}: {', '.join(sorted(legacy))} cannot be mapped; give kernel_size, "
                                    "stride and pad as lists")
    if "kernel_size" not in options:
        raise UndefinedMapException(f"{fn.type_name} without kernel_size has no map between coordinates")
    window = (_array(options["kernel_size"]) - 1) * _array(options.get("dilation", 1)) + 1
    return options.get("axis", 1), _array(options.get("stride", 1)), window, _array(options.get("pad", 0))


def crop_params(fn: Function) -> tuple[int, np.ndarray]:
    """(first axis that is cropped, offset along the cropped axes) of a Crop layer."""
    options = _options(fn, "crop_param")
    return options.get("axis", 2), _array(options.get("offset", 0))


def coord_map(fn: Function) -> CoordMap:
    """The map from the layer's first bottom to its top. Raises UndefinedMapException if there is none."""
    if fn.type_name in ("Convolution", "Pooling", "Im2col"):
        axis, stride, window, pad = conv_params(fn)
        return CoordMap(axis, 1 / stride, (pad - (window - 1) / 2) / stride)
    if fn.type_name == "Deconvolution":
        axis, stride, window, pad = conv_params(fn)
        return CoordMap(axis, stride, (window - 1) / 2 - pad)
    if fn.type_name in PASS_THROUGH_LAYERS:
        return IDENTITY
    if fn.type_name == "Crop":
        axis, offset = crop_params(fn)
        return CoordMap(axis - 1, np.ones(1), -offset)
    raise UndefinedMapException(f"{fn.type_name} has no map between coordinates")


def compose(base_map: CoordMap, next_map: CoordMap) -> CoordMap:
    """The map that applies next_map, then base_map; raises AxisMismatchException."""
    axis1, a1, b1 = base_map
    axis2, a2, b2 = next_map
    if axis1 is not None and axis2 is not None and axis1 != axis2:
        raise AxisMismatchException(f"maps of axis {axis1} and of axis {axis2} cannot be joined")
    return CoordMap(axis2 if axis1 is None else axis1, a1 * a2, a1 * b2 + b1)


def inverse(coord_map: CoordMap) -> CoordMap:
    """The map from the top back to the bottom."""
    axis, a, b = coord_map
    return CoordMap(axis, 1 / a, -b / a)


def _mapped_bottoms(top: Top) -> Iterable[Top]:
    # The second bottom of Crop only gives the size of the result.
    return top.fn.inputs[:1] if top.fn.type_name == "Crop" else top.fn.inputs


def _maps_from_ancestors(top: Top) -> dict[Top, CoordMap]:
    """Maps to the top, for the top itself and each blob it was computed from.

    Nearest blobs come first. If several paths lead to a blob, they are assumed to agree.
    """
    maps = {top: IDENTITY}
    frontier = [top]
    while frontier:
        current = frontier.pop(0)
        try:
            to_top = compose(maps[current], coord_map(current.fn))
        except UndefinedMapException:
            continue
        for bottom in _mapped_bottoms(current):
            if bottom not in maps:
                maps[bottom] = to_top
                frontier.append(bottom)
    return maps


def coord_map_from_to(top_from: Top, top_to: Top) -> CoordMap:
    """The map of coordinates in top_from to coordinates in top_to, by way of the blob both depend on.

    Raises RuntimeError if no spatial layers connect them.
    """
    from_maps = _maps_from_ancestors(top_from)
    for top, to_map in _maps_from_ancestors(top_to).items():
        if top in from_maps:
            return compose(to_map, inverse(from_maps[top]))
    raise RuntimeError("no map between the tops: no chain of spatial layers connects them to a common blob")


def crop(top_from: Top, top_to: Top) -> Top:
    """A Crop layer that cuts top_from to the part that covers top_to.

    Raises CropError if their scales differ, if top_from does not begin before top_to, or if the
    offset is not a whole number.
    """
    axis, a, b = coord_map_from_to(top_from, top_to)
    if not np.allclose(a, 1, rtol=0, atol=1e-6):
        raise CropError(f"crop: the scales differ, by a factor of {a}; cropping only shifts")
    offset = -np.round(b)
    if not np.allclose(-b, offset, rtol=0, atol=1e-6):
        raise CropError(f"crop: the offset {-b} is not a whole number; change a pad or a kernel size")
    if (offset < 0).any():
        raise CropError(f"crop: the offset {-b} is negative; pad the first layer more")
    return L.Crop(top_from, top_to, crop_param={"axis": (1 if axis is None else axis) + 1,
                                                "offset": [int(value) for value in offset]})

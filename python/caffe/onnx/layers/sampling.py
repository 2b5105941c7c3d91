"""Bilinear sampling of images: with GridSample from opset 16 on, else with GatherElements of four neighbours."""
from math import prod

import numpy as np

from ..registry import writes


class _Places:
    """Positions in an image (N, C, H, W), as tensors x and y (N, 1, pixels). Positions outside get the value `fill`. With
    `repeats_edge` the inside extends by one pixel, which repeats the edge."""

    def __init__(self, layer, onnx, x, y, repeats_edge=False):
        self.onnx, self.image, self.repeats_edge = onnx, layer.bottom, repeats_edge
        self.shape, (self.rows, self.columns) = layer.shape, layer.top_shape[2:]
        self.is_inside = onnx.op("And", self._is_inside(x, self.shape[3]), self._is_inside(y, self.shape[2]))
        self.x, self.y = (onnx.where(self.is_inside, place, 0) for place in (x, y))

    def _is_inside(self, place, extent):
        onnx = self.onnx
        is_before = onnx.op("Less", place, onnx.constant(extent))
        if self.repeats_edge:
            return onnx.op("And", is_before, onnx.op("Not", onnx.op("Less", place, onnx.constant(0))))
        return onnx.op("And", is_before, onnx.op("Greater", place, onnx.constant(-1)))

    def read(self, fill):
        onnx, (items, channels) = self.onnx, self.shape[:2]
        values = self._by_grid() if onnx.opset >= 16 else self._by_neighbours()
        values = onnx.where(self.is_inside, onnx.reshape(values, [items, channels, self.rows * self.columns]), fill)
        return onnx.reshape(values, [items, channels, self.rows, self.columns])

    def _by_grid(self):
        onnx = self.onnx
        places = [onnx.scaled(place, 2 / extent, 1 / extent - 1)
                  for place, extent in ((self.x, self.shape[3]), (self.y, self.shape[2]))]
        grid = onnx.op("Transpose", onnx.op("Concat", *places, axis=1), perm=[0, 2, 1])
        grid = onnx.reshape(grid, [self.shape[0], self.rows, self.columns, 2])
        return onnx.op("GridSample", self.image, grid, align_corners=0, mode="linear" if onnx.opset >= 20 else "bilinear",
                       padding_mode="border" if self.repeats_edge else "zeros")

    def _taps(self, place, extent):
        """The pixels before and after a position, and their weights, which are 0 outside of the image."""
        onnx = self.onnx
        low = onnx.op("Floor", place)
        behind = onnx.op("Sub", place, low)
        taps = []
        for pixel, weight in ((low, onnx.scaled(behind, -1, 1)), (onnx.scaled(low, 1, 1), behind)):
            nearest = onnx.clip(pixel, 0.0, extent - 1.0)
            if not self.repeats_edge:
                weight = onnx.op("Mul", weight, onnx.cast(onnx.op("Equal", pixel, nearest), np.float32))
            taps.append((nearest, weight))
        return taps

    def _by_neighbours(self):
        onnx, (items, channels, height, width) = self.onnx, self.shape
        image = onnx.reshape(self.image, [items, channels, height * width])
        size = onnx.integers([items, channels, self.rows * self.columns])
        terms = []
        for row, down in self._taps(self.y, height):
            for column, across in self._taps(self.x, width):
                pixel = onnx.cast(onnx.op("Add", onnx.scaled(row, width), column), np.int64)
                values = onnx.op("GatherElements", image, onnx.op("Expand", pixel, size), axis=2)
                terms.append(onnx.op("Mul", values, onnx.op("Mul", down, across)))
        return onnx.op("Add", onnx.op("Add", *terms[:2]), onnx.op("Add", *terms[2:]))


@writes("FlowWarp")
def flow_warp(layer, onnx):
    items, _, height, width = layer.shape
    x, y = onnx.split(onnx.reshape(layer.bottoms[1], [items, 2, height * width]), 1, [1, 1])
    own_y, own_x = np.divmod(np.arange(height * width), width)
    options = layer.param.flow_warp_param
    places = _Places(layer, onnx, onnx.op("Add", x, onnx.constant(own_x)), onnx.op("Add", y, onnx.constant(own_y)),
                     repeats_edge=True)
    return places.read(np.nan if options.fill_value == options.NOT_A_NUMBER else 0)


@writes("SpatialTransformer")
def spatial_transformer(layer, onnx):
    """The position for output pixel (r, c), in coordinates from -1 to 1: y and x are theta's rows times (r, c, 1)."""
    options, (items, _, height, width) = layer.param.st_param, layer.shape
    rows, columns = layer.top_shape[2:]
    r, c = np.divmod(np.arange(rows * columns), columns)
    base = np.stack([2 * r / rows - 1, 2 * c / columns - 1, np.ones(rows * columns)])
    theta = onnx.reshape(_theta(options, layer, onnx), [items, 2, 3])
    places = onnx.scaled(onnx.op("MatMul", theta, onnx.constant(base)), 1, 1)
    y, x = (onnx.scaled(part, extent / 2) for part, extent in zip(onnx.split(places, 1, [1, 1]), (height, width)))
    return _Places(layer, onnx, x, y).read(0)


def _theta(options, layer, onnx):
    """The 6 elements of theta for each item: from the second bottom, or fixed by options."""
    names = [f"theta_{row}_{column}" for row in (1, 2) for column in (1, 2, 3)]
    fixed = [getattr(options, name) if options.HasField(name) else None for name in names]
    learned = onnx.reshape(layer.bottoms[1], [layer.shape[0], prod(layer.shapes[1][1:])])
    if all(number is None for number in fixed):
        return learned
    picks = np.zeros((fixed.count(None), 6))
    picks[range(fixed.count(None)), [k for k, number in enumerate(fixed) if number is None]] = 1
    return onnx.op("Add", onnx.op("MatMul", learned, onnx.constant(picks)), onnx.constant([number or 0 for number in fixed]))

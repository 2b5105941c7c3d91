"""Features of boxes. Bottom 1 holds rows of (item, xmin, ymin, xmax, ymax)."""
import numpy as np

from ..registry import writes


@writes("ROIPooling")
def roi_pooling(layer, onnx):
    options = layer.param.roi_pooling_param
    boxes = onnx.reshape(layer.bottoms[1], [layer.shapes[1][0], 5])
    return onnx.op("MaxRoiPool", layer.bottom, boxes, pooled_shape=[options.pooled_h, options.pooled_w],
                   spatial_scale=options.spatial_scale)


@writes("ROIAlign")
def roi_align(layer, onnx):
    options = layer.param.roi_align_param
    boxes = onnx.reshape(layer.bottoms[1], [layer.shapes[1][0], 5])
    items, corners = onnx.split(boxes, 1, [1, 4])
    items = onnx.cast(onnx.reshape(items, [layer.shapes[1][0]]), np.int64)
    # From opset 16 on edges are moved by half a pixel unless this is said.
    mode = "output_half_pixel" if onnx.opset >= 16 else None
    return onnx.op("RoiAlign", layer.bottom, corners, items, output_height=options.pooled_h, output_width=options.pooled_w,
                   sampling_ratio=options.sampling_ratio, spatial_scale=options.spatial_scale,
                   coordinate_transformation_mode=mode)

"""Stores the meaning of a net's input and outputs as metadata of an ONNX model: entries of
`metadata_props`, each a name and a JSON text.

    labels      names of the classes, from 0 on
    mean        subtracted from pixels of 0 to 255: one number, or one for each channel
    scale       factor applied after the mean
    channels    "BGR", the order of the channels
    resize      {"mode": "stretch" or "shorter side", "height": H, "width": W}, before the centre is
                cropped; without it images are stretched to the input's size
"""
import json

from ..proto import caffe_pb2

_MODES = {caffe_pb2.ResizeParameter.WARP: "stretch", caffe_pb2.ResizeParameter.FIT_SMALL_SIZE: "shorter side"}


def put(info, model):
    """Adds the entries of a ModelInfo to an onnx.ModelProto. A mean image is omitted, because ONNX has no
    entry for it."""
    entries = {}
    if info.label:
        entries["labels"] = list(info.label)
    if info.mean_value or info.HasField("scale"):
        entries.update(mean=[round(value, 6) for value in info.mean_value] or [0], scale=info.scale, channels="BGR")
    if info.HasField("resize") and info.resize.resize_mode in _MODES:
        entries["resize"] = {"mode": _MODES[info.resize.resize_mode], "height": info.resize.height, "width": info.resize.width}
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=json.dumps(value, ensure_ascii=False))


def take(model):
    """The ModelInfo from such entries; empty if the model has none, or has entries of the same names with
    another meaning."""
    info = caffe_pb2.ModelInfo()
    texts = {entry.key: entry.value for entry in model.metadata_props}
    try:
        entries = {key: json.loads(texts[key]) for key in ("labels", "mean", "scale", "channels", "resize") if key in texts}
        if entries.get("channels", "BGR") != "BGR":
            return info
        info.label.extend(entries.get("labels", []))
        info.mean_value.extend(entries.get("mean", []))
        if "scale" in entries:
            info.scale = entries["scale"]
        if "resize" in entries:
            mode = {name: number for number, name in _MODES.items()}[entries["resize"]["mode"]]
            info.resize.resize_mode = mode
            info.resize.height, info.resize.width = entries["resize"]["height"], entries["resize"]["width"]
    except (KeyError, TypeError, ValueError):
        return caffe_pb2.ModelInfo()
    return info

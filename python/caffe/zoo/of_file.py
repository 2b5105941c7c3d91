"""Makes a net from a file, for `caffe new --net=FILE.prototxt`."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

from ..net_spec import Function, Top
from . import Net
from .common import ONE_CYCLE, Head, Model

_TAKEN = {"label", "loss", "accuracy"}
_SCORES = {"InnerProduct": "inner_product_param", "Convolution": "convolution_param"}


class _Written(Function):
    """A layer exactly as in a file, with its name."""

    def __init__(self, layer: Any, inputs: List[Top]) -> None:
        super().__init__(layer.type, inputs, dict(ntop=len(layer.top), in_place=list(layer.top) == list(layer.bottom)))
        self.layer = layer

    def to_layer(self, bottoms: Any, tops: Any, name: str) -> Any:
        written = type(self.layer)()
        written.CopyFrom(self.layer)
        written.ClearField("bottom")
        written.ClearField("top")
        written.ClearField("blobs")
        written.bottom.extend(bottoms)
        written.top.extend(tops)
        return written


def net_of_file(file: Path) -> Net:
    """A net for classification from a deploy prototxt with one image as input, and scores or probabilities
    as output.

    Its last layer with num_output gets one output per class. If that changes their number, it also gets
    another name, so that it does not load weights for other classes. Raises InvalidArgument for a net
    of another form.
    """
    from .. import TEST, InvalidArgument  # the compiled package, without which models/generate.py runs
    from .. import Net as Compiled

    net = Compiled(str(file), TEST)
    definition = net.definition

    def refuse(text: str) -> None:
        raise InvalidArgument(f"--net is {file}, {text}; give a deploy.prototxt for classification, or one of caffe new --nets")

    if len(net.inputs) != 1 or len(net.outputs) != 1:
        refuse(f"which has {len(net.inputs)} inputs and {len(net.outputs)} outputs")
    shape = list(net.blobs[net.inputs[0]].shape)
    if len(shape) != 4 or shape[1] != 3 or shape[2] != shape[3]:
        refuse(f"whose input has the shape {'x'.join(map(str, shape))}, not Nx3xSxS")
    layers = [layer for layer in definition.layer if layer.type != "Input"]
    while layers and layers[-1].type in ("Softmax", "Split", "Reshape", "Flatten"):
        layers.pop()
    scores = [layer for layer in layers if layer.type in _SCORES]
    if not layers or not scores:
        refuse("which has no layer with num_output")
    for layer in layers:
        for name in _TAKEN.intersection((layer.name, *layer.top)) - {net.inputs[0]}:
            refuse(f"whose layer '{layer.name}' makes or is called '{name}', as a layer that training adds; rename it")
        if layer.name == "data":
            refuse("whose layer 'data' is called as the data layer that training adds; rename it")
    classes = getattr(scores[-1], _SCORES[scores[-1].type]).num_output
    if net.blobs[net.outputs[0]].count != classes * shape[0]:
        refuse(f"whose last layer with num_output, '{scores[-1].name}', does not make its output")

    def body(model: Model, data: Top) -> List[Head]:
        blobs: Dict[str, Top] = {net.inputs[0]: data}
        for layer in layers:
            if layer is scores[-1] and model.classes != classes:
                layer = type(layer)(name=f"{layer.name}_{model.classes}_classes", **_fields(layer))
                options = getattr(layer, _SCORES[layer.type])
                options.num_output = model.classes
                if not options.HasField("weight_filler"):  # deploy files often have none
                    options.weight_filler.type = "msra"
            written = _Written(layer, [blobs[name] for name in layer.bottom])
            for name, top in zip(layer.top, written.tops):
                blobs[name] = top
                model.spec[layer.name if written.in_place else name] = top
        return [Head(blobs[layers[-1].top[0]], accuracy_top5=None)]

    info = definition.model_info
    pixels = (tuple(info.mean_value) or None, info.scale)
    return Net(file.stem, "classification", body, f"the net of {file}", (shape[2],) * 3, 1, 32,
               dict(ONE_CYCLE, base_lr=0.01, weight_decay=0.0001), 100_000, pixels=pixels)


def _fields(layer: Any) -> Dict[str, Any]:
    return {field.name: value for field, value in layer.ListFields() if field.name not in ("name", "blobs")}

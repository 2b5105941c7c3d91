"""Weights that a training starts from: the file, its net, the pixels that it expects, and the layers that it fills."""
from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any, List, Optional, Tuple

from google.protobuf.message import DecodeError

from .. import TEST, InvalidArgument, Net, model_info, zoo
from ..deployment import read_model_info
from ..net_spec import layers as L
from ..proto import caffe_pb2
from ..zoo.common import Model
from .databases import run
from .datasets import Halves

_ENOUGH = 0.5  # share of the file's layers that its own net has; all but the last ones for other classes


def require_file(weights: Path, program: Path) -> None:
    """Raises InvalidArgument if there is no such file. Names `caffe fetch-weights` for the name of a published model."""
    if weights.is_file():
        return
    wrong = f"--from is {weights}, which is neither a file nor the folder of a model that is trained"
    published = dict(line.split(maxsplit=1) for line in run(program, "fetch-weights", "--list").splitlines())
    if str(weights) in published:
        place = published[str(weights)]
        raise InvalidArgument(f"{wrong}; " + (f"give --from={shlex.quote(place)}" if Path(place).is_file() else
                                              f"get the published weights: caffe fetch-weights {weights}, and give the file that it names"))
    raise InvalidArgument(f"{wrong}; give a .caffemodel")


def net_of(weights: Path, task: str) -> Optional[zoo.Net]:
    """The net for the task that has most of the file's layers: one of the zoo, else, for classification, the deploy.prototxt of the
    model's folder that the file is in. None if there is none."""
    names = _layers_with_weights(weights)
    found: List[Tuple[float, int, str]] = []
    for net in zoo.nets().values():
        if net.task == task:
            own = _layers_of(net)
            found.append((_share(names, own), -len(own), net.name))
    if found and max(found)[0] > _ENOUGH:
        return zoo.nets()[max(found)[2]]
    for folder in (weights.parent, weights.parent.parent):  # of a training, or of published weights
        file = folder / "deploy.prototxt"
        if task == "classification" and names and file.is_file():
            deploy = Net(str(file), TEST)
            if _share(names, list(deploy.params)) > _ENOUGH:
                return zoo.net_named(str(file), task)._replace(name=folder.resolve().name)
    return None


def _share(names: List[str], own: List[str]) -> float:
    return len(set(names) & set(own)) / len(names) if names else 0.0


def _layers_with_weights(weights: Path) -> List[str]:
    """The names in a .caffemodel; none for HDF5, and for files of other kinds, which loading will refuse."""
    content = caffe_pb2.NetParameter()
    if weights.suffix == ".h5":
        return []
    try:
        with warnings.catch_warnings():  # protobuf warns of some files of other kinds
            warnings.simplefilter("ignore", RuntimeWarning)
            content.ParseFromString(weights.read_bytes())
    except DecodeError:
        return []
    return [layer.name for layer in [*content.layer, *content.layers] if layer.blobs]


def _layers_of(net: zoo.Net) -> List[str]:
    model, side = Model(), net.sides[1]
    model.spec.data = L.Input(input_param=dict(shape=dict(dim=[1, 3, side, side])))
    net.body(model, model.spec.data, *([side] if net.task == "detection" else []))
    return [layer.name for layer in model.spec.to_proto().layer]


def pixels(net: zoo.Net, weights: Optional[Path], halves: Halves) -> Tuple[Tuple[float, ...], float]:
    """Mean and scale of the net's input: those stored with its weights, or next to published ones, else those of these images."""
    if weights is None:
        return halves.mean, 1 / 64
    published = weights.parent / "model_info.prototxt"
    for info in [model_info(weights), *([read_model_info(str(published))] if published.is_file() else [])]:
        if info.mean_value:
            return tuple(info.mean_value), info.scale
    mean, scale = net.pixels
    if mean is None:
        raise InvalidArgument(f"--from is {weights}, which does not say what images it was trained on; write their mean and "
                              "scale into the net: model_info { mean_value: 104 mean_value: 117 mean_value: 123 scale: 1 }")
    return mean, scale


def require_common_layer(weights: Path, definition: Any, net: zoo.Net) -> None:
    """Raises InvalidArgument if the net and the file have no layer name in common. Training compares sizes later."""
    if weights.suffix == ".h5":
        return
    given = _layers_with_weights(weights)
    if not set(given) & {layer.name for layer in definition.layer}:
        named = f" ('{given[0]}', ...)" if given else ""
        raise InvalidArgument(f"--from is {weights}: none of its {len(given)} layers with weights{named} is one of net '{net.name}'; layers "
                              "are matched by name: give weights of this net, or their own net with --net")


def copied(folder: Path, weights: Path, net: zoo.Net) -> Tuple[int, int]:
    """How many of the net's layers with weights the file has, and how many there are. folder: the new model's. Raises InvalidArgument
    for layers of the same name that are not of the same form."""
    compiled = Net(str(folder / "deploy.prototxt"), TEST)
    try:
        rows = compiled.copy_from(str(weights))
    except InvalidArgument as error:
        why = str(error).removeprefix(f"{weights}: ")
        raise InvalidArgument(f"--from is {weights}, whose layers are not those of net '{net.name}': {why}; or give the net of these weights "
                              "with --net") from None
    return sum(row[1] == "copied" for row in rows), len([name for name in compiled.params if compiled.params[name]])

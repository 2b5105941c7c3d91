"""The net to evaluate: its definition for one pass over the data, and the meaning of its blobs."""
from __future__ import annotations

import os
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .. import TEST, InvalidArgument, Net, model_info
from .. import io as caffe_io
from ..net_files import read_net
from ..proto import caffe_pb2
from .records import Supply, find_supply, printable

_SOFTMAX_LOSSES = ("SoftmaxWithLoss", "FocalLoss", "InfogainLoss")
_COMPARISONS = ("Accuracy", "MultinomialLogisticLoss", "HingeLoss", *_SOFTMAX_LOSSES)
_DETECTORS = ("DetectionOutput", "YoloDetectionOutput", "Yolov3DetectionOutput")


class Subject:
    """A trained net of phase TEST, and what is known about its outputs.

    names: class names by label, or empty. title: name for pages. weights: the files loaded. Both are text for people.
    scores_blob: the blob that the user named, or "".
    """

    def __init__(self, net: Net, title: str, weights: str, names: Sequence[str] = (), scores_blob: str = "") -> None:
        self.net, self.names, self.scores_blob = net, list(names), scores_blob
        self.title, self.weights = printable(title), printable(weights)
        self.definition = net.definition
        self.supply: Supply = find_supply(net)
        self._info = model_info(net)
        self.untrained: List[str] = []

    def untrained_text(self) -> str:
        """A sentence that lists layers without weights in the files; "" if there are none."""
        if not self.untrained:
            return ""
        layers = ", ".join(f"'{name}'" for name in self.untrained[:5]) + (", ..." if len(self.untrained) > 5 else "")
        return (f"has no weights of {len(self.untrained)} of the net's {len(self.net.params)} layers with parameters ({layers}), which "
                "keep those of their fillers; give the weights of this net")

    def layers(self, *types: str) -> Iterator[Any]:
        """LayerParameters of these types, in reverse order."""
        return (layer for layer in reversed(self.definition.layer) if layer.type in types)

    @property
    def data_layer(self) -> Any:
        name = self.net._layer_names[self.supply.layer]
        return next(layer for layer in self.definition.layer if layer.name == name)

    def comparison(self) -> Any:
        """The layer that compares scores with labels: the last Accuracy, else the last loss. Raises
        InvalidArgument if there is none, or none that reads the blob that the user named."""
        found = [layer for layer in self.layers(*_COMPARISONS) if len(layer.bottom) >= 2]
        if self.scores_blob:
            found = [layer for layer in found if layer.bottom[0] == self.scores_blob]
            if not found:
                raise InvalidArgument(f"--scores is '{self.scores_blob}', which no Accuracy and no loss reads; they read "
                                      f"{self._compared() or 'nothing'}")
        if not found:
            raise InvalidArgument("nothing in the net compares scores with labels (Accuracy, SoftmaxWithLoss, DetectionEvaluate), so there "
                                  "are no labels to score it by; give the net that was trained, train_val.prototxt")
        return next((layer for layer in found if layer.type == "Accuracy"), found[0])

    def _compared(self) -> str:
        blobs = dict.fromkeys(layer.bottom[0] for layer in self.layers(*_COMPARISONS) if len(layer.bottom) >= 2)
        return ", ".join(f"'{blob}'" for blob in blobs)

    def detector(self) -> Optional[Tuple[str, str, Any]]:
        """(blob of detections, blob of ground truth, the layer with more options) of a detector."""
        for layer in self.layers("DetectionEvaluate"):
            return layer.bottom[0], layer.bottom[1], layer
        for layer in self.layers(*_DETECTORS):
            if len(self.data_layer.top) > 1:
                return layer.top[0], self.data_layer.top[1], layer
        return None

    def ignored_label(self) -> Optional[int]:
        """The label that is not scored, or None."""
        for layer in self.layers(*_COMPARISONS):
            for field in (layer.loss_param, layer.accuracy_param):
                if field.HasField("ignore_label"):
                    return field.ignore_label
        return None

    def makes_probabilities(self, blob: str) -> Optional[bool]:
        """True if a blob of scores holds probabilities, False if a softmax is still to be applied, None
        for other scores, such as those of a hinge loss."""
        makers = [layer.type for layer in self.definition.layer if blob in layer.top]
        if makers and makers[-1] == "Softmax":
            return True
        readers = [layer.type for layer in self.definition.layer if layer.bottom and layer.bottom[0] == blob]
        if any(reader in ("Softmax", *_SOFTMAX_LOSSES) for reader in readers):
            return False
        return True if "MultinomialLogisticLoss" in readers else None

    def picture(self, slot: int) -> Optional[np.ndarray]:
        """The net's input for an item of the batch as an image, with mean and scale undone: (H, W, 3), uint8,
        red, green and blue. None if the input is not an image."""
        pixels = np.array(self.net.blobs[self.data_layer.top[0]].data[slot], np.float32)
        if pixels.ndim != 3 or pixels.shape[0] not in (1, 3) or min(pixels.shape[1:]) < 2:
            return None
        pixels = pixels / (self._info.scale or 1) + self._mean(pixels.shape)
        return np.clip(np.rint(pixels[::-1].transpose(1, 2, 0)), 0, 255).astype(np.uint8).repeat(3 // pixels.shape[0], axis=2)

    def _mean(self, shape: Tuple[int, ...]) -> Any:
        if self._info.HasField("mean"):
            mean = caffe_io.blobproto_to_array(self._info.mean).reshape(-1, *self._info.mean.shape.dim[-2:] or
                                                                        (self._info.mean.height, self._info.mean.width))
            top, left = ((have - want) // 2 for have, want in zip(mean.shape[1:], shape[1:]))
            if top >= 0 and left >= 0 and mean.shape[0] == shape[0]:
                return mean[:, top:top + shape[1], left:left + shape[2]]
            return mean.mean()
        values = np.array(self._info.mean_value or [0], np.float32)
        return values.reshape(-1, 1, 1) if len(values) in (1, shape[0]) else values.mean()


class NetWish(NamedTuple):
    """The state and options with which to build the net: those of the flags of `caffe test`."""

    level: int = 0
    stages: Sequence[str] = ()
    lenient: bool = False
    precision: Optional[str] = None


def open_subject(model: str, weights: Union[str, Sequence[str]] = "", labels: Sequence[str] = (), scores: str = "", title: str = "",
                 wish: NetWish = NetWish()) -> Subject:
    """Builds the net of a prototxt for one pass over its TEST data, with comma-separated files of weights, or a list of them.

    Data layers read in order from the first record, and records that cannot be read are skipped.
    labels: class names; by default those in the weights or the data. scores: the blob with the scores,
    if the net has several. Raises IoError for files that cannot be read, InvalidArgument for a net that
    is invalid, does not match its weights, or has no data.
    """
    net = Net(_prepared(read_net(model, wish.lenient)), TEST, level=wish.level, stages=list(wish.stages), lenient=wish.lenient,
              precision=wish.precision)
    files = _files(os.fspath(weights)) if isinstance(weights, (str, os.PathLike)) else [os.fspath(file) for file in weights]
    if not files and net.params:
        raise InvalidArgument("--weights is missing; give the .caffemodel with the net's weights")
    for file in files:
        net.copy_from(file)
    names = list(labels) or _names_of_model(net, files)
    subject = Subject(net, title or os.fspath(model), ", ".join(files), names, scores)
    subject.untrained = _untrained(net, files)
    return subject


def _files(weights: str) -> List[str]:
    """The parts between commas; a file's own name may have commas."""
    return [weights] if os.path.isfile(weights) else [file.strip() for file in weights.split(",") if file.strip()]


def _untrained(net: Net, files: List[str]) -> List[str]:
    """Layers with parameters that neither a file nor a layer that shares them by name provides."""
    if any(file.endswith(".h5") for file in files):
        return []
    given = set()
    for file in files:
        content = caffe_pb2.NetParameter()
        with open(file, "rb") as binary:
            content.ParseFromString(binary.read())
        given |= {layer.name for layer in [*content.layer, *content.layers] if layer.blobs}
    definitions = {layer.name: layer for layer in net.definition.layer}
    shared = {spec.name for name in given if name in definitions for spec in definitions[name].param if spec.name}
    return [name for name in net.params
            if name not in given and not any(spec.name in shared for spec in getattr(definitions.get(name), "param", ()))]


def _names_of_model(net: Net, files: List[str]) -> List[str]:
    for file in reversed(files):
        if not file.endswith(".h5"):
            names = list(model_info(file).label)
            if names:
                return names
    return list(model_info(net).label)


def _prepared(net: Any) -> Any:
    """A copy whose data layers read in order, and skip broken records."""
    prepared = caffe_pb2.NetParameter()
    prepared.CopyFrom(net)
    for layer in prepared.layer:
        if layer.type in ("Data", "AnnotatedData"):
            layer.data_param.skip_broken = True
        for name in ("data_param", "image_data_param", "dense_image_data_param", "hdf5_data_param"):
            if not layer.HasField(name):
                continue
            options = getattr(layer, name)
            for field in ("shuffle", "rand_skip", "cache"):
                if field in options.DESCRIPTOR.fields_by_name:
                    options.ClearField(field)
    return prepared

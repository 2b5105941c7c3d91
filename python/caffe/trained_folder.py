"""Uses the model in a folder that `caffe new` and `caffe train` have made, or in one of the zoo."""
from __future__ import annotations

import os
import re
import shlex
from typing import Any, Dict, Optional, Union

from google.protobuf import text_format

from ._caffe import InvalidArgument, IoError
from .class_names import read_names
from .deployment import read_model_info
from .net_files import expanded_text
from .proto import caffe_pb2


class ModelFolder:
    """A trained model that answers about images, as `caffe classify` and `caffe detect` do.

        model = caffe.ModelFolder("photos_model")
        for one in model.ask("cat.jpg")["classes"]:
            print(one["name"], one["score"])

    path: the folder, with deploy.prototxt and weights: the best ones of its training, else those
        of the latest iteration, else the published ones
    precision: as for caffe.Net

    Attributes: path, deploy, weights (names of files), labels (names of the classes). Raises
    InvalidArgument for a folder without a model or weights, and for a net that takes no images.
    """

    def __init__(self, path: Union[str, os.PathLike], precision: Optional[str] = None) -> None:
        from .serving.images import ImageQuestion  # here, because `import caffe` imports this module
        from .serving.model import Model

        self.path = os.fsdecode(path)
        self.deploy = os.path.join(self.path, "deploy.prototxt")
        if not os.path.isfile(self.deploy):
            raise InvalidArgument(f"{self.path}: is not a folder with a deploy.prototxt, so it holds no model; `caffe new` makes one of images")
        card = _card(self.path)
        self.weights = _weights(self.path, card)
        info = os.path.join(self.path, "model_info.prototxt")
        self._model = Model(os.path.basename(os.path.normpath(self.path)), self.deploy, self.weights, max_batch=1, precision=precision,
                            info=read_model_info(info) if os.path.isfile(info) else None)
        if not self._model.labels and "labels" in card:
            self._model.labels = read_names(os.path.join(self.path, card["labels"]))
        self.labels = self._model.labels
        self._question = ImageQuestion(self._model)
        self._nets = self._model.nets()

    def ask(self, image: Union[str, os.PathLike, bytes], top: int = 5, threshold: float = 0.5) -> Dict[str, Any]:
        """The answer about an image: the name of a file, or its bytes.

        A dict with "height" and "width" of the image in pixels, and a list, whose items have a
        "class" and its "name":
        "classes" of a net for classification: the `top` likeliest ones, with their "score"
        "classes" of a net for pixels: all that occur, with their "share" of the pixels
        "detections": with a "score" of `threshold` or more, "xmin", "ymin", "xmax" and "ymax"

        Raises IoError for a file that is not an image.
        """
        if top < 1:
            raise InvalidArgument(f"top is {top}; give 1 or more classes")
        arrays, place = self._question.read(image if isinstance(image, bytes) else _content(image))
        answer, = self._model.run(self._nets, [arrays], [1])
        return self._question.answer(answer, place, top, threshold)


def _content(image: Union[str, os.PathLike]) -> bytes:
    try:
        with open(os.fspath(image), "rb") as file:
            return file.read()
    except OSError as error:
        raise IoError(f"{image}: {error.strerror}") from None


def _card(folder: str) -> Dict[str, str]:
    """The fields between lines of dashes at the beginning of README.md; of several with one name the first."""
    try:
        with open(os.path.join(folder, "README.md"), encoding="utf-8", errors="replace") as file:
            head = re.match(r"---\s*\n(.*?)\n---\s*\n", file.read(1 << 16), re.DOTALL)
    except FileNotFoundError:
        return {}
    lines = [line.partition(":") for line in reversed(head[1].splitlines())] if head else []
    return {key.strip(): value.strip(" \t'\"") for key, _, value in lines}


def _weights(folder: str, card: Dict[str, str]) -> str:
    """The file of the weights to use."""
    found = _snapshot(folder) if os.path.isfile(os.path.join(folder, "solver.prototxt")) else ""
    if not found and "caffemodel" not in card:
        raise InvalidArgument(f"{folder}: holds no weights yet; train the model: caffe train {shlex.quote(folder)}")
    found = found or os.path.join(folder, card["caffemodel"])
    if not os.path.isfile(found):
        raise InvalidArgument(f"{folder}: holds no weights yet; get those that are published: caffe fetch-weights {shlex.quote(folder)}")
    return found


def _snapshot(folder: str) -> str:
    """The best weights of the training, else those of the latest iteration, if possible with a state; "" if there are none."""
    name = os.path.join(folder, "solver.prototxt")
    solver = caffe_pb2.SolverParameter()
    try:
        text_format.Parse(expanded_text(name, is_solver=True), solver, allow_unknown_field=True)
    except text_format.ParseError as error:
        raise InvalidArgument(f"{name}:{error}") from None
    prefix = os.path.join(folder, solver.snapshot_prefix or "solver")
    if os.path.isdir(prefix):
        prefix = os.path.join(prefix, "solver")
    for ending in (".caffemodel", ".caffemodel.h5"):
        if os.path.isfile(f"{prefix}_best{ending}"):
            return f"{prefix}_best{ending}"
    place, stem = os.path.split(prefix)
    files = set(os.listdir(place)) if os.path.isdir(place) else set()
    names = [re.fullmatch(re.escape(stem) + r"_iter_(\d+)\.caffemodel(\.h5)?", file) for file in files]
    found = [(one[0].replace(".caffemodel", ".solverstate") in files, int(one[1]), one[0]) for one in names if one]
    return os.path.join(place, max(found)[2]) if found else ""

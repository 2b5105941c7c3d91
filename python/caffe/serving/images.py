"""Answers about an image file, as `caffe classify`, `caffe detect` and `caffe segment` give them."""
import numpy as np

from .. import ImageInput, InvalidArgument


def top_classes(scores, count):
    """For each row the best classes: pairs of (score, class). scores: N x C or N x C x 1 x 1."""
    rows = scores.reshape(scores.shape[0], -1)
    order = np.argsort(-rows, axis=1, kind="stable")[:, :count]
    return [[(float(row[label]), int(label)) for label in best] for row, best in zip(rows, order)]


class ImageQuestion:
    """Asks a model about image files.

    model: a Model with one input of images and one output: scores of classes, detections, or scores of classes for each pixel

    Raises InvalidArgument for other models.
    """

    def __init__(self, model):
        self._model = model
        if len(model.inputs) != 1 or len(model.inputs[0].shape) != 4 or not model.max_batch:
            raise InvalidArgument(f"model '{model.name}' does not take images: it has not one input of N x C x H x W")
        if len(model.outputs) != 1:
            raise InvalidArgument(f"model '{model.name}' has {len(model.outputs)} outputs; one with scores or detections is needed")
        self._input = ImageInput(model.info, *model.inputs[0].shape[1:])

    def read(self, file):
        """The arrays by input for the bytes of an image file, and the extents of the image and of what the net sees of it."""
        values, extents, seen = self._input.read_placed(file)
        return {self._model.inputs[0].name: values[None]}, (extents, seen)

    def answer(self, arrays, place, top, threshold):
        """The answer for clients: classes, detections or shares of the pixels."""
        output, = self._model.outputs
        values = arrays[output.name]
        (height, width), seen = place
        kind, found = ("detections", self._detections(values, seen, threshold)) if output.name in self._model.detections else (
            ("classes", self._shares(values)) if values.ndim == 4 and values.shape[2] * values.shape[3] > 1
            else ("classes", self._classes(values, top)))
        return {"height": height, "width": width, kind: found}

    def _named(self, label, **more):
        labels = self._model.labels
        return {"class": label, "name": labels[label] if label < len(labels) else str(label), **more}

    def _classes(self, scores, top):
        return [self._named(label, score=score) for score, label in top_classes(scores, top)[0]]

    def _shares(self, scores):
        """The share of the pixels that each class has, the largest first."""
        counts = np.bincount(scores[0].argmax(axis=0).reshape(-1))
        return [self._named(int(label), share=float(counts[label] / counts.sum())) for label in np.argsort(-counts, kind="stable") if counts[label]]

    def _detections(self, rows, seen, threshold):
        top, left, height, width = seen
        return [self._named(int(label), score=float(score), xmin=left + xmin * width, ymin=top + ymin * height,
                            xmax=left + xmax * width, ymax=top + ymax * height)
                for _, label, score, xmin, ymin, xmax, ymax in rows.astype(float).tolist() if score >= threshold]

"""Looks into a net, in a process of its own: python -m caffe.studio.inspector QUESTION WORD... Prints JSON.

  filters FOLDER             the filters of the first convolution, and a histogram of each parameter
  activations FOLDER IMAGE   what each blob holds for an image, and where the net looks (Grad-CAM) for its best class
  samples FOLDER             what the data layer gives in training, after augmentation
  copied FOLDER WEIGHTS      what the net takes from a .caffemodel, layer by layer
  sweep FOLDER WORD...       nothing, if a sweep of the model with these words can begin
  preview PROGRAM SET NET SIDE   the same as samples for a set without a model, and the mean of its images; NET and SIDE may be empty

FOLDER is a model's. Selvaraju et al., "Grad-CAM: Visual Explanations from Deep Networks via Gradient-based Localization", 2017.
"""
import base64
import contextlib
import glob
import io
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
from PIL import Image, ImageDraw

import caffe
from caffe import ImageInput
from caffe.class_names import read_names

_BINS = 40
_CHANNELS = 16  # shown of a blob
_TILE = 96  # pixels, the least side of a picture
_SAMPLES = 16
_COLORS = [(214, 64, 32), (32, 110, 190), (46, 140, 70), (150, 60, 180), (230, 160, 0), (0, 140, 150)]  # of classes


def _uri(pixels):
    """A PNG of H x W or H x W x 3 bytes, enlarged if it is small."""
    image = Image.fromarray(pixels)
    factor = max(1, -(-_TILE // max(image.size)))
    output = io.BytesIO()
    image.resize((image.width * factor, image.height * factor), Image.NEAREST).save(output, "png")
    return "data:image/png;base64," + base64.b64encode(output.getvalue()).decode()


def _bytes(values):
    """Scaled to 0 to 255."""
    low, high = np.nanmin(values), np.nanmax(values)
    return np.nan_to_num((values - low) / (high - low if high > low else 1) * 255).astype(np.uint8)


def _histogram(values):
    finite = values[np.isfinite(values)]
    counts, edges = np.histogram(finite, _BINS) if finite.size else (np.zeros(_BINS, int), np.linspace(0, 1, _BINS + 1))
    return {"counts": counts.tolist(), "low": float(edges[0]), "high": float(edges[-1]), "not_finite": int(values.size - finite.size)}


def _files(folder):
    """deploy.prototxt and the weights of a model's folder, the best ones first."""
    found = glob.glob(os.path.join(folder, "snapshots", "*.caffemodel")) or glob.glob(os.path.join(folder, "*.caffemodel"))
    if not found:
        raise caffe.InvalidArgument(f"{folder}: holds no weights yet; train the model")
    found.sort(key=lambda file: (file.endswith("_best.caffemodel"), os.path.getmtime(file)))
    return os.path.join(folder, "deploy.prototxt"), found[-1]


def filters(folder):
    net = caffe.Net(*_files(folder), caffe.TEST)
    first = next((layer for layer in net.definition.layer if layer.type == "Convolution"), None)
    pictures = []
    if first is not None:
        for values in net.params[first.name][0].data[:64]:
            is_color = values.shape[0] == 3
            pictures.append(_uri(_bytes(values.transpose(1, 2, 0)[:, :, ::-1] if is_color else values.mean(axis=0))))
    histograms = [{"name": f"{name}[{index}]", "shape": list(blob.shape), **_histogram(blob.data)}
                  for name, blobs in net.params.items() for index, blob in enumerate(blobs)]
    return {"layer": first.name if first is not None else "", "filters": pictures, "parameters": histograms}


def _backward_definition(definition):
    """The deploy net without its last softmax, with gradients wanted."""
    kept = caffe.proto.caffe_pb2.NetParameter()
    kept.CopyFrom(definition)
    if kept.layer and kept.layer[-1].type == "Softmax":
        del kept.layer[-1]
    kept.force_backward = True
    return kept


def activations(folder, image):
    definition, weights = _files(folder)
    net = caffe.Net(definition, caffe.TEST, weights=weights)
    shape = net.blobs[net.inputs[0]].shape
    info = caffe.model_info(weights)
    with open(image, "rb") as file:
        values = ImageInput(info, *shape[1:]).read(file.read())
    net.blobs[net.inputs[0]].reshape(1, *shape[1:])
    net.reshape()
    net.forward(**{net.inputs[0]: values[None]})
    blobs = []
    for name, blob in net.blobs.items():
        data = blob.data
        pictures = [_uri(_bytes(channel)) for channel in data[0, :_CHANNELS]] if data.ndim == 4 and min(data.shape[2:]) > 1 else []
        blobs.append({"name": name, "shape": list(data.shape), "pictures": pictures, **_histogram(data)})
    return {"blobs": blobs, "gradcam": _grad_cam(net.definition, weights, values, info)}


def _grad_cam(definition, weights, values, info):
    """The picture, darker where the net does not look, or None for nets that do not end in scores of classes."""
    net = caffe.Net(_backward_definition(definition), caffe.TEST, weights=weights)
    output = net.outputs[0] if len(net.outputs) == 1 else None
    if output is None or net.blobs[output].data.reshape(net.blobs[output].shape[0], -1).shape[1] < 2:
        return None
    net.blobs[net.inputs[0]].reshape(1, *values.shape)
    net.reshape()
    scores = net.forward(**{net.inputs[0]: values[None]})[output].copy()
    maps = [name for name, blob in net.blobs.items() if blob.data.ndim == 4 and min(blob.shape[2:]) > 1]
    if scores.ndim == 4 and min(scores.shape[2:]) > 1 or not maps:
        return None
    best = int(scores.reshape(-1).argmax())
    gradient = np.zeros_like(scores)
    gradient.reshape(-1)[best] = 1
    net.backward(diffs=[maps[-1]], **{output: gradient})
    features, slopes = net.blobs[maps[-1]].data[0], net.blobs[maps[-1]].diff[0]
    heat = np.maximum((slopes.mean(axis=(1, 2))[:, None, None] * features).sum(axis=0), 0)
    heat = np.asarray(Image.fromarray(_bytes(heat)).resize(values.shape[:0:-1], Image.BILINEAR)) / 255.0
    pixels = _bytes(values.transpose(1, 2, 0)[:, :, ::-1] if values.shape[0] == 3 else np.repeat(values[0][:, :, None], 3, axis=2))
    label = info.label[best] if best < len(info.label) else str(best)
    return {"blob": maps[-1], "label": label, "picture": _uri((pixels * (0.25 + 0.75 * heat[:, :, None])).astype(np.uint8))}


def samples(folder):
    os.chdir(folder)
    net = caffe.Net("train_val.prototxt", caffe.TRAIN)
    layer = net.definition.layer[0]
    net.forward(end=layer.name)
    pixels, labels = net.blobs[layer.top[0]].data, net.blobs[layer.top[1]].data if len(layer.top) > 1 else None
    names = list(net.definition.model_info.label) or _names(layer)
    pictures, under = [], []
    for index, image in enumerate(pixels[:_SAMPLES]):
        shown = _bytes(image.transpose(1, 2, 0)[:, :, ::-1] if image.shape[0] == 3 else image[0])
        if layer.type == "AnnotatedData":
            shown = _with_boxes(shown, labels.reshape(-1, 8), index)
        elif layer.type == "DenseImageData":
            shown = _with_classes(shown, labels[index].reshape(labels.shape[-2:]))
        pictures.append(_uri(shown))
        label = int(labels.reshape(-1)[index]) if layer.type == "Data" and labels is not None and labels.size == len(pixels) else None
        under.append("" if label is None else names[label] if 0 <= label < len(names) else str(label))
    return {"layer": layer.name, "pictures": pictures, "labels": under}


def _names(layer):
    """Classes from labels.txt in a database."""
    file = os.path.join(layer.data_param.source, "labels.txt")
    return read_names(file) if os.path.exists(file) else []


def _with_boxes(pixels, rows, index):
    """The image with the boxes of image `index`: rows (image, class, instance, xmin, ymin, xmax, ymax, difficult), relative to its size."""
    image = Image.fromarray(pixels).convert("RGB")
    pen = ImageDraw.Draw(image)
    for row in rows[rows[:, 0] == index]:
        pen.rectangle([row[3] * image.width, row[4] * image.height, row[5] * image.width - 1, row[6] * image.height - 1], outline=(255, 80, 0))
    return np.asarray(image)


def _with_classes(pixels, classes):
    """The image with a colour over each class but the first, and black where there is none."""
    colors = np.array([(0, 0, 0), *_COLORS])[np.where(classes < 255, classes.astype(int) % (len(_COLORS) + 1), 0)]
    blend = np.where(classes > 0, 0.5, 0)[..., None]
    pixels = pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)
    return (pixels * (1 - blend) + colors * blend).astype(np.uint8)


def copied(folder, weights):
    net = caffe.Net(os.path.join(folder, "deploy.prototxt"), caffe.TEST)
    return {"layers": [{"layer": layer, "outcome": outcome, "blobs": blobs, "values": values} for layer, outcome, blobs, values in net.copy_from(weights)]}


def sweep(folder, *words):
    from caffe.sweep.__main__ import check

    os.chdir(folder)
    check("solver.prototxt", *words)
    return {}


def preview(program, path, net, side):
    """Makes a model of some of the images to look at it."""
    from caffe.model_folder.new import Wishes, preview as make

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "model"
        folder.mkdir()
        with contextlib.redirect_stdout(sys.stderr):
            plan = make(pathlib.Path(path).resolve(), folder, Wishes(net=net or None, side=int(side) if side else None), pathlib.Path(program))
        found = samples(folder)
        os.chdir("/")
    return {**found, "mean": list(plan.mean), "net": plan.net.name, "side": plan.side, "images": plan.halves.train_count}


_QUESTIONS = {"filters": filters, "activations": activations, "samples": samples, "copied": copied, "sweep": sweep, "preview": preview}


def main(words):
    """Returns the exit status."""
    caffe.init_log(2)
    try:
        answer = _QUESTIONS[words[0]](*words[1:])
    except (caffe.Error, OSError, ValueError, MemoryError) as error:
        print(error, file=sys.stderr)
        return 1
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Nets from text, with weights and statistics that give numbers of ordinary size."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import caffe
import caffe.onnx
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPSETS = (11, 13, 17, caffe.onnx.newest_opset())


def run_module(*arguments):
    """Runs python -m caffe.onnx of the package that the tests import."""
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(caffe.__file__).parents[1])}
    return subprocess.run([sys.executable, "-m", "caffe.onnx", *map(str, arguments)], capture_output=True, text=True,
                          env=environment)


def net_of(text):
    """Loads the net from a file, because only files are upgraded."""
    with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as file:
        file.write(text)
        file.flush()
        return caffe.Net(file.name, caffe.TEST)


def net_with(shapes, layers):
    """A net whose layers read blobs x0, x1, ... of these shapes."""
    inputs = [f"layer {{ name: 'x{k}' type: 'Input' top: 'x{k}' input_param {{ shape {{ "
              + " ".join(f"dim: {extent}" for extent in shape) + " } } }" for k, shape in enumerate(shapes)]
    return net_of("\n".join([*inputs, layers]))


def draw_weights(net, seed=1):
    """Draws weights in [-0.5, 0.5) and statistics like those of a trained net."""
    generator = np.random.default_rng(seed)
    for layer in net.layers:
        for blob in layer.blobs:
            blob.data[...] = generator.uniform(-0.5, 0.5, blob.shape)
        if layer.type == "BatchNorm":
            layer.blobs[1].data[...] = generator.uniform(0.5, 1.5, layer.blobs[1].shape)
            layer.blobs[2].data[...] = 1
        if layer.type in ("BN", "SyncBN") and len(layer.blobs) == 4:
            layer.blobs[3].data[...] = generator.uniform(0.5, 1.5, layer.blobs[3].shape)
    return net


def learn_statistics(net, inputs):
    """Gives normalisations the statistics of these inputs, layer by layer: with the statistics of an untrained net, all its
    outputs would be one number."""
    for name, array in inputs.items():
        net.blobs[name].data[...] = array
    names, first = [layer.layer_param.name for layer in net.layers], 0
    for index, layer in enumerate(net.layers):
        if layer.type != "BatchNorm":
            continue
        net.forward(start=names[first], end=names[index - 1])
        bottom = net.blobs[layer.layer_param.bottom[0]].data
        axes = tuple(axis for axis in range(bottom.ndim) if axis != 1)
        layer.blobs[0].data[...] = bottom.mean(axes)
        layer.blobs[1].data[...] = bottom.var(axes) + 1e-3
        layer.blobs[2].data[...] = 1
        first = index
    net.forward()
    return net


def golden_net(file):
    """The net of a file in tests/golden, and its inputs by name; None if the net needs another file."""
    arrays = np.load(file)
    text = bytes(arrays["prototxt"].item()).decode()
    if "@" in text:
        return None, {}
    net = net_of(text)
    for key in arrays.files:
        found = re.fullmatch(r"param\.(.*)\.(\d+)", key)
        if found and found[1] in net.params:
            blob = net.params[found[1]][int(found[2])]
            blob.data[...] = arrays[key].reshape(blob.shape)
    inputs = {key[3:]: arrays[key].reshape(net.blobs[key[3:]].shape) for key in arrays.files
              if key.startswith("in.") and key[3:] in net.blobs}
    return net, inputs


def is_test_phase(file):
    return json.loads(bytes(np.load(file)["meta"].item())).get("phase") != "TRAIN"

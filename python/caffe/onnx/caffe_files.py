"""Caffe's own files for toolchains that read them: which layers these take, and a net without those that do nothing."""
import os

from .._caffe import Net
from ..proto import caffe_pb2
from .check import difference
from .registry import SOURCES, reason_left_out

# Layers that pass on their bottom when a net is tested.
_IDENTITIES = {"Dropout"}


class LayerNode:
    """A layer as limits see it."""

    def __init__(self, net, param):
        self.kind, self.layer, self.attributes = param.type, param.name, {}
        self._shapes = [tuple(net.blobs[name].shape) for name in param.bottom]

    def shape(self, index):
        return self._shapes[index] if index < len(self._shapes) else None


class CaffeFiles:
    """A net for a profile of format "caffe": definition, rewritten (sentences by layer), problems (sentences)."""

    def __init__(self, net, profile):
        self.net, self.problems, self.rewritten = net, [], {}
        self.definition = caffe_pb2.NetParameter()
        self.definition.CopyFrom(net.definition)
        del self.definition.layer[:]
        others = {}  # blobs that are another one
        for param in net.definition.layer:
            self._add(param, profile, others)

    def _add(self, param, profile, others):
        layer = caffe_pb2.LayerParameter()
        layer.CopyFrom(param)
        layer.bottom[:] = [others.get(name, name) for name in param.bottom]
        others.update({name: name for name in layer.top})
        node = LayerNode(self.net, param)
        if reason_left_out(param.type) or param.type in SOURCES:
            found = []
        else:
            found = profile.problems(node)
        is_output = param.top and param.top[0] in self.net.outputs and param.top[0] not in param.bottom
        if found and param.type in _IDENTITIES and not is_output:
            others[param.top[0]] = layer.bottom[0]
            self.rewritten[_title(param)] = ["left out, as it does nothing here"]
            return
        self.problems += [f"{_title(param)}: {text}" for text in found]
        self.definition.layer.add().CopyFrom(layer)


def _title(param):
    return f"layer '{param.name}' ({param.type})"


def write(files, path, weights):
    """The definition to `path`, the weights to `weights`."""
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8") as stream:
        stream.write(str(files.definition))
    os.replace(partial, path)
    files.net.save(weights)


def compare(files, inputs):
    """The net's outputs, and the differences of those that are written, by name."""
    twin = Net(files.definition, caffe_pb2.TEST)
    for name, blobs in twin.params.items():
        for own, blob in zip(blobs, files.net.params[name]):
            own.data[...] = blob.data
    original = Net(files.net.definition, caffe_pb2.TEST)
    original.share_with(files.net)
    for net in (twin, original):
        for name, array in inputs.items():
            net.blobs[name].reshape(*array.shape)
        net.reshape()
        for name, array in inputs.items():
            net.blobs[name].data[...] = array
        net.forward()
    expected = {name: original.blobs[name].data for name in files.net.outputs}
    return expected, {name: difference(array, twin.blobs[name].data) for name, array in expected.items()}

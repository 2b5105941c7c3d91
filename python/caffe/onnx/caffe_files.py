"""Writes Caffe's own files for toolchains that read them, with only those layers that the toolchain supports."""
import os
from typing import NamedTuple

from .._caffe import Net
from .._output import mark_of
from ..proto import caffe_pb2
from .decisions import Decisions, tops_that_decide
from .names import Names
from .problems import Problem, title
from .registry import SOURCES, reason_left_out
from .rewrites import rewrite_of

# Layers that multiply by weights and may add a bias, and the field of their options.
_PRODUCTS = {"Convolution": "convolution_param", "ConvolutionDepthwise": "convolution_param",
             "Deconvolution": "convolution_param", "InnerProduct": "inner_product_param"}

# Option fields of other layers that rewrites read.
_OPTIONS = {"Bias": "bias_param", "Clip": "clip_param", "HardSigmoid": "hard_sigmoid_param", "Power": "power_param",
            "ReLU6": "relu6_param", "Swish": "swish_param", **_PRODUCTS}

# The result of a rewrite may itself need a rewrite.
_ROUNDS = 6


def _is_dropout_of_fork(param):
    """True if a Dropout layer acts at test time, because of options that BVLC's Caffe does not have."""
    options = param.dropout_param
    return param.type == "Dropout" and (options.sample_weights_test or not options.scale_train)


class LayerNode:
    """A layer as limits and rewrites see it. kind: its type; layer: its name; bottoms: names of blobs; attributes: the options
    that it sets, by name; param: its LayerParameter; blobs: arrays of its parameters."""

    def __init__(self, param, blobs, shapes):
        self.kind, self.layer, self.param, self.blobs = param.type, param.name, param, blobs
        self._shapes = shapes
        messages = [value for field, value in param.ListFields() if field.name.endswith("_param")]
        self.attributes = {field.name: value if isinstance(value, (bool, int, float, str)) else list(value)
                           for message in messages for field, value in message.ListFields() if field.message_type is None}

    @property
    def bottoms(self):
        return list(self.param.bottom)

    @property
    def bottom(self):
        return self.param.bottom[0]

    @property
    def options(self):
        """The layer's option message, with defaults."""
        return getattr(self.param, _OPTIONS[self.kind])

    @property
    def channel_axis(self):
        """For a convolution or fully connected layer, the axis of its top that holds the output channels."""
        return self.options.axis % len(self.shape(0))

    def shape(self, index):
        return self._shapes[index] if index < len(self._shapes) else None


class Draft:
    """Collects the layers with which a rewrite replaces `node`. A blob is represented by its name (str)."""

    def __init__(self, files, node):
        self._files, self._node = files, node
        self._shapes = dict(zip(node.bottoms, (node.shape(k) for k in range(len(node.bottoms)))))
        self.nodes = []

    def layer(self, kind, *bottoms, blobs=(), **options):
        """Appends a layer whose top has the shape of its first bottom; returns the top. options: messages by field."""
        name = self._files.name(f"{self._node.layer}_{kind.lower()}")
        param = caffe_pb2.LayerParameter(name=name, type=kind, bottom=bottoms, top=[name], **options)
        self.nodes.append(LayerNode(param, list(blobs), [self._shapes[blob] for blob in bottoms]))
        self._shapes[name] = self._shapes[bottoms[0]]
        return name

    def power(self, blob, scale=1.0, shift=0.0):
        """scale * blob + shift, omitting layers without effect."""
        if scale == 1 and shift == 0:
            return blob
        return self.layer("Power", blob, power_param={"scale": scale, "shift": shift})

    def product(self, one, other):
        return self.layer("Eltwise", one, other, eltwise_param={"operation": caffe_pb2.EltwiseParameter.PROD})

    def product_before(self, blob):
        """The convolution or fully connected layer that computes a blob which only this layer reads; its options and blobs may be
        changed. None if there is no such layer, or if its weights are shared."""
        return self._files.product_before(blob, self._node)


class _Written(NamedTuple):
    """The replacement of a layer: its nodes, the blob that replaces its top, and sentences for the report."""
    nodes: list
    top: str
    texts: list


class CaffeFiles:
    """A net for a profile with format "caffe". definition: the result; rewritten: sentences by layer; problems: of the chip."""

    def __init__(self, net, profile):
        self.net, self.profile, self.problems, self.rewritten = net, profile, [], {}
        self.definition = net.definition
        layers = list(self.definition.layer)
        names = Names("_")
        for taken in {*net.blobs, *(layer.name for layer in layers)}:
            names.take(taken)
        self.name = names.take
        self._sources = {*net.inputs, *(top for layer in layers if layer.type in SOURCES for top in layer.top)}
        self._nodes = []  # LayerNodes of the result
        self._others = {}  # blob -> the blob that replaces it
        self._renamed = {}  # inputs overwritten in place -> their name from that layer on
        for index, param in enumerate(layers):
            self._later = layers[index + 1:]
            self._add(param)
        written = [node.param for node in self._nodes]
        self.definition = caffe_pb2.NetParameter()
        self.definition.CopyFrom(net.definition)
        del self.definition.layer[:]
        self.definition.layer.extend(written)

    def twin(self):
        """A net with the resulting definition and weights."""
        twin = Net(self.definition, caffe_pb2.TEST)
        arrays = {node.layer: node.blobs for node in self._nodes}
        for name, blobs in twin.params.items():
            for own, array in zip(blobs, arrays[name]):
                own.data[...] = array
        return twin

    def product_before(self, blob, reader):
        places = [k for k, node in enumerate(self._nodes) if blob in node.param.top]
        if not places:
            return None
        product = self._nodes[places[-1]]
        is_plain = product.kind in _PRODUCTS and len(product.param.top) == 1 and not any(one.name for one in product.param.param)
        if not is_plain or any(blob in node.bottoms for node in self._nodes[places[-1] + 1:]):
            return None
        readers = {name for name, other in self._others.items() if other == blob}
        if blob in reader.param.top:  # later readers get this layer's result
            readers.discard(blob)
        else:
            readers.add(blob)
        is_read = any(readers.intersection(layer.bottom) for layer in self._later)
        return None if is_read or readers.intersection(self.net.outputs) else product

    def _add(self, param):
        layer = caffe_pb2.LayerParameter()
        layer.CopyFrom(param)
        bottoms = [self._renamed.get(name, name) for name in param.bottom]
        layer.bottom[:] = [self._others.get(name, name) for name in bottoms]
        layer.top[:] = [self._renamed.get(name, name) for name in param.top]
        self._others.update({name: name for name in layer.top})
        blobs = [blob.data for blob in self.net.params[param.name]] if param.name in self.net.params else []
        node = LayerNode(layer, blobs, [tuple(self.net.blobs[name].shape) for name in param.bottom])
        is_free = reason_left_out(param.type) or param.type in SOURCES
        found = [] if is_free else self.profile.problems(node)
        if _is_dropout_of_fork(param):
            found = ["scale_train: false or sample_weights_test: true, which the toolchain's Caffe does not have"]
        is_output = param.top and param.top[0] in self.net.outputs and param.top[0] not in param.bottom
        is_identity = param.type == "Dropout" and not _is_dropout_of_fork(param)
        if found and is_identity and not is_output:
            self._others[layer.top[0]] = layer.bottom[0]
            self.rewritten[title(param.name, param.type)] = ["left out, as it does nothing here"]
            return
        written = self._rewrite(node, _ROUNDS) if found and self._can_be_replaced(layer) else None
        if written is not None:
            self._replace(layer, written)
            self.rewritten[title(param.name, param.type)] = list(dict.fromkeys(written.texts))
            return
        self.problems += [Problem(param.name, param.type, text) for text in found]
        self._nodes.append(node)

    def _can_be_replaced(self, layer):
        """False if an input of the net, overwritten in place, is also an output: both would have the same name."""
        if len(layer.top) != 1 or not layer.bottom:
            return False
        top = layer.top[0]
        return not (top in layer.bottom and top in self._sources and top in self.net.outputs)

    def _rewrite(self, node, rounds):
        """Applies the first of the profile's rewrites whose layers the chip supports; None if there is none."""
        for rewrite in (rewrite_of(name, "caffe") for name in self.profile.rewrites):
            if node.kind not in rewrite.operators:
                continue
            draft = Draft(self, node)
            top = rewrite.function(node, draft)
            written = None if top is None else self._fit(draft, _Written([], top, [rewrite.text]), rounds)
            if written is not None:
                return written
        return None

    def _fit(self, draft, written, rounds):
        for node in draft.nodes:
            if not self.profile.problems(node):
                written.nodes.append(node)
                continue
            inner = self._rewrite(node, rounds - 1) if rounds > 0 else None
            if inner is None:
                return None
            _rename(inner.nodes, inner.top, node.param.top[0])
            written.nodes.extend(inner.nodes)
            written.texts.extend(inner.texts)
        return written

    def _replace(self, layer, written):
        """Writes the nodes; the blob that replaces the layer's top takes its name."""
        nodes, top, wanted = written.nodes, written.top, layer.top[0]
        is_in_place = wanted in layer.bottom
        first = len(self._nodes)
        self._nodes += nodes
        if nodes:
            nodes[-1].param.name = nodes[-1].layer = layer.name
        if top == wanted:
            return
        if is_in_place and wanted in self._sources:
            self._renamed[wanted] = top
            return
        if is_in_place:
            # Renames the layer's input, because only one layer may compute a blob of this name.
            before = self.name(f"{wanted}_before")
            _rename(self._nodes, wanted, before)
            self._others = {name: before if other == wanted and name != wanted else other for name, other in self._others.items()}
        _rename(self._nodes if not nodes else self._nodes[first:], top, wanted)


def _rename(nodes, name, new_name):
    for node in nodes:
        for blobs in (node.param.bottom, node.param.top):
            blobs[:] = [new_name if blob == name else blob for blob in blobs]


def write(files, path, weights):
    """Writes the definition to `path` and the weights to `weights`."""
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8") as stream:
        stream.write(mark_of("caffe export").decode() + str(files.definition))
    os.replace(partial, path)
    (files.twin() if files.rewritten else files.net).save(weights)


def compare(files, inputs, tolerance):
    """The net's outputs, and the Differences of the written net's outputs, by name."""
    twin = files.twin()
    original = Net(files.net.definition, caffe_pb2.TEST)
    original.share_with(files.net)
    for net in (twin, original):
        for name, array in inputs.items():
            net.blobs[name].reshape(*array.shape)
        net.reshape()
        for name, array in inputs.items():
            net.blobs[name].data[...] = array
    twin.forward()
    theirs = {name: blob.data for name, blob in twin.blobs.items()}
    decisions = Decisions(tops_that_decide(original, theirs), tolerance)
    decisions.forward(original)
    expected = {name: original.blobs[name].data for name in files.net.outputs}
    return expected, decisions.compare_outputs(original, {name: name for name in expected}, theirs)

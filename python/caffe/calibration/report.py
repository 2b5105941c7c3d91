"""Measures the error of each layer that a plan computes in 8 bits, compared with float."""
import os
import tempfile
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from .. import TEST, Net
from .._caffe import InvalidArgument
from ..proto import caffe_pb2


@dataclass
class LayerError:
    """Root mean square errors, relative to the root mean square of the float values, when this layer alone computes in 8 bits.
    own: of the layer's top. outputs: of the net's output that changes most."""
    own: float
    outputs: float


def layer_errors(net, calibration, progress=None):
    """Measures errors on the batch that a net has just run. Returns (errors by layer, the worst for the outputs first; the error
    of the outputs when all layers compute in 8 bits).

    net: a caffe.Net of phase TEST in float, after forward(). calibration: a Calibration of it. progress: called with the number
    of layers done and the total. Raises InvalidArgument if no layer would compute in 8 bits.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "net.json")
        calibration.save(file)
        return _compare(net, _Float(net, file), progress)


def _compare(net, original, progress):
    everything = original.quantised()
    layers = original.layers_in_8_bits(everything)
    if not layers:
        notes = [step.precision_note for step in everything.plan().steps if step.precision_note]
        raise InvalidArgument("no layer would compute in 8 bits: " + (notes[0] if notes else "none has weights"))
    errors = {}
    for done, layer in enumerate(layers, start=1):
        alone = original.quantised(layer)
        top = net.top_names[layer][0]
        errors[layer] = LayerError(_error(net, alone, top), _of_outputs(net, alone))
        if progress is not None:
            progress(done, len(layers))
    worst_first = OrderedDict(sorted(errors.items(), key=lambda one: -one[1].outputs))
    return worst_first, _of_outputs(net, everything)


class _Float:
    """A float net that makes copies of itself with one layer or all layers quantized."""

    def __init__(self, net, file):
        self.net = net
        self.definition = net.definition
        self.definition.calibration = file
        self.definition.ClearField("precision")
        for layer in self.definition.layer:
            layer.ClearField("precision")
        self.inputs = self._replace_data()

    def _replace_data(self):
        """Replaces data layers by Input layers, so that all nets see the same batch. Returns the blobs to fill."""
        blobs = list(self.net.inputs)
        for layer in self.definition.layer:
            if layer.bottom or layer.type == "Input" or layer.name in self.net.params:
                continue
            tops = list(layer.top)
            replaced = caffe_pb2.LayerParameter(name=layer.name, type="Input", top=tops)
            for top in tops:
                replaced.input_param.shape.add(dim=self.net.blobs[top].shape)
            layer.CopyFrom(replaced)
            blobs += tops
        return blobs

    def quantised(self, layer=None):
        """The net with one layer, or all layers, in 8 bits, after a forward pass on the batch."""
        definition = caffe_pb2.NetParameter()
        definition.CopyFrom(self.definition)
        if layer is None:
            definition.precision = caffe_pb2.INT8
        else:
            next(one for one in definition.layer if one.name == layer).precision = caffe_pb2.INT8
        net = Net(definition, TEST)
        net.share_with(self.net)
        for blob in self.inputs:
            net.blobs[blob].reshape(*self.net.blobs[blob].shape)
            net.blobs[blob].data[...] = self.net.blobs[blob].data
        net.forward()
        return net

    @staticmethod
    def layers_in_8_bits(net):
        steps = [step for step in net.plan().steps if step.kernel.endswith(("-int8", "-int8-reference"))]
        return [step.layers.partition("+")[0] for step in steps]


def _of_outputs(net, other):
    return max(_error(net, other, output) for output in net.outputs)


def _error(net, other, blob):
    want = np.asarray(net.blobs[blob].data, np.float64)
    got = np.asarray(other.blobs[blob].data, np.float64)
    own = np.sqrt(np.mean(want ** 2))
    return float(np.sqrt(np.mean((got - want) ** 2)) / max(own, 1e-30))

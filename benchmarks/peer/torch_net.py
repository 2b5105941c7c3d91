"""The net of definition.steps in PyTorch, as a PyTorch user would write it."""
import json

import torch
from torch import nn
from torch.nn import functional


class _Sum(nn.Module):
    def __init__(self, in_place):
        super().__init__()
        self.in_place = in_place

    def forward(self, first, *others):
        for other in others:
            first = first.add_(other) if self.in_place else first + other
        return first


class _Concat(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, *parts):
        return torch.cat(parts, self.axis)


class _InnerProduct(nn.Linear):
    def forward(self, x):
        return super().forward(torch.flatten(x, 1))


class _Loss(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, scores, labels):
        return self.factor * functional.cross_entropy(torch.flatten(scores, 1), labels)


def _convolution(step, weight, bias=None):
    return nn.Conv2d(weight.shape[1] * step["group"], weight.shape[0], tuple(weight.shape[2:]), tuple(step["stride"]),
                     tuple(step["pad"]), tuple(step["dilation"]), step["group"], bias is not None)


def _batch_norm(step, channels, weight=None, bias=None):
    return nn.BatchNorm2d(channels, step["eps"], affine=weight is not None)


def _relu(step):
    return nn.LeakyReLU(step["slope"], step["in_place"]) if step["slope"] else nn.ReLU(step["in_place"])


# PyTorch's ceil_mode drops a last window that starts in the padding, like Caffe; its mean counts padding.
MODULES = {
    "average_pool": lambda step: nn.AvgPool2d(tuple(step["kernel"]), tuple(step["stride"]), tuple(step["pad"]),
                                              ceil_mode=step["rounds_up"], count_include_pad=True),
    "clip": lambda step: nn.Hardtanh(step["low"], step["high"], step["in_place"]),
    "concat": lambda step: _Concat(step["axis"]),
    "convolution": _convolution,
    "dropout": lambda step: nn.Dropout(step["ratio"]),
    "flatten": lambda step: nn.Flatten(),
    "global_average_pool": lambda step: nn.AdaptiveAvgPool2d(1),
    "global_max_pool": lambda step: nn.AdaptiveMaxPool2d(1),
    "inner_product": lambda step, weight, bias=None: _InnerProduct(weight.shape[1], weight.shape[0], bias is not None),
    "loss": lambda step: _Loss(step["factor"]),
    "lrn": lambda step: nn.LocalResponseNorm(step["size"], step["alpha"], step["beta"], step["k"]),
    "max_pool": lambda step: nn.MaxPool2d(tuple(step["kernel"]), tuple(step["stride"]), tuple(step["pad"]),
                                          ceil_mode=step["rounds_up"]),
    "relu": _relu,
    "softmax": lambda step: nn.Softmax(step["axis"]),
    "sum": lambda step: _Sum(step["in_place"]),
}


class TorchNet(nn.Module):
    """forward(images, labels) returns the weighted sum of the net's losses.

    steps: from definition.steps. weights: arrays or tensors by Caffe's name ("conv1.0"); they determine the modules' shapes,
    and their values are copied.
    """

    def __init__(self, steps, weights):
        super().__init__()
        self.steps = steps
        self.parameter_of = {}  # Caffe's name -> parameter
        channels = {}
        modules = []
        for step in steps:
            given = [weights[key] for key in step["weights"]]
            if step["kind"] == "batch_norm":
                module = _batch_norm(step, channels[step["inputs"][0]], *given)
            else:
                module = MODULES[step["kind"]](step, *given)
            modules.append(module)
            self._copy(step, module, given)
            channels[step["output"]] = self._channels(step, channels, given)
        self.layers = nn.ModuleList(modules)

    def _copy(self, step, module, values):
        for key, value, parameter in zip(step["weights"], values, (module.weight, module.bias) if values else ()):
            self.parameter_of[key] = parameter
            with torch.no_grad():
                parameter.copy_(torch.as_tensor(value).reshape(parameter.shape))

    @staticmethod
    def _channels(step, channels, values):
        if step["kind"] in ("convolution", "inner_product"):
            return values[0].shape[0]
        known = [channels.get(name) for name in step["inputs"]]
        return sum(known) if step["kind"] == "concat" and None not in known else known[0]

    def forward(self, images, labels):
        values = dict(zip(self.input_names(), (images, labels)))
        losses = []
        for step, layer in zip(self.steps, self.layers):
            result = layer(*[values[name] for name in step["inputs"]])
            if step["kind"] == "loss":
                losses.append(result)
            values[step["output"]] = result
            for name in step["release"]:
                del values[name]
            del result
        return sum(losses)

    def input_names(self):
        """Images first: the first step reads them, and a loss reads the labels last."""
        loss = next(step for step in self.steps if step["kind"] == "loss")
        return self.steps[0]["inputs"][0], loss["inputs"][1]


class InferenceNet(TorchNet):
    """forward(images) returns the last value. Normalizations have mean 0 and variance 1."""

    @classmethod
    def of(cls, folder):
        """Loads the net from steps.json and weights.npz."""
        import numpy as np  # here, because training does not need it
        with np.load(folder / "weights.npz") as weights:
            return cls(json.loads((folder / "steps.json").read_text(encoding="utf-8")), weights)

    def forward(self, images):  # pylint: disable=arguments-differ
        values = {self.steps[0]["inputs"][0]: images}
        for step, layer in zip(self.steps, self.layers):
            values[step["output"]] = layer(*[values[name] for name in step["inputs"]])
        return values[self.steps[-1]["output"]]

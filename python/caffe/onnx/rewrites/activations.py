"""Element-wise operators."""
import numpy as np

from .registry import rewrite


def _bounds(node):
    """The bounds of a Clip; None if they are not constants."""
    bounds = [node.constant(k) for k in (1, 2)]
    if any(k < len(node.inputs) and node.inputs[k] and bounds[k - 1] is None for k in (1, 2)):
        return None
    return [None if bound is None else float(bound) for bound in bounds]


@rewrite("Clip")
def clip_as_relu_and_min(node, onnx):
    """Clip from 0 on as Relu and Min."""
    bounds = _bounds(node)
    if bounds is None or bounds[0] != 0:
        return None
    positive = onnx.op("Relu", node.inputs[0])
    return positive if bounds[1] is None else onnx.op("Min", positive, onnx.constant(bounds[1]))


@rewrite("Clip")
def clip_as_max_and_min(node, onnx):
    """Clip as Max and Min."""
    bounds = _bounds(node)
    if bounds is None or bounds == [None, None]:
        return None
    result = node.inputs[0]
    for kind, bound in zip(("Max", "Min"), bounds):
        result = result if bound is None else onnx.op(kind, result, onnx.constant(bound))
    return result


@rewrite("Abs")
def abs_as_max(node, onnx):
    """Abs as Max of both signs."""
    return onnx.op("Max", node.inputs[0], onnx.scaled(node.inputs[0], -1))


@rewrite("HardSwish")
def hard_swish_as_hard_sigmoid(node, onnx):
    """HardSwish as HardSigmoid and Mul."""
    return onnx.op("Mul", node.inputs[0], onnx.op("HardSigmoid", node.inputs[0], alpha=1 / 6, beta=0.5))


@rewrite("HardSigmoid")
def hard_sigmoid_as_clip(node, onnx):
    """HardSigmoid as Mul, Add and Clip."""
    line = onnx.scaled(node.inputs[0], node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5))
    return onnx.clip(line, 0, 1)


@rewrite("Mish")
def mish_as_softplus(node, onnx):
    """Mish as Softplus, Tanh and Mul."""
    return onnx.op("Mul", node.inputs[0], onnx.op("Tanh", onnx.op("Softplus", node.inputs[0])))


@rewrite("Softplus")
def softplus_as_log(node, onnx):
    """Softplus as Relu, Exp and Log."""
    x = node.inputs[0]
    falling = onnx.op("Sub", x, onnx.scaled(onnx.op("Relu", x), 2))  # -|x|
    return onnx.op("Add", onnx.op("Relu", x), onnx.op("Log", onnx.scaled(onnx.op("Exp", falling), 1, 1)))


@rewrite("Gelu")
def gelu_as_erf(node, onnx):
    """Gelu as Erf and Mul."""
    if node.attributes.get("approximate", "none") != "none":
        return None
    x = node.inputs[0]
    return onnx.op("Mul", x, onnx.scaled(onnx.op("Erf", onnx.scaled(x, np.sqrt(0.5))), 0.5, 0.5))


@rewrite("Elu")
def elu_as_exp(node, onnx):
    """Elu as Relu, Min and Exp."""
    x = node.inputs[0]
    below = onnx.scaled(onnx.op("Exp", onnx.op("Min", x, onnx.constant(0))), 1, -1)
    return onnx.op("Add", onnx.op("Relu", x), onnx.scaled(below, node.attributes.get("alpha", 1.0)))


@rewrite("PRelu")
def prelu_as_relu(node, onnx):
    """PRelu as Relu of both signs."""
    x, slope = node.inputs
    below = onnx.op("Relu", onnx.scaled(x, -1))
    return onnx.op("Sub", onnx.op("Relu", x), onnx.op("Mul", slope, below))

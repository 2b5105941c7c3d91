"""Element-wise layers."""
import numpy as np

from ..registry import writes


def _unary(kind):
    return lambda layer, onnx: onnx.op(kind, layer.bottom)


for _type, _kind in {"AbsVal": "Abs", "BNLL": "Softplus", "Softplus": "Softplus", "Sigmoid": "Sigmoid", "TanH": "Tanh"}.items():
    writes(_type)(_unary(_kind))


@writes("ReLU")
def relu(layer, onnx):
    slope = layer.param.relu_param.negative_slope
    return onnx.op("Relu", layer.bottom) if slope == 0 else onnx.op("LeakyRelu", layer.bottom, alpha=slope)


@writes("ReLU6")
def relu6(layer, onnx):
    return onnx.clip(layer.bottom, 0, layer.param.relu6_param.threshold)


@writes("PReLU")
def prelu(layer, onnx):
    slopes = layer.blobs[0]
    shape = () if layer.param.prelu_param.channel_shared else (slopes.size, *[1] * (len(layer.shape) - 2))
    return onnx.op("PRelu", layer.bottom, layer.weight(onnx, 0, slopes.reshape(shape or (1,))))


@writes("ELU")
def elu(layer, onnx):
    return onnx.op("Elu", layer.bottom, alpha=layer.param.elu_param.alpha)


@writes("Clip")
def clip(layer, onnx):
    options = layer.param.clip_param
    return onnx.clip(layer.bottom, options.min, options.max)


@writes("Swish", "SiLU")
def swish(layer, onnx):
    beta = layer.param.swish_param.beta if layer.type == "Swish" else 1
    return onnx.op("Mul", layer.bottom, onnx.op("Sigmoid", onnx.scaled(layer.bottom, beta)))


@writes("HardSigmoid")
def hard_sigmoid(layer, onnx):
    options = layer.param.hard_sigmoid_param
    return onnx.op("HardSigmoid", layer.bottom, alpha=options.alpha, beta=options.beta)


@writes("HardSwish")
def hard_swish(layer, onnx):
    if onnx.opset >= 14:
        return onnx.op("HardSwish", layer.bottom)
    return onnx.op("Mul", layer.bottom, onnx.op("HardSigmoid", layer.bottom, alpha=1 / 6, beta=0.5))


@writes("Mish")
def mish(layer, onnx):
    if onnx.opset >= 18:
        return onnx.op("Mish", layer.bottom)
    return onnx.op("Mul", layer.bottom, onnx.op("Tanh", onnx.op("Softplus", layer.bottom)))


@writes("GELU")
def gelu(layer, onnx):
    if onnx.opset >= 20:
        return onnx.op("Gelu", layer.bottom)
    phi = onnx.scaled(onnx.op("Erf", onnx.scaled(layer.bottom, np.sqrt(0.5))), 0.5, 0.5)
    return onnx.op("Mul", layer.bottom, phi)


@writes("Threshold")
def threshold(layer, onnx):
    above = onnx.op("Greater", layer.bottom, onnx.constant(layer.param.threshold_param.threshold))
    return onnx.cast(above, np.float32)


@writes("Power")
def power(layer, onnx):
    options = layer.param.power_param
    if options.power == 0:  # the result is 1
        return onnx.scaled(onnx.op("Sub", layer.bottom, layer.bottom), 1, 1)
    inner = onnx.scaled(layer.bottom, options.scale, options.shift)
    return inner if options.power == 1 else onnx.op("Pow", inner, onnx.constant(options.power))


@writes("Exp")
def exp(layer, onnx):
    options = layer.param.exp_param
    log_base = 1 if options.base == -1 else np.log(options.base)
    return onnx.op("Exp", onnx.scaled(layer.bottom, options.scale * log_base, options.shift * log_base))


@writes("Log")
def log(layer, onnx):
    options = layer.param.log_param
    natural = onnx.op("Log", onnx.scaled(layer.bottom, options.scale, options.shift))
    return natural if options.base == -1 else onnx.scaled(natural, 1 / np.log(options.base))


@writes("Dropout")
def dropout(layer, onnx):
    options = layer.param.dropout_param
    if options.sample_weights_test:
        layer.refuse("sample_weights_test: true; an ONNX model for inference draws no random numbers")
    return onnx.scaled(layer.bottom, 1 if options.scale_train else 1 - options.dropout_ratio)


@writes("Split", "DropPath")
def identity(layer, onnx):
    return [layer.bottom] * len(layer.tops)

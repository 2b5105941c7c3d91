"""Element-wise operators."""
import math

import numpy as np
from onnx import TensorProto

from .formulas import formula
from .registry import reads

for _operator, _type in {"Relu": "ReLU", "Sigmoid": "Sigmoid", "Tanh": "TanH", "Abs": "AbsVal", "Softplus": "BNLL", "Exp": "Exp",
                         "Log": "Log", "HardSwish": "HardSwish", "Mish": "Mish"}.items():
    reads(_operator)(lambda node, kind=_type: node.layer(kind))


@reads("LeakyRelu")
def leaky_relu(node):
    node.layer("ReLU", relu_param={"negative_slope": node.get("alpha", 0.01)})


@reads("PRelu")
def prelu(node):
    slopes = node.weights(1, "slopes")
    shape = node.shape()
    shared = slopes.size == 1
    node.require(shared or (slopes.size == shape[1] and slopes.size == np.prod(slopes.shape[-len(shape) + 1:][:1])),
                 f"slopes of shape {slopes.shape} are neither one nor one per channel")
    node.layer("PReLU", blobs=[slopes.ravel()], prelu_param={"channel_shared": shared})


@reads("Elu")
def elu(node):
    node.layer("ELU", elu_param={"alpha": node.get("alpha", 1.0)})


@reads("HardSigmoid")
def hard_sigmoid(node):
    follower = node.follower("Mul")
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    if follower is not None and node.inputs[0] in follower.inputs and np.allclose([alpha, beta], [1 / 6, 0.5]):
        node.take_in(follower)  # the form exported for opsets without HardSwish
        node.layer("HardSwish")
        return
    node.layer("HardSigmoid", hard_sigmoid_param={"alpha": alpha, "beta": beta})


@reads("Clip")
def clip(node):
    least, most = clip_bounds(node)
    if least == 0 and most is not None:
        node.layer("ReLU6", relu6_param={"threshold": most})
        return
    limits = np.finfo(np.float32)
    node.layer("Clip", clip_param={"min": float(limits.min) if least is None else least,
                                   "max": float(limits.max) if most is None else most})


def clip_bounds(node):
    """Lower and upper bound of a Clip; None for a missing bound."""
    bounds = [node.attributes.get("min"), node.attributes.get("max")]  # attributes before opset 11
    for k in (0, 1):
        if node.has(k + 1):
            bounds[k] = node.weights(k + 1, "bounds").item()
    return bounds


def add_begins_hard_sigmoid(node):
    """Recognizes Clip(x + 3, 0, 6) / 6 and its product with x, in the operator orders used by exporters for opsets without
    HardSwish. If this Add begins such a pattern, writes its layer and returns True."""
    which = 1 if node.constant(1) is not None else 0
    x, parts = node.inputs[1 - which], []
    follower = node.follower("Clip")
    if follower is None or not _is_number(node.constant(which), 3) or node.shape(1 - which) != node.top_shape \
            or any(follower.has(k) and follower.constant(k) is None for k in (1, 2)) or clip_bounds(follower) != [0, 6]:
        return False
    is_divided, has_x = False, False
    while follower is not None:
        parts.append(follower)
        if is_divided and has_x:
            break
        reader = follower.follower("Mul", "Div")
        other = None if reader is None else next((k for k, name in enumerate(reader.inputs) if name != follower.outputs[0]), None)
        if other is None:
            break
        is_sixth = (_is_number(reader.constant(other), 6) if reader.operator == "Div" and other == 1
                    else reader.operator == "Mul" and _is_number(reader.constant(other), 1 / 6))
        is_by_x = reader.operator == "Mul" and reader.inputs[other] == x
        if not ((is_sixth and not is_divided) or (is_by_x and not has_x)):
            break
        is_divided, has_x, follower = is_divided or is_sixth, has_x or is_by_x, reader
    if not is_divided:
        return False
    for part in parts:
        node.take_in(part)
    if has_x:
        node.layer("HardSwish", bottoms=[x])
    else:
        node.layer("HardSigmoid", bottoms=[x], hard_sigmoid_param={"alpha": 1 / 6, "beta": 0.5})
    return True


def _is_number(array, number):
    return array is not None and array.size == 1 and np.isclose(array.item(), number, rtol=1e-4)


def _power(node, **options):
    node.layer("Power", power_param=options)


@reads("Sqrt")
def sqrt(node):
    _power(node, power=0.5)


@reads("Reciprocal")
def reciprocal(node):
    _power(node, power=-1.0)


@reads("Neg")
def neg(node):
    _power(node, scale=-1.0)


@reads("Pow")
def power(node):
    exponent = node.constant(1)
    if exponent is not None and exponent.size == 1 and node.constant(0) is None and node.shape() == node.top_shape:
        _power(node, power=float(exponent.item()))
    else:
        node.layer("Binary", bottoms=[node.blob_of(0), node.blob_of(1)], binary_param={"operation": 6})  # POWER


@reads("Gelu")
def gelu(node):
    if node.get("approximate", "none") == "none":
        node.layer("GELU")
    else:
        formula(node, f"a / 2 * (1 + tanh({math.sqrt(2 / math.pi)!r} * (a + 0.044715 * a^3)))")


@reads("Erf")
def erf(node):
    parts, x = _gelu_of(node)
    if x is None:
        formula(node, "erf(a)")
        return
    for part in parts:
        node.take_in(part)
    node.layer("GELU", bottoms=[x])


def _gelu_of(node):
    """Recognizes GELU where it is not an operator: x * (1 + erf(x / sqrt(2))) / 2, in any order. Returns the nodes after erf and x, or
    None."""
    scaled = node.source_node(node.inputs[0])
    if scaled is None or scaled.op_type not in ("Div", "Mul"):
        return [], None
    x, factor = scaled.input[0], node.source.constants.get(scaled.input[1])
    expected = np.sqrt(2) if scaled.op_type == "Div" else np.sqrt(0.5)
    if factor is None or not np.allclose(factor, expected, rtol=1e-3):
        return [], None
    product = 1.0  # of constant factors after erf; x is multiplied once and 1 added once
    seen_x = False
    shift = 0.0
    parts, last = [], node
    while not (seen_x and np.isclose(product, 0.5) and np.isclose(shift, 0.5)):
        follower = last.follower("Mul", "Add", "Div")
        if follower is None:
            return [], None
        other = next((name for name in follower.inputs if name != last.outputs[0]), None)
        constant = node.source.constants.get(other)
        if follower.operator == "Mul" and other == x and not seen_x:
            seen_x = True
        elif follower.operator == "Mul" and constant is None and not seen_x and node.is_scaled(other, x):
            seen_x, product, shift = True, product * node.is_scaled(other, x), shift * node.is_scaled(other, x)
        elif constant is None or constant.size != 1 or (follower.operator == "Add" and seen_x):
            return [], None
        elif follower.operator == "Add":
            shift += float(constant.item())
        else:
            number = float(constant.item())
            number = 1 / number if follower.operator == "Div" else number
            product, shift = product * number, shift * number
        parts.append(follower)
        last = follower
    return parts, x


_INTEGERS = {getattr(TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)}
_HALVES = {TensorProto.FLOAT16: 1, TensorProto.BFLOAT16: 2}  # Precision


def _are_places(node):
    """True if the result is read only as positions, which are whole numbers."""
    readers = node.source.readers.get(node.outputs[0], [])
    return node.outputs[0] not in node.source.outputs and all(reader.op_type in _BY_PLACES for reader in readers)


_BY_PLACES = ("Gather", "ScatterElements", "Scatter")


@reads("Cast")
def cast(node):
    """Rounds floats to 16 bits, and cuts off what integers do not hold; other types hold the same numbers."""
    to, kind = node.get("to"), _HALVES.get(node.get("to"))
    is_float = node.source.arrays[node.inputs[0]].dtype in (np.float16, np.float32, np.float64)
    if is_float and to == TensorProto.BOOL:
        formula(node, "1 - (a == 0)")
    elif is_float and to in _INTEGERS and not _are_places(node):
        formula(node, "sign(a) * floor(abs(a))")
    elif kind is None or node.source.arrays[node.inputs[0]].dtype != np.float32:
        node.alias()
    else:
        node.layer("Cast", cast_param={"type": kind})


@reads("Identity", "Dropout")
def identity(node):
    node.alias()

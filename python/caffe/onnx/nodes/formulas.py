"""Operators that have no layer of their own, as formulas of Expression layers."""
import re

import numpy as np

from .pooling import axes_of
from .registry import reads

# Texts of formulas, in which a and b are the inputs and {name} is an attribute.
_FORMULAS = {
    "Not": "a == 0",
    "Equal": "a == b",
    "Less": "a < b",
    "LessOrEqual": "a <= b",
    "GreaterOrEqual": "a >= b",
    "Or": "max(a, b)",
    "Xor": "abs(a - b)",
    "IsNaN": "1 - (a == a)",
    "Sin": "sin(a)",
    "Cos": "cos(a)",
    "Tan": "sin(a) / cos(a)",
    "Sinh": "(exp(a) - exp(-a)) / 2",
    "Cosh": "(exp(a) + exp(-a)) / 2",
    "Sign": "sign(a)",
    "Floor": "floor(a)",
    "Ceil": "-floor(-a)",
    "Round": "round(a)",
    "Softsign": "a / (1 + abs(a))",
    "Selu": "{gamma} * (relu(a) + {alpha} * (exp(min(a, 0)) - 1))",
    "Celu": "relu(a) + {alpha} * (exp(min(a, 0) / {alpha}) - 1)",
    "ThresholdedRelu": "where(a > {alpha}, a, 0)",
    "Shrink": "where(a < -({lambd}), a + {bias}, where(a > {lambd}, a - {bias}, 0))",
    "Swish": "a * sigmoid({alpha} * a)",
}
# Defaults of attributes, by ONNX's specification.
_DEFAULTS = {
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "Celu": {"alpha": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
    "Shrink": {"lambd": 0.5, "bias": 0.0},
    "Swish": {"alpha": 1.0},
}
_REDUCTIONS = {
    "ReduceMax": "max(a{axis})",
    "ReduceMin": "min(a{axis})",
    "ReduceL2": "sqrt(sum(a^2{axis}))",
    "ReduceLogSum": "log(sum(a{axis}))",
    "ReduceLogSumExp": "log(sum(exp(a - max(a{axis})){axis})) + max(a{axis})",
}



def formula(node, text):
    """Writes a layer that computes `text` of inputs 0 and 1, which are called a and b there. A constant of one number becomes a part
    of the formula."""
    numbers, bottoms, names = {}, [], []
    for index, name in enumerate("ab"[:len(node.inputs)]):
        array = node.constant(index)
        is_number = array is not None and array.size == 1 and np.isfinite(array.item())
        if is_number and all(node.shape(k) == node.top_shape for k in range(len(node.inputs)) if k != index):
            numbers[name] = f"({float(array.item())!r})"
        else:
            bottoms.append(node.blob_of(index))
            names.append(name)
    text = re.sub(r"\b[ab]\b", lambda found: numbers.get(found[0], found[0]), text)
    node.layer("Expression", bottoms=bottoms, expression_param={"expr": text, "name": names})


def _pointwise(node):
    attributes = {name: node.get(name, default) for name, default in _DEFAULTS.get(node.operator, {}).items()}
    node.require(all(map(np.isfinite, attributes.values())), f"attributes {attributes}")
    attributes = {name: f"({value!r})" for name, value in attributes.items()}
    formula(node, _FORMULAS[node.operator].format(**attributes))


reads(*_FORMULAS)(_pointwise)


@reads("Greater")
def greater(node):
    """A comparison with a number and the Cast to float that follows are one layer."""
    limit, follower = node.constant(1), node.follower("Cast")
    if limit is None or limit.size != 1 or follower is None or node.shape() != node.top_shape:
        formula(node, "a > b")
        return
    node.take_in(follower)
    node.layer("Threshold", threshold_param={"threshold": float(limit.item())})


@reads(*_REDUCTIONS)
def reduce(node):
    axes = axes_of(node)
    axis = "" if not axes else f", axis={axes[0]}" if len(axes) == 1 else f", axis=({', '.join(map(str, axes))})"
    text = _REDUCTIONS[node.operator].format(axis=axis)
    if not axes and node.get("noop_with_empty_axes", 0):
        node.alias()
        return
    between = node.outputs[0] if node.get("keepdims", 1) else node.scratch("reduced")
    node.layer("Expression", tops=[between], expression_param={"expr": text, "name": ["a"]})
    if between != node.outputs[0]:
        node.reshape(between, node.outputs[0], node.top_shape, keeps_items=bool(axes) and 0 not in map(node.axis, axes))


@reads("LpNormalization")
def lp_normalization(node):
    power, axis = node.get("p", 2), node.get("axis", -1)
    node.require(power in (1, 2), f"a norm of order {power}")
    formula(node, f"a / sqrt(sum(a^2, axis={axis}))" if power == 2 else f"a / sum(abs(a), axis={axis})")

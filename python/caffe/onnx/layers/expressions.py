"""Formulas of Expression layers, which the library has read without errors: docs/expressions.md has their grammar."""
import ast
import math
import re

import numpy as np

from ..registry import writes

_FUNCTIONS = {"abs": "Abs", "cos": "Cos", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "relu": "Relu", "round": "Round",
              "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "softplus": "Softplus", "sqrt": "Sqrt", "tanh": "Tanh",
              "max": "Max", "min": "Min", "pow": "Pow"}
_OPERATORS = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow"}
_COMPARISONS = {ast.Lt: "Less", ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal"}


def _parsed(expr):
    """The tree of the same formula in Python, whose operators have the same precedence. Names begin with _ there."""
    text = re.sub(r"(?<![\w.])0+(?=\d)", "", expr)  # Python has no whole numbers that begin with 0
    text = re.sub(r"(?<![\w.])([A-Za-z_]\w*)(?!\w|\s*=[^=])", r"_\1", text)
    return ast.parse(" ".join(text.replace("^", "**").split()), mode="eval").body


class _Formula:
    def __init__(self, onnx, tensors):
        self.onnx, self.tensors = onnx, tensors

    def write(self, node):
        onnx = self.onnx
        if isinstance(node, ast.Constant):
            return onnx.constant(float(node.value))
        if isinstance(node, ast.Name):
            name = node.id[1:]
            return self.tensors[name] if name in self.tensors else onnx.constant(math.pi)
        if isinstance(node, ast.UnaryOp):
            return onnx.op("Neg", self.write(node.operand))
        if isinstance(node, ast.BinOp):
            return onnx.op(_OPERATORS[type(node.op)], self.write(node.left), self.write(node.right))
        if isinstance(node, ast.Compare):
            return onnx.cast(self._compare(_COMPARISONS[type(node.ops[0])], self.write(node.left), self.write(node.comparators[0])), np.float32)
        name, operands = node.func.id[1:], [self.write(operand) for operand in node.args]
        if name in ("sum", "mean", "max", "min") and len(operands) == 1:
            return self._reduce(name, operands[0], node.keywords)
        if name in _FUNCTIONS:
            return onnx.op(_FUNCTIONS[name], *operands)
        return getattr(self, f"_{name}")(*operands)

    def _compare(self, kind, left, right):
        if kind.endswith("OrEqual") and self.onnx.opset < 12:
            return self.onnx.op("Or", self.onnx.op(kind.removesuffix("OrEqual"), left, right), self.onnx.op("Equal", left, right))
        return self.onnx.op(kind, left, right)

    def _reduce(self, name, tensor, keywords):
        kind = f"Reduce{name.capitalize()}"
        if not keywords:
            return self.onnx.op(kind, tensor, keepdims=1)
        axes = ast.literal_eval(keywords[0].value)
        return self.onnx.over_axes(kind, tensor, axes if isinstance(axes, tuple) else [axes], keepdims=1)

    def _square(self, tensor):
        return self.onnx.op("Mul", tensor, tensor)

    def _rsqrt(self, tensor):
        return self.onnx.op("Reciprocal", self.onnx.op("Sqrt", tensor))

    def _gelu(self, tensor):
        probability = self.onnx.scaled(self.onnx.op("Erf", self.onnx.scaled(tensor, math.sqrt(0.5))), 0.5, 0.5)
        return self.onnx.op("Mul", tensor, probability)

    def _clip(self, tensor, least, most):
        return self.onnx.op("Min", self.onnx.op("Max", tensor, least), most)

    def _where(self, condition, tensor, other):
        return self.onnx.where(self.onnx.cast(condition, np.bool_), tensor, other)


@writes("Expression")
def expression(layer, onnx):
    options = layer.param.expression_param
    names = list(options.name) or [f"x{k}" if k > 2 else "xyz"[k] for k in range(len(layer.bottoms))]
    result = _Formula(onnx, dict(zip(names, layer.bottoms))).write(_parsed(options.expr))
    return onnx.op("Identity", result) if result in layer.bottoms else result

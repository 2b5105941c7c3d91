"""Sums and products of tensors and constants."""
import numpy as np

from .activations import add_begins_hard_sigmoid
from .registry import reads

_KINDS = {"Add": 1, "Sub": 1, "Mul": 0, "Div": 0}  # EltwiseParameter's operations
_OPERATIONS = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3, "Max": 4, "Min": 5, "Pow": 6, "And": 2}  # BinaryParameter's


@reads("Add", "Sub", "Mul", "Div")
def binary(node):
    constants = [node.constant(k) for k in (0, 1)]
    if constants[0] is not None or constants[1] is not None:
        if node.operator == "Add" and add_begins_hard_sigmoid(node):
            return
        which = 1 if constants[1] is not None else 0
        _with_constant(node, node.inputs[1 - which], constants[which], is_right=which == 1)
    else:
        _of_two(node)


def _with_constant(node, tensor, array, is_right):
    shape = node.source.shape(tensor)
    whole = np.broadcast_shapes(shape, array.shape)
    if whole != shape:  # the constant is larger than the tensor
        held = node.hold(np.broadcast_to(array, whole))
        _spread(node, (shape, whole) if is_right else (whole, shape), [tensor, held] if is_right else [held, tensor])
        return
    if array.size == 1:
        _with_number(node, tensor, float(array.item()), is_right)
        return
    operation = _KINDS[node.operator]
    if not is_right and node.operator in ("Sub", "Div"):
        tensor = _opposite(node, tensor)
    else:
        array = {"Sub": np.negative, "Div": np.reciprocal}.get(node.operator, np.asarray)(array)
    if array.ndim == len(shape) and array.shape[0] != 1:  # varies along items
        held = node.hold(np.broadcast_to(array, shape))
        node.layer("Eltwise", bottoms=[tensor, held], eltwise_param={"operation": operation})
        return
    covered = _covered(array, len(shape))
    if covered is None or not _fits(covered, shape):
        combine(node, [tensor, node.hold(array)], "Mul" if operation == 0 else "Add")
        return
    axis, part = covered
    if node.operator in ("Mul", "Div"):
        _scale(node, tensor, axis, part)
    else:
        node.layer("Bias", bottoms=[tensor], blobs=[part], bias_param={"axis": axis, "num_axes": part.ndim})


def _opposite(node, tensor):
    """The blob that a Sub or Div adds or multiplies by instead."""
    opposite = node.scratch("opposite")
    node.layer("Power", bottoms=[tensor], tops=[opposite], power_param={"scale": -1.0} if node.operator == "Sub" else {"power": -1.0})
    return opposite


def _covered(array, axes):
    """First axis, and the array without surrounding axes of extent 1, as parameters of Scale and Bias; None if these cannot have it,
    because it differs between items."""
    full = array.reshape([1] * (axes - array.ndim) + list(array.shape))
    extents = [axis for axis in range(axes) if full.shape[axis] != 1]
    first, last = extents[0], extents[-1]
    return (first, full.reshape(full.shape[first:last + 1])) if first > 0 else None


def _fits(covered, shape):
    axis, part = covered
    return part.shape == shape[axis:axis + part.ndim]


def _scale(node, tensor, axis, factors):
    """Writes a Scale, merged with an Add that follows, as in batch normalization and in our exports."""
    blobs, follower = [factors], node.follower("Add")
    bias = follower and next((follower.constant(k) for k in (0, 1) if follower.constant(k) is not None), None)
    if bias is not None and bias.size == factors.size and node.source.shape(node.outputs[0]) == follower.top_shape:
        same = _covered(bias, len(node.top_shape))
        if same is not None and same[0] == axis and same[1].shape == factors.shape:
            node.take_in(follower)
            blobs.append(same[1])
    node.layer("Scale", bottoms=[tensor], blobs=blobs,
               scale_param={"axis": axis, "num_axes": factors.ndim, "bias_term": len(blobs) == 2})


def _with_number(node, tensor, number, is_right):
    if node.operator == "Div" and not is_right:
        between = node.scratch("inverse")
        node.layer("Power", bottoms=[tensor], tops=[between], power_param={"power": -1.0})
        node.layer("Power", bottoms=[between], power_param={"scale": number})
        return
    scale = {"Mul": number, "Div": 1 / number if number else np.inf}.get(node.operator, 1.0)
    if node.operator == "Sub" and not is_right:
        scale = -1.0
    shift = {"Add": number, "Sub": -number if is_right else number}.get(node.operator, 0.0)
    node.layer("Power", bottoms=[tensor], power_param={"scale": scale, "shift": shift})


def _of_two(node):
    shapes = node.shape(0), node.shape(1)
    if shapes[0] != shapes[1]:
        _spread(node, shapes, node.inputs)
        return
    bottoms = list(node.inputs)
    if node.operator == "Mul" and _is_swish(node):
        return
    if node.operator == "Div":
        combine(node, bottoms)
        return
    coefficients = {"coeff": [1.0, -1.0]} if node.operator == "Sub" else {}
    node.layer("Eltwise", bottoms=bottoms, eltwise_param={"operation": _KINDS[node.operator], **coefficients})


def _is_swish(node):
    """Recognizes x * sigmoid(x): the Sigmoid layer becomes Swish if nothing else reads it."""
    for x, gate in (node.inputs, node.inputs[::-1]):
        writer = node.source_node(gate)
        if writer is None or writer.op_type != "Sigmoid" or node.source.only_reader(gate) is None:
            continue
        if writer.input[0] == x:
            node.replace_last("Sigmoid", gate, "SiLU", x)
            return True
    return False


def combine(node, bottoms, operator=None, tops=None):
    """A layer for an operation of two blobs, which are broadcast as ONNX does it."""
    node.layer("Binary", bottoms=bottoms, tops=tops, binary_param={"operation": _OPERATIONS[operator or node.operator]})


def _spread(node, shapes, operands):
    """Broadcasts the smaller operand: by Scale or Bias if it covers axes that follow each other, as in squeeze and excitation."""
    large, small = (0, 1) if np.prod(shapes[0]) >= np.prod(shapes[1]) else (1, 0)
    whole = shapes[large]
    shape = (1,) * (len(whole) - len(shapes[small])) + shapes[small]
    first, last = 0, len(shape)
    while last and shape[last - 1] == 1:
        last -= 1
    while first < last and shape[first] == 1 and whole[first] != 1:
        first += 1
    if node.operator not in ("Mul", "Add") or whole != node.top_shape or shape[first:last] != whole[first:last]:
        combine(node, operands)
        return
    operand = operands[small]
    if shape[first:last] != shapes[small]:
        flat = node.scratch("factors")
        layer = node.layer("Reshape", bottoms=[operand], tops=[flat])
        layer.reshape_param.shape.dim.extend(shape[first:last])
        operand = flat
    kind, options = ("Scale", "scale_param") if node.operator == "Mul" else ("Bias", "bias_param")
    node.layer(kind, bottoms=[operands[large], operand], **{options: {"axis": first}})


@reads("Sum", "Max", "Min", "And")
def several(node):
    bottoms = [node.blob_of(k) for k in range(len(node.inputs))]
    if all(node.shape(k) == node.shape() for k in range(len(bottoms))) and len(bottoms) > 1 and node.operator in ("Sum", "Max"):
        node.layer("Eltwise", bottoms=bottoms, eltwise_param={"operation": 1 if node.operator == "Sum" else 2})
        return
    if len(bottoms) == 1:
        node.alias(bottoms[0])
    for k in range(1, len(bottoms)):
        top = node.outputs[0] if k + 1 == len(bottoms) else node.scratch(f"of{k + 1}")
        combine(node, bottoms[:1] + bottoms[k:k + 1], "Add" if node.operator == "Sum" else None, [top])
        bottoms[0] = top


@reads("Softmax", "LogSoftmax")
def softmax(node):
    newer = node.source.proto.opset_import[0].version >= 13
    axis = node.axis(node.get("axis", -1 if newer else 1))
    node.require(newer or all(extent == 1 for extent in node.shape()[axis + 1:]), "a softmax over several axes")
    node.layer(node.operator, softmax_param={"axis": axis})

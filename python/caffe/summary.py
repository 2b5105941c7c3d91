"""A table of a net's layers with shapes, parameters and multiply-adds."""
from math import prod

from ._caffe import InvalidArgument
from .proto import caffe_pb2
from .pycaffe import bottoms_of, tops_of

COLUMNS = ("layer", "type", "reads", "output shape", "parameters", "multiply-adds")


def summarize(net):
    """One dict per layer of a Net: layer, type, reads (blob names), shapes (of its tops),
    parameters (count of the numbers that it learns or keeps), multiply_adds.

    multiply_adds: for one forward pass, of the products with weights (convolutions, inner products,
    recurrent layers, the products around attention), which take most of the time. Other layers count
    as 0. A shared parameter counts in each layer that uses it.
    """
    rows = []
    for k, (name, layer) in enumerate(zip(net._layer_names, net.layers)):
        blobs = net.params.get(name, ())
        rows.append({"layer": name, "type": layer.type, "reads": bottoms_of(net, k),
                     "shapes": [tuple(net.blobs[top].shape) for top in tops_of(net, k)],
                     "parameters": sum(blob.count for blob in blobs),
                     "multiply_adds": _multiply_adds(net, name, layer.type, blobs)})
    return rows


# Layers that use each weight once per position of their output.
_CONVOLUTIONS = ("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution")
# Layers that use each weight once per row of their first bottom, and how many of its axes count rows.
_BY_ROWS = {"GRU": 2, "LSTM": 2, "Lstm": 1, "MultiHeadAttention": 2, "RNN": 2}


def _multiply_adds(net, name, kind, blobs):
    if not blobs:
        return 0
    bottoms = [net.blobs[blob] for blob in net.bottom_names[name]]
    tops = [net.blobs[blob] for blob in net.top_names[name]]
    weights = blobs[0]
    if kind in _BY_ROWS:
        matrices = [blob.count for blob in blobs if len(blob.shape) == 2]
        rows = [prod(bottoms[0].shape[:_BY_ROWS[kind]])] * len(matrices)
        if kind == "MultiHeadAttention" and len(matrices) == 3:  # keys and values are made from a context
            rows[1] = prod(bottoms[1].shape[:2])
        return sum(row * matrix for row, matrix in zip(rows, matrices))
    if kind == "InnerProduct":
        outputs = net.layer_dict[name].layer_param.inner_product_param.num_output
        return weights.count // outputs * sum(top.count for top in tops)
    if kind == "PatchEmbed":
        return weights.count // weights.shape[0] * tops[0].count
    if kind in _CONVOLUTIONS or kind == "Deconvolution":
        axes = len(weights.shape) - 2
        counted = bottoms if kind == "Deconvolution" else tops
        return weights.count * sum(blob.count // blob.shape[-axes - 1] for blob in counted)
    return 0


def table(net):
    """summarize(net) as text, with totals in the last line."""
    rows = summarize(net)
    cells = [(row["layer"], row["type"], ", ".join(row["reads"]),
              ", ".join("x".join(map(str, shape)) or "scalar" for shape in row["shapes"]),
              f"{row['parameters']:,}" if row["parameters"] else "",
              f"{row['multiply_adds']:,}" if row["multiply_adds"] else "") for row in rows]
    total = net.plan().memory.parameter_count  # counts shared ones once
    cells.append((f"{len(rows)} layers", "", "", "", f"{total:,}", f"{sum(row['multiply_adds'] for row in rows):,}"))
    cells.insert(0, COLUMNS)
    widths = [max(len(row[k]) for row in cells) for k in range(len(COLUMNS))]
    lines = ["  ".join(cell.rjust(width) if k > 3 else cell.ljust(width)
                       for k, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in cells]
    return "\n".join([lines[0], *lines[1:-1], "-" * len(lines[-1]), lines[-1]])


def with_inputs(definition, shapes):
    """A copy of a NetParameter in which the blobs in `shapes` {name: dims} come from Inputs instead
    of data layers.

    Useful if databases are missing. Removes each layer without bottoms that writes one of these blobs;
    all its tops must be given, or the net reads an undefined blob.
    """
    written = {top for layer in definition.layer if not layer.bottom for top in layer.top}
    unknown = [name for name in shapes if name not in written]
    if unknown:
        raise InvalidArgument(f"no data layer of net {definition.name!r} writes {unknown[0]!r}; written: "
                              f"{', '.join(sorted(written)) or 'none'}")
    changed = caffe_pb2.NetParameter()
    changed.CopyFrom(definition)
    del changed.layer[:]
    for name, dims in shapes.items():
        layer = changed.layer.add(name=name, type="Input", top=[name])
        layer.input_param.shape.add(dim=dims)
    changed.layer.extend(layer for layer in definition.layer if layer.bottom or not set(layer.top) & set(shapes))
    return changed

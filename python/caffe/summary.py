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
    recurrent layers), which take most of the time. Other layers count as 0. A shared parameter counts
    in each layer that uses it.
    """
    rows = []
    for k, (name, layer) in enumerate(zip(net._layer_names, net.layers)):
        blobs = net.params.get(name, ())
        rows.append({"layer": name, "type": layer.type, "reads": bottoms_of(net, k),
                     "shapes": [tuple(net.blobs[top].shape) for top in tops_of(net, k)],
                     "parameters": sum(blob.count for blob in blobs),
                     "multiply_adds": _multiply_adds(net, name, layer.type, blobs)})
    return rows


def _multiply_adds(net, name, kind, blobs):
    if kind not in ("Convolution", "Deconvolution", "InnerProduct", "LSTM", "RNN"):
        return 0
    bottom = net.blobs[net.bottom_names[name][0]]
    if kind in ("LSTM", "RNN"):  # each step of each sequence uses each weight once
        return prod(bottom.shape[:2]) * sum(blob.count for blob in blobs if len(blob.shape) == 2)
    weights = blobs[0]
    if kind == "InnerProduct":
        outputs = net.layer_dict[name].layer_param.inner_product_param.num_output
        return weights.count // outputs * sum(net.blobs[top].count for top in net.top_names[name])
    # A weight is used once per position: of the output, or for Deconvolution of the input.
    if kind == "Deconvolution":
        counted = [net.blobs[blob] for blob in net.bottom_names[name]]
    else:
        counted = [net.blobs[blob] for blob in net.top_names[name]]
    axes = len(weights.shape) - 2
    return weights.count * sum(blob.count // blob.shape[-axes - 1] for blob in counted)


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

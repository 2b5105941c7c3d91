"""Draws nets with Graphviz: drawing needs pydot and the program `dot`, importing does not."""
import pathlib

from . import _packages
from ._caffe import Unsupported
from .proto import caffe_pb2

# Node styles, in Graphviz's names.
LAYER_STYLE_DEFAULT = {"shape": "record", "fillcolor": "#6495ED", "style": "filled"}
NEURON_LAYER_STYLE = {"shape": "record", "fillcolor": "#90EE90", "style": "filled"}
BLOB_STYLE = {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"}


def _pydot():
    return _packages.need("pydot", "drawing")


def get_pooling_types_dict():
    """Names of pooling methods, keyed by number."""
    return {value: name for name, value in caffe_pb2.PoolingParameter.PoolMethod.items()}


def get_edge_label(layer):
    """Graphviz label of the edge out of a layer: its batch size or number of outputs, else an empty
    label."""
    if layer.type == "Data":
        return "Batch " + str(layer.data_param.batch_size)
    if layer.type in ("Convolution", "Deconvolution"):
        return str(layer.convolution_param.num_output)
    if layer.type == "InnerProduct":
        return str(layer.inner_product_param.num_output)
    return '""'


def get_layer_lr_mult(layer):
    """The learning rate multipliers of a layer's parameters; 1 if the definition gives none."""
    if layer.type not in ("Convolution", "Deconvolution", "InnerProduct"):
        return []
    params = {"InnerProduct": layer.inner_product_param}.get(layer.type, layer.convolution_param)
    count = 2 if params.bias_term else 1
    given = [spec.lr_mult for spec in layer.param]
    return (given + [1.0] * count)[:max(count, len(given))]


def get_layer_label(layer, rankdir, display_lrm=False):
    """Name, type and sizes of a layer, in one line if rankdir is TB or BT, in several if LR or RL."""
    separator = " " if rankdir in ("TB", "BT") else "\\n"
    parts = [layer.name, f"({layer.type})"]
    if layer.type in ("Convolution", "Deconvolution"):
        options = layer.convolution_param
        parts += [f"kernel size: {_extent(options, 'kernel', options.kernel_size, 1)}",
                  f"stride: {_extent(options, 'stride', options.stride, 1)}",
                  f"pad: {_extent(options, 'pad', options.pad, 0)}"]
    elif layer.type == "Pooling":
        options = layer.pooling_param
        parts += [get_pooling_types_dict()[options.pool],
                  f"kernel size: {_extent(options, 'kernel', options.kernel_size, 0)}",
                  f"stride: {_extent(options, 'stride', options.stride, 1)}",
                  f"pad: {_extent(options, 'pad', options.pad, 0)}"]
    if display_lrm and get_layer_lr_mult(layer):
        parts.append("lr mult: " + ", ".join(f"{rate:g}" for rate in get_layer_lr_mult(layer)))
    # Names may contain characters that are special in Graphviz's records.
    text = separator.join(parts)
    for character in '"{}<>|':
        text = text.replace(character, "\\" + character)
    return f'"{text}"'


def _extent(options, name, extent, default):
    """For example "3", or "3x5" if height and width differ, from any of the fields that give them."""
    if options.HasField(name + "_h") or options.HasField(name + "_w"):
        return f"{getattr(options, name + '_h')}x{getattr(options, name + '_w')}"
    if hasattr(extent, "__len__"):
        return "x".join(str(one) for one in extent) or str(default)
    return str(extent)


def choose_color_by_layertype(layertype):
    """The fill colour of a layer."""
    return {"Convolution": "#FF5050", "Deconvolution": "#FF5050", "Pooling": "#FF9900",
            "InnerProduct": "#CC33FF"}.get(layertype, LAYER_STYLE_DEFAULT["fillcolor"])


def _is_in_phase(layer, phase):
    included = not layer.include or any(not rule.HasField("phase") or rule.phase == phase for rule in layer.include)
    excluded = any(rule.HasField("phase") and rule.phase == phase for rule in layer.exclude)
    return included and not excluded


def get_pydot_graph(caffe_net, rankdir, label_edges=True, phase=None, display_lrm=False):
    """A NetParameter as a pydot.Dot. phase: shows only the layers of this phase."""
    pydot = _pydot()
    graph = pydot.Dot(f'"{caffe_net.name or "Net"}"', graph_type="digraph", rankdir=rankdir)
    blobs, edges = set(), []
    for layer in caffe_net.layer:
        if phase is not None and not _is_in_phase(layer, phase):
            continue
        node = f'"{layer.name}_{layer.type}"'
        is_in_place = len(layer.bottom) == 1 and list(layer.bottom) == list(layer.top)
        style = dict(NEURON_LAYER_STYLE if is_in_place else
                     {**LAYER_STYLE_DEFAULT, "fillcolor": choose_color_by_layertype(layer.type)})
        graph.add_node(pydot.Node(node, label=get_layer_label(layer, rankdir, display_lrm), **style))
        blobs.update(layer.bottom, layer.top)
        edges += [(f'"{blob}_blob"', node, '""') for blob in layer.bottom]
        edges += [(node, f'"{blob}_blob"', get_edge_label(layer) if label_edges else '""') for blob in layer.top]
    for blob in sorted(blobs):
        graph.add_node(pydot.Node(f'"{blob}_blob"', label=f'"{blob}"', **BLOB_STYLE))
    for source, target, label in edges:
        graph.add_edge(pydot.Edge(source, target, label=label))
    return graph


def draw_net(caffe_net, rankdir, ext="png", phase=None, display_lrm=False):
    """A NetParameter as the bytes of an image. ext: png, svg, pdf, raw (Graphviz's text) ..."""
    graph = get_pydot_graph(caffe_net, rankdir, phase=phase, display_lrm=display_lrm)
    try:
        return graph.create(format=ext)
    except FileNotFoundError:
        raise Unsupported("drawing needs Graphviz's program dot: apt-get install graphviz") from None


def draw_net_to_file(caffe_net, filename, rankdir="LR", phase=None, display_lrm=False):
    """Draws a NetParameter into a file; its extension gives the format (.png, .svg, .pdf)."""
    file = pathlib.Path(filename)
    file.write_bytes(draw_net(caffe_net, rankdir, file.suffix[1:], phase, display_lrm))

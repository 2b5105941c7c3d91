"""Draws a net as a graph."""
import xml.etree.ElementTree as ElementTree

from google.protobuf import text_format

from .. import InvalidArgument
from ..net_files import expanded_text
from ..proto import caffe_pb2


_WIDE, _HIGH, _COLUMN, _ROW, _LETTERS = 170, 30, 190, 46, 28  # pixels and letters of a box, and from one to the next


def read_net(file):
    """The NetParameter in a prototxt. Fields that this version does not know are left out. Raises InvalidArgument for what is not a net,
    OSError."""
    try:
        return text_format.Parse(expanded_text(file), caffe_pb2.NetParameter(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise InvalidArgument(f"{file}:{error}") from None


def _places(net):
    """(depth, column) of each layer, and the edges between layers. In-place layers follow the one that they change."""
    makers, depths, edges, columns = {}, [], [], {}
    places = []
    for index, layer in enumerate(net.layer):
        before = [makers[bottom] for bottom in layer.bottom if bottom in makers]
        edges += [(maker, index) for maker in dict.fromkeys(before)]
        depth = max((depths[maker] + 1 for maker in before), default=0)
        depths.append(depth)
        # Under its first bottom, if there is room.
        column = max(columns.get(depth, 0), places[before[0]][1] if before else 0)
        columns[depth] = column + 1
        places.append((depth, column))
        makers.update({top: index for top in layer.top})
    return places, edges


def svg(net, shares=None, about=None):
    """The graph as SVG text.

    shares: {layer: share of the time, or of another quantity, from 0 to 1}, shown as the boxes' colour
    about: {layer: text that is shown under the pointer}
    """
    places, edges = _places(net)
    depth, columns = (max((place[axis] for place in places), default=0) + 1 for axis in (0, 1))
    root = ElementTree.Element("svg", {"width": str(columns * _COLUMN), "height": str(depth * _ROW), "role": "img", "class": "graph",
                                       "aria-label": f"Graph of {len(net.layer)} layers; the table has the same figures"})
    for begin, end in edges:
        (upper, left), (lower, right) = places[begin], places[end]
        x1, y1, x2, y2 = left * _COLUMN + _WIDE / 2, upper * _ROW + _HIGH, right * _COLUMN + _WIDE / 2, lower * _ROW
        bend = (y2 - y1) / 2
        ElementTree.SubElement(root, "path", {"d": f"M{x1:g},{y1:g} C{x1:g},{y1 + bend:g} {x2:g},{y2 - bend:g} {x2:g},{y2:g}"})
    for layer, (row, column) in zip(net.layer, places):
        share = (shares or {}).get(layer.name, 0.0)
        group = ElementTree.SubElement(root, "g", {"transform": f"translate({column * _COLUMN},{row * _ROW})"})
        ElementTree.SubElement(group, "title").text = (about or {}).get(layer.name, f"{layer.name}: {layer.type}")
        ElementTree.SubElement(group, "rect", {"width": str(_WIDE), "height": str(_HIGH), "rx": "5", "fill": _shade(share)})
        for y, text, kind in ((13, layer.name, "name"), (25, layer.type, "type")):
            ElementTree.SubElement(group, "text", {"x": str(_WIDE / 2), "y": str(y), "class": kind, "fill": "#fff" if share > 0.55 else "#1b1b1b"}
                                   ).text = text if len(text) <= _LETTERS else text[:_LETTERS - 1] + "…"
    return ElementTree.tostring(root, encoding="unicode")


def _shade(share):
    """From white to blue."""
    low, high = (246, 245, 242), (31, 95, 168)
    return "rgb({}, {}, {})".format(*(round(a + (b - a) * share) for a, b in zip(low, high)))

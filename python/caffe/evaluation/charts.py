"""SVG charts for the page. ElementTree escapes text; the page's style sets colours."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any, Dict, Sequence

_SIDE, _LEFT, _BOTTOM, _TOP = 200, 34, 30, 8


def _chart(title: str, x_text: str, y_text: str) -> ElementTree.Element:
    """An empty chart of the unit square, with a grid."""
    svg = ElementTree.Element("svg", {"viewBox": f"0 0 {_LEFT + _SIDE + 8} {_TOP + _SIDE + _BOTTOM}", "role": "img", "class": "chart"})
    ElementTree.SubElement(svg, "title").text = title
    for tenth in range(0, 11, 2):
        place = tenth / 10
        _line(svg, 0, place, 1, place, "grid")
        _line(svg, place, 0, place, 1, "grid")
        _text(svg, _x(place), _y(0) + 12, f"{place:g}", "middle")
        _text(svg, _LEFT - 4, _y(place) + 3, f"{place:g}", "end")
    _text(svg, _x(0.5), _y(0) + 25, x_text, "middle")
    _text(svg, 8, _y(0.5), y_text, "middle", transform=f"rotate(-90 8 {_y(0.5):g})")
    return svg


def _x(value: float) -> float:
    return _LEFT + _SIDE * value


def _y(value: float) -> float:
    return _TOP + _SIDE * (1 - value)


def _line(svg, x1, y1, x2, y2, kind):
    ElementTree.SubElement(svg, "line", {"x1": f"{_x(x1):.1f}", "y1": f"{_y(y1):.1f}", "x2": f"{_x(x2):.1f}", "y2": f"{_y(y2):.1f}",
                                         "class": kind})


def _text(svg, x, y, text, anchor, **more):
    node = ElementTree.SubElement(svg, "text", {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, **more})
    node.text = text


def _written(svg: ElementTree.Element) -> str:
    return ElementTree.tostring(svg, encoding="unicode")


def reliability(bins: Sequence[Dict[str, Any]]) -> str:
    """Accuracy over confidence: bars, and the diagonal, where the bars of a calibrated model end."""
    svg = _chart("Accuracy over confidence; a calibrated model's bars end on the diagonal", "confidence", "accuracy")
    for one in bins:
        if not one["count"]:
            continue
        bar = ElementTree.SubElement(svg, "rect", {
            "x": f"{_x(one['low']) + 0.5:.1f}", "y": f"{_y(one['accuracy']):.1f}", "width": f"{_SIDE * (one['high'] - one['low']) - 1:.1f}",
            "height": f"{_SIDE * one['accuracy']:.1f}", "class": "bar"})
        ElementTree.SubElement(bar, "title").text = (f"confidence {one['low']:.2f} to {one['high']:.2f}: accuracy {one['accuracy']:.3f}, "
                                                     f"{one['count']} items")
    _line(svg, 0, 0, 1, 1, "diagonal")
    return _written(svg)


def precision_over_recall(name: str, points: Sequence[Sequence[float]]) -> str:
    """points: (recall, precision), with recall never falling."""
    svg = _chart(f"Precision over recall of {name}", "recall", "precision")
    if points:
        path = " ".join(f"{_x(recall):.1f},{_y(precision):.1f}" for recall, precision in points)
        ElementTree.SubElement(svg, "polyline", {"points": path, "class": "curve"})
    return _written(svg)

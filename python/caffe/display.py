"""Shows plans and nets as tables and drawings, in terminals and notebooks."""
from html import escape

from .pycaffe import bottoms_of, tops_of


class Plan:
    """The compiled form of a net. `steps`: a list of PlanStep, in order; `memory`: a PlanMemory with
    bytes by kind.

    print(plan) shows a table; a notebook shows it as HTML. len(), indexing and iteration apply to the
    steps.
    """

    COLUMNS = ("layers", "way", "op", "kernel", "operands", "MFLOP", "KiB")

    def __init__(self, steps, memory):
        self.steps, self.memory = steps, memory

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        return self.steps[index]

    def __iter__(self):
        return iter(self.steps)

    def _rows(self):
        for step in self.steps:
            yield (step.layers, "backward" if step.is_backward else "forward", step.op, step.kernel, step.operands,
                   f"{step.flops / 1e6:.3g}", f"{step.bytes / 1024:.4g}")

    def _memory_text(self):
        kinds = ("parameters", "gradients", "outputs", "states", "activations", "workspace")
        parts = ", ".join(f"{kind} {getattr(self.memory, kind) / 2**20:.2f}" for kind in kinds)
        return f"Memory: {self.memory.total / 2**20:.2f} MiB ({parts}); {self.memory.parameter_count} parameters"

    def __str__(self):
        rows = [self.COLUMNS, *self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self.COLUMNS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, self._memory_text()])

    def __repr__(self):
        return f"<caffe plan of {len(self.steps)} steps, {self.memory.total / 2**20:.2f} MiB>"

    def _repr_html_(self):
        return _table(self.COLUMNS, self._rows()) + f"<p>{escape(self._memory_text())}</p>"


def net_html(net):
    """HTML of a net for notebooks: a drawing of its layers, and a table of their blobs and parameters."""
    rows = [(name, layer.type, "; ".join(_described(net, blob) for blob in bottoms_of(net, k)),
             "; ".join(_described(net, blob) for blob in tops_of(net, k)),
             ", ".join("x".join(map(str, blob.shape)) for blob in net.params.get(name, ())))
            for k, (name, layer) in enumerate(zip(net._layer_names, net.layers))]
    count = sum(blob.count for blobs in net.params.values() for blob in blobs)
    return (f"<b>{escape(net.name)}</b>: {len(rows)} layers, {count:,} parameters"
            f"<details><summary>drawing</summary>{net_svg(net)}</details>"
            + _table(("layer", "type", "reads", "writes", "parameters"), rows))


def _described(net, blob):
    return f"{blob} ({'x'.join(map(str, net.blobs[blob].shape)) or 'scalar'})"


def _table(columns, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line(columns, "th") + "".join(line(row, "td") for row in rows) + "</table>"


WIDTH, HEIGHT, GAP_X, GAP_Y = 150, 34, 20, 26


def _edge(source, target, number):
    """A line from box to box, as a list of corners. It moves sideways only between rows and downwards only between columns,
    so it crosses no box; the number of the edge separates edges between the same columns."""
    x1, y1, x2, y2 = source[0] + WIDTH // 2, source[1] + HEIGHT, target[0] + WIDTH // 2, target[1]
    if y2 - y1 == GAP_Y:
        return f"M{x1},{y1} C{x1},{y2} {x2},{y1} {x2},{y2}"
    side = (WIDTH + GAP_X) // 2 if x2 >= x1 else -(WIDTH + GAP_X) // 2
    lane = x1 + side + (number % 5 - 2) * 3
    top, bottom = y1 + GAP_Y, y2 - GAP_Y
    return f"M{x1},{y1} C{x1},{top} {lane},{y1} {lane},{top} V{bottom} C{lane},{y2} {x2},{bottom} {x2},{y2}"


def net_svg(net):
    """The net's layers as SVG text, drawn without other programs. Each layer is one row below the lowest
    layer that it reads."""
    from .draw import choose_color_by_layertype
    depth, writer, places, used, edges = {}, {}, {}, {}, []  # keyed by layer number
    for k in range(len(net.layers)):
        above = [writer[blob] for blob in bottoms_of(net, k)]
        depth[k] = 1 + max((depth[layer] for layer in above), default=-1)
        # Below the first layer that it reads, if that place is free: chains become straight columns.
        column = places[above[0]][0] if above else 0
        while (column, depth[k]) in used:
            column += 1
        places[k] = used[(column, depth[k])] = (column, depth[k])
        edges += [(layer, k) for layer in dict.fromkeys(above)]
        writer.update((blob, k) for blob in tops_of(net, k))

    def corner(layer):
        column, row = places[layer]
        return 10 + column * (WIDTH + GAP_X), 10 + row * (HEIGHT + GAP_Y)

    parts = [f'<path d="{_edge(corner(source), corner(target), number)}" fill="none" stroke="#666"/>'
             for number, (source, target) in enumerate(edges)]
    for k, (name, layer) in enumerate(zip(net._layer_names, net.layers)):
        x, y = corner(k)
        parts.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill-opacity="0.5" '
                     f'fill="{choose_color_by_layertype(layer.type)}"/>'
                     f'<text x="{x + WIDTH // 2}" y="{y + 14}" text-anchor="middle">{escape(name[:24])}</text>'
                     f'<text x="{x + WIDTH // 2}" y="{y + 27}" text-anchor="middle" fill="#555">{escape(layer.type)}</text>')
    width = 20 + max((x for x, _ in places.values()), default=0) * (WIDTH + GAP_X) + WIDTH + GAP_X
    height = 20 + max((y for _, y in places.values()), default=0) * (HEIGHT + GAP_Y) + HEIGHT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            f'font-size="11">{"".join(parts)}</svg>')

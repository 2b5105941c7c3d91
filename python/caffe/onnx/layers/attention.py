"""Attention as products, a Softmax and selections, which every version of the operators has."""
import numpy as np

from ..registry import writes

_CACHE = ("cache_length: keys and values stay from one pass to the next, and a model keeps nothing; export the net without it, "
          "which reads all rows at once")
_HIDDEN = np.finfo(np.float32).min  # score of a key that a query does not see


class Heads:
    """The heads of an attention; G heads of keys and values each serve `group` heads of queries."""

    def __init__(self, layer, onnx, queries, keys, width):
        options = layer.param.attention_param
        if options.cache_length:
            layer.refuse(_CACHE)
        self.onnx, self.items, self.queries, self.keys, self.width = onnx, layer.shape[0], queries, keys, width
        self.heads = options.num_heads
        self.kv_heads = options.num_kv_heads or self.heads
        self.group = self.heads // self.kv_heads
        self.scale = options.scale or 1 / np.sqrt(width)
        self.is_causal = options.causal

    def attend(self, q, k, v, mask, value_width=None):
        """(N,T,H E) from tensors (N,T,H D), (N,S,G D), (N,S,G E), and (N,S) or None. E is D unless told."""
        onnx = self.onnx
        q = self._by_head(onnx.scaled(q, self.scale), (self.queries, self.group, self.width))
        scores = onnx.op("MatMul", q, self._by_head(k, (self.keys, 1, self.width), is_turned=True))
        seen = self._seen(mask)
        if seen is not None:
            scores = onnx.where(seen, scores, _HIDDEN)
        weights = onnx.softmax(scores, 4, (self.items, self.kv_heads, self.group, self.queries, self.keys))
        if mask is not None or (self.is_causal and self.keys < self.queries):  # a query that sees nothing gives 0
            weights = onnx.where(seen, weights, 0)
        value_width = value_width or self.width
        y = onnx.op("MatMul", weights, self._by_head(v, (self.keys, 1, value_width)))
        return onnx.reshape(onnx.op("Transpose", y, perm=[0, 3, 1, 2, 4]), [self.items, self.queries, self.heads * value_width])

    def _by_head(self, tensor, sizes, is_turned=False):
        """(N,rows,G group width) as (N,G,group,rows,width), or with the last two axes exchanged; sizes: rows, group, width."""
        rows, group, width = sizes
        parts = self.onnx.reshape(tensor, [self.items, rows, self.kv_heads, group, width])
        return self.onnx.op("Transpose", parts, perm=[0, 2, 3, 4, 1] if is_turned else [0, 2, 3, 1, 4])

    def _seen(self, mask):
        """True where a query sees a key, as a tensor that fits the scores; None if all see all."""
        onnx, parts = self.onnx, []
        if self.is_causal:
            parts.append(onnx.constant(np.tri(self.queries, self.keys, self.keys - self.queries)[None, None, None], np.bool_))
        if mask is not None:
            parts.append(onnx.cast(onnx.reshape(mask, [self.items, 1, 1, 1, self.keys]), np.bool_))
        return onnx.op("And", *parts) if len(parts) == 2 else (parts or [None])[0]


@writes("Attention")
def attention(layer, onnx):
    (_, queries, columns), (_, keys, _) = layer.shapes[:2]
    heads = Heads(layer, onnx, queries, keys, columns // layer.param.attention_param.num_heads)
    mask = layer.bottoms[3] if len(layer.bottoms) == 4 else None
    return heads.attend(*layer.bottoms[:3], mask, value_width=layer.shapes[2][2] // heads.kv_heads)


def _turned(onnx, tensor, sizes, base):
    """Rotates pairs of elements of each head of a tensor (N,rows,heads width) by angles that grow with the position; sizes: N,
    rows, heads, width."""
    _, rows, heads, width = sizes
    angles = np.arange(rows)[:, None] * base ** (-2 * np.arange(width // 2) / width)
    cosines, sines = (onnx.constant(function(angles)[None, :, None]) for function in (np.cos, np.sin))
    a, b = onnx.split(onnx.reshape(tensor, sizes), 3, [width // 2] * 2)

    def product(one, factors):
        return onnx.op("Mul", one, factors)

    turned = onnx.op("Concat", onnx.op("Sub", product(a, cosines), product(b, sines)),
                     onnx.op("Add", product(b, cosines), product(a, sines)), axis=3)
    return onnx.reshape(turned, [*sizes[:2], heads * width])


@writes("MultiHeadAttention")
def multi_head_attention(layer, onnx):
    options = layer.param.attention_param
    others = {len(shape): (tensor, shape) for tensor, shape in zip(layer.bottoms[1:], layer.shapes[1:])}
    context, of_context = others.get(3, (None, layer.shape))
    mask, _ = others.get(2, (None, None))
    (items, queries, columns), keys = layer.shape, of_context[1]
    heads = Heads(layer, onnx, queries, keys, columns // options.num_heads)
    weights = [layer.weight(onnx, k) for k in range(len(layer.blobs))]

    def product(tensor, rows, inner, outputs):
        """W x + b for each row, with the next parameters."""
        parameters = [weights.pop(0) for _ in range(1 + options.bias_term)]
        made = onnx.op("Gemm", onnx.reshape(tensor, [items * rows, inner]), *parameters, transB=1)
        return onnx.reshape(made, [items, rows, outputs])

    of_kv = heads.kv_heads * heads.width
    if context is None:
        q, k, v = onnx.split(product(layer.bottom, queries, columns, columns + 2 * of_kv), 2, [columns, of_kv, of_kv])
    else:
        q = product(layer.bottom, queries, columns, columns)
        k, v = onnx.split(product(context, keys, of_context[2], 2 * of_kv), 2, [of_kv, of_kv])
    if options.rotary_base:
        q = _turned(onnx, q, [items, queries, heads.heads, heads.width], options.rotary_base)
        k = _turned(onnx, k, [items, keys, heads.kv_heads, heads.width], options.rotary_base)
    return product(heads.attend(q, k, v, mask), queries, columns, columns)

"""Compares Attention and MultiHeadAttention with NumPy."""
import caffe
import numpy as np
import pytest

RANDOM = np.random.default_rng(17)
# Differences from NumPy, relative to the largest number.
TOLERANCES = {"DOUBLE": 1e-6, "FLOAT": 1e-5, "BFLOAT16": 5e-2, "FLOAT16": 1e-2}


@pytest.fixture(autouse=True)
def same_numbers_for_each_test(monkeypatch):
    monkeypatch.setitem(globals(), "RANDOM", np.random.default_rng(17))


def random(*shape):
    return RANDOM.standard_normal(shape)


def seen_by(queries, keys, causal, mask):
    """(N or 1, T, S): the keys that each query sees."""
    seen = np.tri(queries, keys, keys - queries, bool)[None] if causal else np.ones((1, queries, keys), bool)
    return seen if mask is None else seen & (mask != 0)[:, None]


def attention(q, k, v, heads, kv_heads=0, causal=False, scale=0, mask=None, dy=None):
    """y and, with dy, the gradients of q, k and v."""
    kv_heads = kv_heads or heads
    width, group, seen = q.shape[2] // heads, heads // kv_heads, seen_by(q.shape[1], k.shape[1], causal, mask)
    scale = scale or 1 / np.sqrt(width)
    parts = [np.split(q, heads, 2), np.split(k, kv_heads, 2), np.split(v, kv_heads, 2)]
    y, grads = [], [[np.zeros_like(part) for part in of] for of in parts]
    for h in range(heads):
        qh, kh, vh = parts[0][h], parts[1][h // group], parts[2][h // group]
        weights = np.where(seen, np.exp(scale * qh @ kh.swapaxes(1, 2)), 0)
        sums = weights.sum(2, keepdims=True)
        weights = weights / np.where(sums == 0, 1, sums)
        y.append(weights @ vh)
        if dy is not None:
            dyh = np.split(dy, heads, 2)[h]
            dweights = dyh @ vh.swapaxes(1, 2)
            dscores = scale * weights * (dweights - (weights * dweights).sum(2, keepdims=True))
            grads[0][h] += dscores @ kh
            grads[1][h // group] += dscores.swapaxes(1, 2) @ qh
            grads[2][h // group] += weights.swapaxes(1, 2) @ dyh
    return np.concatenate(y, 2), [np.concatenate(of, 2) for of in grads]


@pytest.fixture(name="run_net")
def run_net_of_a_layer(write):
    """run_net(kind, options, bottoms, params, dtype, dy): the top, and for its gradient dy those of the bottoms and the parameters."""
    def run(kind, options, bottoms, params=(), dtype="DOUBLE", dy=None):
        text = f"default_forward_type: {dtype} default_backward_type: {dtype} force_backward: true\n"
        for i, value in enumerate(bottoms):
            dims = " ".join(f"dim: {extent}" for extent in value.shape)
            text += f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ {dims} }} }} }}\n"
        names = " ".join(f"bottom: 'x{i}'" for i in range(len(bottoms)))
        net = caffe.Net(write(text + f"layer {{ name: 'l' type: '{kind}' {names} top: 'y' attention_param {{ {options} }} }}"),
                        caffe.TEST if dy is None else caffe.TRAIN)
        for i, value in enumerate(bottoms):
            net.blobs[f"x{i}"].data[...] = value
        for blob, value in zip(net.params["l"] if params else (), params):
            blob.data[...] = value
        y = net.forward()["y"].copy()
        if dy is None:
            return y, [], []
        net.blobs["y"].diff[...] = dy
        net.backward()
        of_params = [blob.diff.copy() for blob in net.params["l"]] if params else []
        return y, [net.blobs[f"x{i}"].diff.copy() for i in range(len(bottoms))], of_params
    return run


def close(got, want, dtype="DOUBLE"):
    return got.shape == want.shape and abs(got - want).max() <= TOLERANCES[dtype] * max(abs(want).max(), 1e-3)


def text_of(heads, kv_heads=0, causal=False, scale=0):
    return f"num_heads: {heads} num_kv_heads: {kv_heads} causal: {str(causal).lower()} scale: {scale}"


CASES = {  # options, shape of queries, of keys, of values
    "one head": ({"heads": 1}, (2, 3, 4), (2, 5, 4), (2, 5, 6)),
    "heads": ({"heads": 4, "scale": 0.5}, (2, 3, 8), (2, 5, 8), (2, 5, 12)),
    "shared keys": ({"heads": 6, "kv_heads": 2}, (2, 3, 12), (2, 5, 4), (2, 5, 10)),
    "one head of keys": ({"heads": 3, "kv_heads": 1}, (2, 3, 12), (2, 5, 4), (2, 5, 2)),
    "causal": ({"heads": 2, "causal": True}, (2, 5, 8), (2, 5, 8), (2, 5, 8)),
    "causal with more keys": ({"heads": 2, "causal": True}, (2, 3, 8), (2, 7, 8), (2, 7, 8)),
    "causal with fewer keys": ({"heads": 2, "causal": True}, (2, 6, 8), (2, 4, 8), (2, 4, 8)),
    "longer than a block": ({"heads": 2, "kv_heads": 1, "causal": True}, (2, 75, 16), (2, 101, 8), (2, 101, 10)),
    "an odd number of keys in the first block": ({"heads": 3, "causal": True}, (2, 39, 30), (2, 134, 30), (2, 134, 30)),
    "many": ({"heads": 2}, (1, 130, 32), (1, 67, 32), (1, 67, 48)),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_attention(run_net, case, masked, dtype):
    options, *shapes = CASES[case]
    bottoms = [random(*shape) for shape in shapes]
    mask = (RANDOM.random(shapes[1][:2]) < 0.7).astype(float) if masked else None
    dy = random(*shapes[0][:2], shapes[2][2] // (options.get("kv_heads", 0) or options["heads"]) * options["heads"])
    want, wanted = attention(*bottoms, mask=mask, dy=dy, **options)
    arguments = ("Attention", text_of(**options), bottoms + ([mask] if masked else []))
    y, grads, _ = run_net(*arguments, dtype=dtype, dy=dy)
    assert close(y, want, dtype) and close(run_net(*arguments, dtype=dtype)[0], want, dtype)
    for name, got, of in zip("qkv", grads, wanted):
        assert close(got, of, dtype), name


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("kind", ["Attention", "MultiHeadAttention"])
def test_an_item_that_a_mask_hides_gives_0(run_net, kind, dtype):
    mask = np.ones((2, 5))
    mask[1] = 0
    bottoms = [random(2, 5, 8)] + [random(2, 5, 8) for _ in range(2)] * (kind == "Attention")
    params = [] if kind == "Attention" else [random(24, 8), random(24), random(8, 8), random(8)]
    y, grads, of_params = run_net(kind, "num_heads: 2", [*bottoms, mask], params, dtype, dy=np.ones((2, 5, 8)))
    assert (y[1] == (0 if kind == "Attention" else y[1, 0])).all() and abs(y[0]).max() > 0.1
    if params:  # the bias is left
        assert close(y[1, 0], params[3], dtype)
    for grad in [*grads[:len(bottoms)], *of_params]:
        assert np.isfinite(grad).all()
    assert all((grad[1] == 0).all() for grad in grads[:len(bottoms)])


def test_a_query_before_all_keys_gives_0(run_net):
    q, kv = random(1, 6, 4), random(1, 4, 4)
    y, grads, _ = run_net("Attention", "causal: true", [q, kv, kv], dy=np.ones((1, 6, 4)))
    assert (y[0, :2] == 0).all() and (y[0, 2:] != 0).all() and (grads[0][0, :2] == 0).all()


def test_large_scores_do_not_overflow(run_net):
    q, k, v = 1e4 * random(1, 3, 4), 1e4 * random(1, 5, 4), random(1, 5, 4)
    y, grads, _ = run_net("Attention", "", [q, k, v], dtype="FLOAT", dy=np.ones((1, 3, 4)))
    best = (q @ k.swapaxes(1, 2)).argmax(2)
    assert y[0] == pytest.approx(v[0, best[0]], abs=1e-5) and all(np.isfinite(grad).all() for grad in grads)


def turned(x, heads, base):
    """Rotates pairs of elements of each head of (N,T,H D)."""
    width = x.shape[2] // heads
    angles = np.arange(x.shape[1])[:, None] * base ** (-2 * np.arange(width // 2) / width)
    parts = []
    for head in np.split(x, heads, 2):
        a, b = np.split(head, 2, 2)
        parts += [a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)]
    return np.concatenate(parts, 2)


def multi_head(x, params, heads, kv_heads=0, base=0, context=None, biased=True, **options):
    kv_heads = kv_heads or heads
    of_kv = x.shape[2] // heads * kv_heads
    weights, biases = (params[::2], params[1::2]) if biased else (params, [0] * len(params))
    if context is None:
        q, k, v = np.split(x @ weights[0].T + biases[0], [x.shape[2], x.shape[2] + of_kv], 2)
    else:
        q = x @ weights[0].T + biases[0]
        k, v = np.split(context @ weights[1].T + biases[1], 2, 2)
    if base:
        q, k = turned(q, heads, base), turned(k, kv_heads, base)
    return attention(q, k, v, heads, kv_heads, **options)[0] @ weights[-1].T + biases[-1]


HEADS = {  # options, shape of the context
    "plain": ({"heads": 2}, None),
    "all at once": ({"heads": 4, "kv_heads": 2, "causal": True, "base": 100}, None),
    "turned": ({"heads": 1, "base": 10000}, None),
    "without biases": ({"heads": 2, "scale": 0.3, "biased": False}, None),
    "a context": ({"heads": 2}, (2, 6, 5)),
    "a context, all at once": ({"heads": 4, "kv_heads": 2, "causal": True, "base": 50}, (2, 9, 3)),
    "a context without biases": ({"heads": 2, "biased": False, "kv_heads": 1}, (2, 3, 8)),
}


def drawn_heads(heads, kv_heads=0, context=None, biased=True, columns=8, **_):
    of_kv = 2 * columns // heads * (kv_heads or heads)
    shapes = [(columns + of_kv, columns)] if context is None else [(columns, columns), (of_kv, context[2])]
    params = []
    for shape in [*shapes, (columns, columns)]:
        params += [0.5 * random(*shape)] + [random(shape[0])] * biased
    return params


def text_of_heads(base=0, biased=True, **options):
    return text_of(**options) + f" rotary_base: {base} bias_term: {str(biased).lower()}"


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", HEADS)
def test_multi_head_attention(run_net, case, masked, dtype):
    options, of_context = HEADS[case]
    x, context = random(2, 5, 8), None if of_context is None else random(*of_context)
    seen = x if context is None else context
    mask = (RANDOM.random(seen.shape[:2]) < 0.7).astype(float) if masked else None
    params = drawn_heads(context=of_context, **options)
    want = multi_head(x, params, context=context, mask=mask, **options)
    bottoms = [value for value in (x, context, mask) if value is not None]
    dy = random(*x.shape)
    y, grads, of_params = run_net("MultiHeadAttention", text_of_heads(**options), bottoms, params, dtype, dy)
    assert close(y, want, dtype)
    if dtype == "DOUBLE":
        return
    _, exact, exact_of_params = run_net("MultiHeadAttention", text_of_heads(**options), bottoms, params, "DOUBLE", dy)
    inputs = len(bottoms) - masked
    for i, (got, of) in enumerate(zip(grads[:inputs] + of_params, exact[:inputs] + exact_of_params)):
        assert close(got, of, dtype), i


def test_a_mask_may_come_before_a_context(run_net):
    x, context, mask = random(2, 5, 8), random(2, 4, 3), np.array([[1, 0, 1, 1], [0, 1, 1, 1.]])
    params = drawn_heads(heads=2, context=(2, 4, 3))
    one, other = (run_net("MultiHeadAttention", "num_heads: 2", [x, *two], params)[0] for two in ((context, mask), (mask, context)))
    assert (one == other).all() and close(one, multi_head(x, params, 2, context=context, mask=mask))


def test_only_differences_of_positions_count(run_net):
    x, params, mask = random(1, 4, 8), drawn_heads(heads=2), np.array([[0, 1, 1, 1.]])
    options = "num_heads: 2 rotary_base: 100"
    first, later = (run_net("MultiHeadAttention", options, bottoms, params)[0] for bottoms in ([x[:, 1:]], [x, mask]))
    assert close(later[:, 1:], first)
    assert not close(run_net("MultiHeadAttention", "num_heads: 2", [x[:, 1:]], params)[0], first)


def test_outputs_have_the_type_of_the_data(write):
    text = ("default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 layer { name: 'x' type: 'Input' top: 'x' input_param { "
            "shape { dim: 2 dim: 5 dim: 8 } } } layer { name: 'l' type: 'MultiHeadAttention' bottom: 'x' top: 'y' attention_param { "
            "num_heads: 2 } } layer { name: 'm' type: 'MultiHeadAttention' bottom: 'y' top: 'z' attention_param { num_heads: 2 } }")
    steps = [step for step in caffe.Net(write(text), caffe.TRAIN).plan().steps if step.op.startswith("Attention[")]
    assert len(steps) == 2 and all("-> 2x5x8 bfloat16" in step.operands for step in steps)


def test_memory_grows_with_the_length_and_not_with_its_square(write):
    def memory(rows):
        net = caffe.Net(write(f"layer {{ name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: 1 dim: {rows} dim: 8 }} }} }} "
                              "layer { name: 'l' type: 'MultiHeadAttention' bottom: 'x' top: 'y' attention_param { num_heads: 2 } } "
                              "layer { name: 's' type: 'Reduction' bottom: 'y' top: 's' loss_weight: 1 }"), caffe.TRAIN)
        parts = net.plan().memory
        return parts.activations + parts.workspace
    assert memory(8192) < 2.5 * memory(4096)


def attention_layer(bottoms=3, options="", kind="Attention"):
    names = " ".join(f"bottom: 'x{i}'" for i in range(bottoms))
    return f"layer {{ name: 'l' type: '{kind}' {names} top: 'y' attention_param {{ {options} }} }}"


@pytest.mark.parametrize("shapes, options, message", [
    ([(1, 2, 6)] * 3, "num_heads: 3 num_kv_heads: 2",
     r"there are 3 heads of queries \(num_heads\) and 2 of keys and values \(num_kv_heads\); the first must be a multiple of the second"),
    ([(1, 2, 6)] * 3, "num_heads: 0", "there are 0 heads of queries"),
    ([(1, 2, 6)] * 3, "scale: -1", r"scale is -1; it must be above 0, or 0 for 1 / sqrt\(numbers of a head\)"),
    ([(1, 2, 6)] * 3, "scale: inf", "scale is inf"),
    *(([(1, 2, 6)] * 3, option, "Attention has no parameters and turns nothing; for bias_term, weight_filler, "
       "bias_filler and rotary_base use MultiHeadAttention")
      for option in ("bias_term: true", "weight_filler { type: 'xavier' }", "bias_filler { value: 1 }", "rotary_base: 100")),
    ([(2, 6), (1, 2, 6), (1, 2, 6)], "", "the bottoms have shapes 2x6, 1x2x6 and 1x2x6; they must be items x rows x numbers of all heads"),
    ([(1, 2, 6), (2, 2, 6), (2, 2, 6)], "", "1x2x6, 2x2x6 and 2x2x6; they must have as many items, and keys as many rows as values"),
    ([(1, 2, 6), (1, 3, 6), (1, 2, 6)], "", "as many items, and keys as many rows as values"),
    ([(1, 2, 6)] * 3, "num_heads: 4", "rows of 4 heads of queries and 4 of keys and values must be divided evenly"),
    ([(1, 2, 6), (1, 2, 4), (1, 2, 6)], "", "heads of queries and keys have as many numbers"),
    ([(1, 2, 6)] * 3 + [(1, 3)], "", "the mask has shape 1x3; it must be 1x2, a number for each key of each item"),
    ([(1, 2, 6)] * 2, "", "takes at least 3 bottom"),
])
def test_what_does_not_fit_attention_is_refused(run_layer, shapes, options, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(attention_layer(len(shapes), options), *(np.zeros(shape) for shape in shapes))


@pytest.mark.parametrize("shapes, options, message", [
    ([(1, 2, 6)], "num_heads: 3 num_kv_heads: 2", "the first must be a multiple of the second"),
    ([(1, 2, 6)], "rotary_base: 1", "rotary_base is 1; it must be above 1, or 0 for no rotation"),
    ([(1, 2, 6)], "rotary_base: -3", "rotary_base is -3"),
    ([(1, 2, 6)], "rotary_base: inf", "rotary_base is inf"),
    ([(1, 2, 6)], "bias_term: false bias_filler { value: 1 }", "bias_term is false, but there is a bias_filler; leave out one"),
    ([(2, 6)], "", "bottom 0 has shape 2x6; it must be items x rows x numbers"),
    ([(1, 2, 6)], "num_heads: 4", r"the rows of bottom 0 \(1x2x6\) cannot be divided into 4 heads \(num_heads\)"),
    ([(1, 2, 6)], "num_heads: 2 rotary_base: 100", r"heads have 3 numbers; to be turned \(rotary_base\) they must have an even number"),
    ([(1, 2, 6), (2, 2, 6)], "", "the context has shape 2x2x6; it must begin with the 1 items of bottom 0"),
    ([(1, 2, 6), (1, 2), (1, 2)], "", "bottom 1 has shape 1x2; a context must be items x rows x numbers, a mask items x rows"),
    ([(1, 2, 6), (1, 3)], "", "the mask has shape 1x3; it must be 1x2"),
    ([(1, 2, 6), (1, 4, 5), (1, 2)], "", "the mask has shape 1x2; it must be 1x4"),
])
def test_what_does_not_fit_multi_head_attention_is_refused(run_layer, shapes, options, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(attention_layer(len(shapes), options, kind="MultiHeadAttention"), *(np.zeros(shape) for shape in shapes))


def test_a_mask_gets_no_gradient(write):
    inputs = "".join(f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ {dims} }} }} }} "
                     for i, dims in enumerate(["dim: 1 dim: 2 dim: 4"] * 3 + ["dim: 1 dim: 2"]))
    net = caffe.Net(write("force_backward: true " + inputs + attention_layer(4)), caffe.TRAIN)
    for blob in net.blobs.values():
        blob.data[...] = 1
    net.forward()
    net.blobs["y"].diff[...] = 1
    net.backward()
    assert (net.blobs["x3"].diff == 0).all() and (net.blobs["x2"].diff != 0).any()


@pytest.mark.parametrize("mask", [False, True])
def test_a_context_has_a_gradient_without_a_loss(write, mask):
    bottoms = 'bottom: "x" bottom: "c"' + (' bottom: "m"' if mask else "")
    caffe.set_random_seed(1)
    net = caffe.Net(write(f"""force_backward: true
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 2 dim: 3 dim: 8 }} }} }}
layer {{ name: "c" type: "Input" top: "c" input_param {{ shape {{ dim: 2 dim: 7 dim: 5 }} }} }}
layer {{ name: "m" type: "DummyData" top: "m" dummy_data_param {{ shape {{ dim: 2 dim: 7 }} data_filler {{ value: 1 }} }} }}
layer {{ name: "y" type: "MultiHeadAttention" {bottoms} top: "y" attention_param {{ num_heads: 2 weight_filler {{ type: "xavier" }} }} }}
{"" if mask else 'layer { name: "rest" type: "Silence" bottom: "m" }'}"""), caffe.TRAIN)
    draw = np.random.default_rng(3)
    for name in ("x", "c"):
        net.blobs[name].data[...] = draw.standard_normal(net.blobs[name].data.shape)
    weights = draw.standard_normal(net.blobs["y"].data.shape)

    def result():
        return float((net.forward()["y"] * weights).sum())
    result()
    net.blobs["y"].diff[...] = weights
    net.backward()
    found, base = net.blobs["c"].diff[1, 4, 2].copy(), net.blobs["c"].data[1, 4, 2].copy()
    ends = []
    for step in (0.01, -0.01):
        net.blobs["c"].data[1, 4, 2] = base + step
        ends.append(result())
    assert found == pytest.approx((ends[0] - ends[1]) / 0.02, abs=2e-3) and abs(found) > 0.01

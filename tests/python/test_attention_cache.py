"""Attention that keeps keys and values from one pass to the next, next to passes over whole sequences."""
import caffe
import numpy as np
import pytest

ITEMS, ROWS, COLUMNS = 2, 12, 8
TOLERANCES = {"DOUBLE": 1e-6, "FLOAT": 1e-5, "BFLOAT16": 5e-2, "FLOAT16": 1e-2}
# Kinds, options, and the columns of the bottoms.
CASES = {
    "heads": ("MultiHeadAttention", "num_heads: 2", (COLUMNS,)),
    "turned heads": ("MultiHeadAttention", "num_heads: 2 rotary_base: 100", (COLUMNS,)),
    "shared keys": ("MultiHeadAttention", "num_heads: 4 num_kv_heads: 2 rotary_base: 50 bias_term: false scale: 0.6", (COLUMNS,)),
    "no products": ("Attention", "num_heads: 2", (COLUMNS, COLUMNS, 6)),
    "no products, shared keys": ("Attention", "num_heads: 4 num_kv_heads: 2", (COLUMNS, COLUMNS // 2, 10)),
}


def net_of(write, case, rows, cache=0, masked=False, dtype="FLOAT", causal="true", phase=caffe.TEST):
    kind, options, columns = CASES[case]
    shapes = [(ITEMS, rows, width) for width in columns] + [(ITEMS, rows)] * masked + [(ITEMS,)] * (cache > 0)
    text = f"default_forward_type: {dtype} default_backward_type: {dtype}\n"
    for i, shape in enumerate(shapes):
        text += (f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ "
                 + " ".join(f"dim: {extent}" for extent in shape) + " } } }\n")
    bottoms = " ".join(f"bottom: 'x{i}'" for i in range(len(shapes)))
    kept = f"cache_length: {cache}" if cache else ""
    net = caffe.Net(write(f"{text} layer {{ name: 'l' type: '{kind}' {bottoms} top: 'y' attention_param {{ causal: {causal} {options} {kept} }} }}"),
                    phase)
    random = np.random.default_rng(5)
    for blob in net.params["l"] if "l" in net.params else ():
        blob.data[...] = random.normal(0, 0.5, blob.shape)
    return net


def inputs_of(case, masked=False, rows=ROWS):
    random = np.random.default_rng(6)
    mask = (random.random((ITEMS, rows)) < 0.7).astype(float)
    mask[:, 0] = 1
    return [random.standard_normal((ITEMS, rows, width)) for width in CASES[case][2]] + [mask] * masked


def outputs(net, inputs, cont=None):
    values = [*inputs, *([] if cont is None else [np.array(cont, float)])]
    for i, value in enumerate(values):
        net.blobs[f"x{i}"].reshape(*value.shape)
        net.blobs[f"x{i}"].data[...] = value
    return net.forward()["y"].copy()


def in_parts(net, inputs, sizes, first_cont=0):
    """The outputs of passes over so many rows each, which go on from each other."""
    found, first = [], 0
    for k, size in enumerate(sizes):
        part = [value[:, first:first + size] for value in inputs]
        found.append(outputs(net, part, [1 if k else first_cont] * ITEMS))
        first += size
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("sizes", [[1] * ROWS, [ROWS], [5, 1, 1, 3, 2]])
@pytest.mark.parametrize("cache", [ROWS, ROWS + 40])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_parts_give_what_the_whole_gives(write, case, masked, cache, sizes):
    inputs = inputs_of(case, masked)
    whole = outputs(net_of(write, case, ROWS, masked=masked), inputs)
    assert abs(whole).max() > 0.1
    assert in_parts(net_of(write, case, sizes[0], cache, masked), inputs, sizes) == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", CASES)
def test_all_types(write, case, dtype):
    inputs = inputs_of(case)
    whole = outputs(net_of(write, case, ROWS, dtype="DOUBLE"), inputs)
    got = in_parts(net_of(write, case, 7, ROWS, dtype=dtype), inputs, [7, 1, 1, 1, 2])
    assert got == pytest.approx(whole, abs=TOLERANCES[dtype] * abs(whole).max())


@pytest.mark.parametrize("case", CASES)
def test_where_cont_is_0_a_sequence_begins(write, case):
    """Also when nothing else tells it: the first pass of a net may say that it goes on."""
    inputs = inputs_of(case)
    net = net_of(write, case, ROWS, 16)
    whole = in_parts(net, inputs, [4, 8], first_cont=1)
    later = [value[:, 4:7] for value in inputs]
    for cont in ([0, 0], [0, 1], [1, 0]):
        net = net_of(write, case, 4, 16)
        outputs(net, [value[:, :4] for value in inputs], [0, 0])
        got, alone = outputs(net, later, cont), outputs(net_of(write, case, 3), later)
        for item, goes_on in enumerate(cont):
            want = whole[item, 4:7] if goes_on else alone[item]
            assert got[item] == pytest.approx(want, abs=1e-5)
            assert abs(got[item] - (alone if goes_on else whole[:, 4:7])[item]).max() > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_rows_beyond_the_cache_are_forgotten(write, case):
    """Row t sees itself and the 4 rows before it."""
    inputs, length = inputs_of(case), 5
    got = in_parts(net_of(write, case, 1, length), inputs, [1] * ROWS)
    window = net_of(write, case, length)
    for row in range(length, ROWS):
        part = [value[:, row - length + 1:row + 1] for value in inputs]
        assert got[:, row] == pytest.approx(outputs(window, part)[:, -1], abs=1e-5)


def test_another_number_of_items_empties_the_cache(write):
    case = "turned heads"
    inputs, net = inputs_of(case), net_of(write, case, 4, 16)
    outputs(net, [value[:, :4] for value in inputs], [0, 0])
    first = [value[:1, 4:7] for value in inputs]
    assert outputs(net, first, [1]) == pytest.approx(outputs(net_of(write, case, 3), first), abs=1e-5)


def test_numbers_that_are_not_finite_go_with_their_sequence(write):
    case = "turned heads"
    inputs = inputs_of(case)
    net = net_of(write, case, ROWS, 16)
    assert np.isnan(outputs(net, [np.full_like(inputs[0], np.nan)], [0, 0])).all()
    assert outputs(net, inputs, [0, 0]) == pytest.approx(outputs(net_of(write, case, ROWS), inputs), abs=1e-5)


def test_positions_are_exact_in_16_bits(write):
    """From 256 on bfloat16 has every second whole number, and a turn by one position too many changes the scores."""
    rows = np.random.default_rng(7).standard_normal((300, ITEMS, 1, COLUMNS))
    exact, short = (net_of(write, "turned heads", 1, 4, dtype=dtype) for dtype in ("FLOAT", "BFLOAT16"))
    for k, row in enumerate(rows):
        wanted, got = (outputs(net, [row], [k > 0] * ITEMS) for net in (exact, short))
        assert got == pytest.approx(wanted, abs=5e-2 * max(1, abs(wanted).max())), k


@pytest.mark.parametrize("case, rows, arguments, message", [
    ("heads", 4, {"phase": caffe.TRAIN}, "layer 'l' .*cache_length is 6, but in phase TRAIN gradients need all rows at once; set "
                                         "cache_length only in the net that generates, in phase TEST"),
    ("no products", 4, {"phase": caffe.TRAIN}, "cache_length is 6, but in phase TRAIN"),
    ("heads", 4, {"causal": "false"}, "cache_length is 6, but causal is false: rows that come later could not be seen; set causal"),
    ("heads", 7, {}, "bottom 0 has 7 rows of each item, but cache_length is 6; give fewer rows at a time, or raise cache_length"),
    ("no products", 7, {}, "bottom 0 has 7 rows of each item, but cache_length is 6"),
])
def test_what_cannot_be_is_refused(write, case, rows, arguments, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        net_of(write, case, rows, 6, **arguments)


INPUT = "layer {{ name: '{0}' type: 'Input' top: '{0}' input_param {{ shape {{ {1} }} }} }} "


@pytest.mark.parametrize("kind, shapes, message", [
    ("MultiHeadAttention", [(2, 3, 8)], "takes at least 2 bottom"),
    ("MultiHeadAttention", [(2, 3, 8), (2, 3)], "the last bottom, cont, has shape 2x3; it must be 2, a number for each item: 0 where a "
                                                "sequence begins, else 1"),
    ("MultiHeadAttention", [(2, 3, 8), (3,)], "the last bottom, cont, has shape 3; it must be 2"),
    ("MultiHeadAttention", [(2, 3, 8), (2, 5, 8), (2,)], r"cache_length is 6, but bottom 1 \(2x5x8\) is a context, whose keys stay the "
                                                         "same; leave one of them out"),
    ("MultiHeadAttention", [(2, 3, 8), (2, 4), (2,)], "the mask has shape 2x4; it must be 2x3"),
    ("Attention", [(2, 3, 8)] * 3, "takes at least 4 bottom"),
    ("Attention", [(2, 3, 8), (2, 4, 8), (2, 4, 8), (2,)], "the bottoms have shapes 2x3x8, 2x4x8 and 2x4x8; with cache_length there must "
                                                           "be a key for each query"),
    ("Attention", [(2, 3, 8)] * 3 + [(2, 3)], "the last bottom, cont, has shape 2x3; it must be 2"),
])
def test_bottoms_that_do_not_fit_are_refused(write, kind, shapes, message):
    text = "".join(INPUT.format(f"x{i}", " ".join(f"dim: {extent}" for extent in shape)) for i, shape in enumerate(shapes))
    bottoms = " ".join(f"bottom: 'x{i}'" for i in range(len(shapes)))
    with pytest.raises(caffe.InvalidArgument, match=message):
        caffe.Net(write(f"{text} layer {{ name: 'l' type: '{kind}' {bottoms} top: 'y' attention_param {{ causal: true cache_length: 6 }} }}"),
                  caffe.TEST)


def test_nets_keep_their_own_rows(write):
    case = "heads"
    inputs, nets = inputs_of(case), [net_of(write, case, 3, 8) for _ in range(2)]
    first = outputs(nets[0], [inputs[0][:, :3]], [0, 0])
    assert (outputs(nets[1], [inputs[0][:, :3]], [1, 1]) == first).all()
    assert abs(outputs(nets[0], [inputs[0][:, :3]], [1, 1]) - first).max() > 1e-3


def test_programs_do_not_have_it(write, tmp_path):
    with pytest.raises(caffe.Error, match=r"layer 'l' \(MultiHeadAttention\) runs SlideRows, which compiled programs do not have"):
        net_of(write, "heads", 3, 8).save_program(str(tmp_path / "net.cortado"))

"""Compares Lstm and GRU with loops over steps in NumPy."""
import re

import caffe
import numpy as np
import pytest

RANDOM = np.random.default_rng(11)
STEPS, ITEMS, INPUTS, WIDTH = 4, 3, 5, 2
X = RANDOM.standard_normal((STEPS, ITEMS, INPUTS))
CONT = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], float)


def random(*shape):
    return RANDOM.standard_normal(shape) * 0.7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_steps(x, cont, weights, recurrent, bias, h, c):
    outputs = []
    for inputs, goes_on in zip(x, cont):
        i, f, o, g = np.split(inputs @ weights.T + bias + (goes_on[:, None] * h) @ recurrent.T, 4, axis=1)
        c = goes_on[:, None] * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), h, c


LSTM = (random(4 * WIDTH, INPUTS), random(4 * WIDTH, WIDTH), random(4 * WIDTH))
ZERO = np.zeros((ITEMS, WIDTH))


def lstm(options="", bottoms="bottom: 'x0'", width=WIDTH, items=ITEMS):
    return (f"layer {{ name: 'l' type: 'Lstm' {bottoms} top: 'y' "
            f"lstm_param {{ num_output: {width} batch_size: {items} {options} }} }}")


def test_lstm_without_clip_begins_with_the_batch(run_layer):
    y = run_layer(lstm(), X.reshape(-1, INPUTS), params=LSTM)["y"]
    cont = np.ones_like(CONT)
    cont[0] = 0
    assert y.shape == (STEPS * ITEMS, WIDTH)
    assert y.reshape(STEPS, ITEMS, WIDTH) == pytest.approx(lstm_steps(X, cont, *LSTM, ZERO, ZERO)[0], abs=1e-5)


def test_lstm_with_clip_goes_on_from_the_last_pass(write):
    text = (f"default_forward_type: DOUBLE layer {{ name: 'x' type: 'Input' top: 'x0' top: 'x1' input_param {{ "
            f"shape {{ dim: {STEPS * ITEMS} dim: {INPUTS} }} shape {{ dim: {STEPS * ITEMS} }} }} }} "
            + lstm(bottoms="bottom: 'x0' bottom: 'x1'"))
    net = caffe.Net(write(text), caffe.TEST)
    net.blobs["x0"].data[...], net.blobs["x1"].data[...] = X.reshape(-1, INPUTS), CONT.ravel()
    for blob, value in zip(net.params["l"], LSTM):
        blob.data[...] = value
    h = c = ZERO
    for _ in range(2):
        outputs, h, c = lstm_steps(X, CONT, *LSTM, h, c)
        assert net.forward()["y"].reshape(outputs.shape) == pytest.approx(outputs, abs=1e-5)


def test_gradients_of_gates_are_clipped(write):
    def gradient(options):
        text = (f"force_backward: true layer {{ name: 'x0' type: 'Input' top: 'x0' input_param {{ shape {{ "
                f"dim: {STEPS * ITEMS} dim: {INPUTS} }} }} }} " + lstm(options))
        net = caffe.Net(write(text), caffe.TRAIN)
        net.blobs["x0"].data[...] = X.reshape(-1, INPUTS)
        for blob, value in zip(net.params["l"], LSTM):
            blob.data[...] = value
        net.forward()
        net.blobs["y"].diff[...] = 1
        net.backward()
        return net.params["l"][2].diff.copy()
    free = gradient("")
    assert gradient("clipping_threshold: 100") == pytest.approx(free)
    clipped = gradient("clipping_threshold: 0.001")
    assert abs(clipped).max() <= 0.001 * STEPS * ITEMS * 1.001 < abs(free).max() and abs(clipped).max() > 0


def gru_steps(x, cont, weights, bias, z_weights, r_weights, n_weights, h, fed_bias=None):
    outputs = []
    for inputs, goes_on in zip(x, cont):
        h = goes_on[:, None] * h
        z, r, n = np.split(inputs @ weights.T + bias, 3, axis=1)
        z, r = sigmoid(z + h @ z_weights.T), sigmoid(r + h @ r_weights.T)
        n = np.tanh(n + ((r * h) @ n_weights.T if fed_bias is None else r * (h @ n_weights.T + fed_bias)))
        h = (1 - z) * n + z * h
        outputs.append(h)
    return np.array(outputs)


GRU = (random(3 * WIDTH, INPUTS), random(3 * WIDTH), *(random(WIDTH, WIDTH) for _ in range(3)))


def gru(bottoms, tops="top: 'y'", options=""):
    return (f"layer {{ name: 'l' type: 'GRU' {bottoms} {tops} recurrent_param {{ num_output: {WIDTH} "
            f"weight_filler {{ type: 'uniform' }} {options} }} }}")


def test_gru(run_layer):
    y = run_layer(gru("bottom: 'x0' bottom: 'x1'"), X, CONT, params=GRU)["y"]
    assert y == pytest.approx(gru_steps(X, CONT, *GRU, ZERO), abs=1e-5)


def test_gru_with_a_reset_gate_after_the_product(run_layer):
    fed_bias = random(WIDTH)
    y = run_layer(gru("bottom: 'x0' bottom: 'x1'", options="reset_after: true"), X, CONT, params=(*GRU, fed_bias))["y"]
    assert y == pytest.approx(gru_steps(X, CONT, *GRU, ZERO, fed_bias), abs=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_without_cont_sequences_begin_with_the_batch(run_layer, kind):
    def layer(bottoms):
        return f"""layer {{ name: 'l' type: '{kind}' bottom: 'x0' {bottoms} top: 'y' recurrent_param {{ num_output: {WIDTH}
                   num_layers: 2 bidirectional: true weight_filler {{ type: 'uniform' min: -1 }} }} }}"""
    caffe.set_random_seed(2)
    alone = run_layer(layer(""), X)["y"]
    cont = np.ones_like(CONT)
    cont[0] = 0
    caffe.set_random_seed(2)
    assert run_layer(layer("bottom: 'x1'"), X, cont)["y"] == pytest.approx(alone, abs=1e-6) and abs(alone).max() > 0


def test_gru_without_cont_begins_with_the_batch(run_layer):
    cont = np.ones_like(CONT)
    cont[0] = 0
    y = run_layer(gru("bottom: 'x0'"), X, params=GRU)["y"]
    assert y == pytest.approx(gru_steps(X, cont, *GRU, ZERO), abs=1e-5)


def test_gru_with_a_static_input_and_exposed_state(run_layer):
    static, weights, state = random(ITEMS, 4), random(3 * WIDTH, 4), random(1, ITEMS, WIDTH)
    params = (GRU[0], GRU[1], weights, *GRU[2:])
    y = run_layer(gru("bottom: 'x0' bottom: 'x1' bottom: 'x2' bottom: 'x3'", "top: 'y' top: 'h'", "expose_hidden: true"),
                  X, np.ones_like(CONT), static, state, params=params)
    inputs = np.concatenate([X, np.broadcast_to(static, (STEPS, ITEMS, 4))], 2)
    want = gru_steps(inputs, np.ones_like(CONT), np.hstack([GRU[0], weights]), *GRU[1:], state[0])
    assert y["y"] == pytest.approx(want, abs=1e-5) and y["h"][0] == pytest.approx(want[-1], abs=1e-5)


@pytest.mark.parametrize("layer, message", [
    (lstm(width=0), "num_output is 0; set lstm_param"),
    (lstm(items=0), "batch_size is 0"),
    (lstm(items=5), "rows for each step in time of the 5 sequences"),
    (lstm("clipping_threshold: -1"), "clipping_threshold is -1"),
    (lstm(bottoms="bottom: 'x0' bottom: 'x0'"), "bottom 1 has shape 12x5; it must be 12"),
    (gru("bottom: 'x0'", options="expose_hidden: true"), "takes at least 3 bottom"),
    (gru("bottom: 'x0' bottom: 'l'"), "bottom 'l'"),
    (lstm("", bottoms="bottom: 'x0'").replace("Lstm", "LSTM").replace("lstm_param", "recurrent_param")
     .replace("batch_size: 3", "reset_after: true"), "reset_after is true, but only GRU has a reset gate"),
    (gru("bottom: 'x0'", options="num_layers: 0"), "num_layers is 0; it must be from 1 to 1000"),
    (gru("bottom: 'x0'", options="num_layers: 1001"), "num_layers is 1001"),
    (gru("bottom: 'x0'", options="backprop_states: true"), "backprop_states is true, but no states are bottoms and tops; set expose_hidden"),
])
def test_what_does_not_fit_is_refused(run_layer, layer, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(layer, X.reshape(-1, INPUTS))


def in_both_directions(x, cont, run, parts):
    """The outputs of two layers in two directions, and the last state of each; run(x, cont, part): outputs of a part."""
    back_cont = np.concatenate([np.ones_like(cont[:1]), cont[:0:-1]])
    states = []
    for forth, back in zip(parts[::2], parts[1::2]):
        there, again = run(x, cont, forth), run(x[::-1], back_cont, back)
        states += [there[-1], again[-1]]
        x = np.concatenate([there, again[::-1]], axis=2)
    return x, np.array(states)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers_in_both_directions(run_layer, kind):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    recurrent = {"LSTM": [(4 * WIDTH, WIDTH)], "GRU": [(WIDTH, WIDTH)] * 3, "RNN": [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,)]}[kind]
    parts = [[random(gates * WIDTH, width), random(gates * WIDTH), *(random(*shape) for shape in recurrent)]
             for width in (INPUTS, INPUTS, 2 * WIDTH, 2 * WIDTH)]
    hidden = []

    def run(x, cont, part):
        if kind == "LSTM":
            return lstm_steps(x, cont, part[0], part[2], part[1], ZERO, ZERO)[0]
        if kind == "GRU":
            return gru_steps(x, cont, *part, ZERO)
        h, outputs = ZERO, []
        for inputs, goes_on in zip(x, cont):
            h = np.tanh(inputs @ part[0].T + part[1] + (goes_on[:, None] * h) @ part[2].T)
            outputs.append(np.tanh(h @ part[3].T + part[4]))
        hidden.append(h)
        return np.array(outputs)
    wanted, states = in_both_directions(X, CONT, run, parts)
    zeros = np.zeros((4, ITEMS, WIDTH))
    bottoms = [X, CONT, zeros] + ([zeros] if kind == "LSTM" else [])
    names = " ".join(f"bottom: 'x{i}'" for i in range(len(bottoms)))
    last = "top: 'c'" if kind == "LSTM" else ""
    text = (f"layer {{ name: 'l' type: '{kind}' {names} top: 'y' top: 'h' {last} "
            f"recurrent_param {{ num_output: {WIDTH} num_layers: 2 bidirectional: true expose_hidden: true }} }}")
    got = run_layer(text, *bottoms, params=[value for part in parts for value in part])
    assert got["y"] == pytest.approx(wanted, abs=1e-5)
    assert got["h"] == pytest.approx(np.array(hidden) if kind == "RNN" else states, abs=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_states_of_all_parts_have_one_shape(run_layer, kind):
    states = [np.zeros((1, ITEMS, WIDTH))] * (1 + (kind == "LSTM"))
    names = " ".join(f"bottom: 'x{i}'" for i in range(2 + len(states)))
    tops = " ".join(f"top: 'y{i}'" for i in range(1 + len(states)))
    text = f"layer {{ name: 'l' type: '{kind}' {names} {tops} recurrent_param {{ num_output: 2 num_layers: 3 bidirectional: true expose_hidden: true }} }}"
    with pytest.raises(caffe.InvalidArgument, match="bottom 2 has shape 1x3x2; a state must be 6x3x2"):
        run_layer(text, X, CONT, *states)


def recurrent_net(write, kind, options="", dtype="DOUBLE", states=0, seed=3, statics=0):
    """A net in training with random inputs x0, x1 (cont), and states x2 and so on, and random parameters."""
    shapes = [X.shape, CONT.shape] + [(ITEMS, statics)] * (statics > 0) + [(states, ITEMS, WIDTH)] * ((1 + (kind == "LSTM")) * (states > 0))
    text = f"default_forward_type: {dtype} default_backward_type: {dtype} force_backward: true\n"
    for i, shape in enumerate(shapes):
        text += (f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ "
                 + " ".join(f"dim: {extent}" for extent in shape) + " } } }\n")
    bottoms = " ".join(f"bottom: 'x{i}'" for i in range(len(shapes)))
    tops = " ".join(f"top: 'y{i}'" for i in range(len(shapes) - 1 - (statics > 0) if states else 1))
    net = caffe.Net(write(f"{text} layer {{ name: 'l' type: '{kind}' {bottoms} {tops} recurrent_param {{ num_output: {WIDTH} {options} }} }}"),
                    caffe.TRAIN)
    generator = np.random.default_rng(seed)
    for blob in net.params["l"]:
        blob.data[...] = generator.standard_normal(blob.shape) * 0.7
    for i, shape in enumerate(shapes):
        net.blobs[f"x{i}"].data[...] = CONT if i == 1 else generator.standard_normal(shape)
    return net


def gradients(net, tops, seed=4):
    """Those of the bottoms and the parameters, for random gradients of these tops."""
    net.clear_param_diffs()
    net.forward()
    for name in net.outputs:
        net.blobs[name].diff[...] = np.random.default_rng(seed).standard_normal(net.blobs[name].shape) if name in tops else 0
    net.backward()
    found = {name: net.blobs[name].diff.copy() for name in net.inputs}
    return {**found, **{k: blob.diff.copy() for k, blob in enumerate(net.params["l"])}}


@pytest.mark.parametrize("dtype, tolerance", [("FLOAT", 1e-5), ("BFLOAT16", 5e-2), ("FLOAT16", 1e-2)])
@pytest.mark.parametrize("options", ["", "num_layers: 2 bidirectional: true"])
@pytest.mark.parametrize("statics", [0, 4])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU reset_after: true", "RNN"])
def test_other_types_compute_the_same(write, kind, statics, options, dtype, tolerance):
    parts = 4 if options else 1
    kind, _, more = kind.partition(" ")
    options += f" {more} expose_hidden: true backprop_states: true"
    nets = [recurrent_net(write, kind, options, one, parts, statics=statics) for one in ("DOUBLE", dtype)]
    assert not re.search(r"(?<!grad)-in-turn", str(nets[1].plan()))  # the kernel of the whole layer
    wanted, got = (gradients(net, net.outputs) for net in nets)
    for name in nets[0].outputs:
        assert nets[1].blobs[name].data == pytest.approx(nets[0].blobs[name].data, abs=tolerance), name
    for name, want in wanted.items():
        assert got[name] == pytest.approx(want, abs=2 * tolerance * max(1, abs(want).max())), name


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options, parts", [("", 1), ("num_layers: 2 bidirectional: true", 4)])
def test_gradients_pass_through_states_only_if_told(write, kind, options, parts):
    options += " expose_hidden: true"
    without, through = (recurrent_net(write, kind, options + more, states=parts) for more in ("", " backprop_states: true"))
    states = through.inputs[2:]
    for net in (without, through):
        net.blobs["x1"].data[...] = 1
    of_output = gradients(without, ["y0"])
    assert all((of_output[name] == 0).all() for name in states)
    both = gradients(without, without.outputs)
    assert all((both[name] == of_output[name]).all() for name in both)  # gradients of final states count for nothing
    of_output, both = gradients(through, ["y0"]), gradients(through, through.outputs)
    assert all((of_output[name] != 0).any() for name in states)
    assert all((both[name] != of_output[name]).any() for name in [*states, "x0"])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_only_the_forward_direction_goes_on_from_the_last_pass(write, kind):
    net = recurrent_net(write, kind, "bidirectional: true")
    net.blobs["x1"].data[...] = 1
    first, second = net.forward()["y0"].copy(), net.forward()["y0"].copy()
    assert (first[:, :, WIDTH:] == second[:, :, WIDTH:]).all()
    assert (first[:, :, :WIDTH] != second[:, :, :WIDTH]).any(axis=(1, 2)).all()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_all_steps_are_one_step_of_the_plan(write, kind):
    steps = [step.op for step in recurrent_net(write, kind, "num_layers: 2 bidirectional: true").plan().steps]
    assert len([op for op in steps if op.title().startswith(f"{kind.title()}Steps".title()) and "Grad" not in op]) == 4


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_outputs_have_the_type_of_the_data_and_states_are_float(write, kind):
    text = ("default_forward_type: BFLOAT16 default_backward_type: BFLOAT16 layer { name: 'x' type: 'Input' top: 'x' top: 'c' input_param { "
            "shape { dim: 4 dim: 3 dim: 5 } shape { dim: 4 dim: 3 } } } "
            f"layer {{ name: 'l' type: '{kind}' bottom: 'x' bottom: 'c' top: 'y' recurrent_param {{ num_output: 2 }} }} "
            "layer { name: 'm' type: 'InnerProduct' bottom: 'y' top: 'z' inner_product_param { num_output: 5 axis: 2 } }")
    steps = caffe.Net(write(text), caffe.TRAIN).plan().steps
    assert [step.operands.startswith("4x3x2 bfloat16") for step in steps if step.layers == "m" and step.op.startswith("Gemm")] == [True]
    recurrence = next(step.operands for step in steps if "steps of" in step.op)
    assert recurrence.endswith("3x2 float") and "bfloat16" in recurrence.split("->")[1]


def test_more_steps_than_were_unrolled(run_layer):
    x = RANDOM.standard_normal((20000, 1, 1))
    y = run_layer(gru("bottom: 'x0'"), x, params=(random(3 * WIDTH, 1), *GRU[1:]))["y"]
    assert y.shape == (20000, 1, WIDTH) and np.isfinite(y).all()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_batch_without_items(run_layer, kind):
    layer = f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' bottom: 'x1' top: 'y' recurrent_param {{ num_output: 2 }} }}"
    with pytest.raises(caffe.Error):  # never the end of the process
        run_layer(layer, np.zeros((2, 0, 3)), np.zeros((2, 0)))

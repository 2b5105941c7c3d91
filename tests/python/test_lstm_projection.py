"""LSTM with a projection of the hidden state, next to NumPy and to numbers that PyTorch 2.15 gave."""
import caffe
import numpy as np
import pytest

STEPS, ITEMS, INPUTS, WIDTH, PROJECTED, STATICS = 5, 3, 4, 6, 2, 3
CONT = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 1, 1]], float)
PARTS = {"": 1, "num_layers: 2 bidirectional: true": 4}


def net_of(write, options="", shapes=(), tops="y", phase=caffe.TRAIN, dtype="DOUBLE", kind="LSTM", width=WIDTH, projected=PROJECTED):
    """A net with inputs x0, x1, ... of these shapes, and random parameters."""
    inputs = "".join(f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ "
                     + " ".join(f"dim: {extent}" for extent in shape) + " } } }\n" for i, shape in enumerate(shapes))
    bottoms, names = (" ".join(f"{field}: '{name}'" for name in of)
                      for field, of in (("bottom", [f"x{i}" for i in range(len(shapes))]), ("top", tops)))
    net = caffe.Net(write(f"default_forward_type: {dtype} default_backward_type: {dtype} force_backward: true\n{inputs}"
                          f"layer {{ name: 'l' type: '{kind}' {bottoms} {names} recurrent_param {{ num_output: {width} "
                          f"projection_size: {projected} {options} }} }}"), phase)
    random = np.random.default_rng(3)
    for blob in net.params["l"]:
        blob.data[...] = random.normal(0, 0.7, blob.shape)
    for i, shape in enumerate(shapes):
        net.blobs[f"x{i}"].data[...] = CONT if i == 1 and shape == CONT.shape else random.standard_normal(shape)
    return net


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def steps_of(x, cont, weights, bias, *others):
    """All h of a part, and its last h and c. others: [weights of the static input, already multiplied], recurrent weights,
    projection, first h, first c."""
    *static, recurrent, projection, h, c = others
    outputs = []
    for inputs, goes_on in zip(x, cont[:, :, None]):
        gates = inputs @ weights.T + bias + sum(static) + goes_on * h @ recurrent.T
        i, f, o, g = np.split(gates, 4, axis=1)
        c = goes_on * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = (sigmoid(o) * np.tanh(c)) @ projection.T
        outputs.append(h)
    return np.array(outputs), h, c


@pytest.mark.parametrize("options", PARTS)
@pytest.mark.parametrize("has_static", [False, True])
def test_values(write, options, has_static):
    """Layers, directions, cont, a static input, and states in and out."""
    parts = PARTS[options]
    shapes = [(STEPS, ITEMS, INPUTS), CONT.shape] + [(ITEMS, STATICS)] * has_static + [(parts, ITEMS, PROJECTED), (parts, ITEMS, WIDTH)]
    net = net_of(write, f"expose_hidden: true {options}", shapes, "yhc")
    x, params = net.blobs["x0"].data, iter([blob.data for blob in net.params["l"]])
    first_h, first_c = (net.blobs[f"x{len(shapes) - 2 + k}"].data for k in range(2))
    reverse_cont = np.concatenate([np.ones_like(CONT[:1]), CONT[:0:-1]])
    outputs, states = [], []
    for part in range(parts):
        of_part = [next(params) for _ in range(4)]
        if has_static and part < max(1, parts // 2):
            of_part[2] = net.blobs["x2"].data @ of_part[2].T
            of_part.append(next(params))
        of_part += [first_h[part], first_c[part]]
        if part % 2 == 0:
            if outputs:
                x, outputs = np.concatenate(outputs, axis=2), []
            y, *last = steps_of(x, CONT, *of_part)
        else:
            y, *last = steps_of(x[::-1], reverse_cont, *of_part)
            y = y[::-1]
        outputs.append(y)
        states.append(last)
    assert next(params, None) is None
    net.forward()
    assert net.blobs["y"].data == pytest.approx(np.concatenate(outputs, axis=2), abs=1e-6)
    for name, wanted in zip("hc", zip(*states)):
        assert net.blobs[name].data == pytest.approx(np.array(wanted), abs=1e-6)


def numbers(shape, step):
    return np.sin(np.arange(np.prod(shape)) * step + 0.3).reshape(shape) * 0.8


def test_values_and_gradients_of_pytorch(write):
    """nn.LSTM(2, 3, num_layers=2, bidirectional=True, proj_size=2) in float, where parameter k has numbers(shape, 1 + 0.37 k).

    The loss is the sum of y, h and c, each element times its position, from 1.
    """
    def ours(rows):  # PyTorch orders the gates i, f, g, o
        i, f, g, o = np.split(rows, 4)
        return np.concatenate([i, f, o, g])
    net = net_of(write, "num_layers: 2 bidirectional: true expose_hidden: true backprop_states: true",
                 [(3, 1, 2), (3, 1), (4, 1, 2), (4, 1, 3)], "yhc", dtype="FLOAT", width=3)
    net.blobs["x1"].data[...] = 1
    for name, step in (("x0", 2), ("x2", 2.5), ("x3", 3)):
        net.blobs[name].data[...] = numbers(net.blobs[name].shape, step)
    for part in range(4):
        shapes = [(12, 2 if part < 2 else 4), (12, 2), (12,), (12,), (2, 3)]
        weights, recurrent, bias, recurrent_bias, projection = (numbers(shape, 1 + 0.37 * (5 * part + k)) for k, shape in enumerate(shapes))
        for blob, value in zip(net.params["l"][4 * part:], (ours(weights), ours(bias + recurrent_bias), ours(recurrent), projection)):
            blob.data[...] = value
    net.forward()
    for name in "yhc":
        blob = net.blobs[name]
        blob.diff[...] = np.arange(1, blob.count + 1).reshape(blob.shape)
    net.backward()
    wanted = {
        "y": [0.0474414, 0.0124568, 0.0119976, -0.0905295, 0.0429118, -0.0046797, 0.0193466, -0.0672992, 0.0625901, -0.0178216,
              -0.0244132, -0.0719445],
        "h": [0.0104684, -0.2745639, -0.1984784, -0.1367814, 0.0625901, -0.0178216, 0.0119976, -0.0905295],
        "c": [-0.4330136, 0.5891128, 0.0832484, -0.5549576, 0.0348419, -0.6592864, 0.3323746, 0.2770817, 0.0321587, 0.2667666,
              -0.0276619, 0.0810969]}
    gradients = {
        "x0": [2.0260859, -2.4445422, 3.5588679, -1.0816460, 1.8890533, -0.1125301],
        "x2": [-4.6123123, -4.3507376, 0.8560974, -0.8043792, 0.0071068, 0.1585387, 1.9628863, -2.3174291],
        "x3": [5.8181829, -0.2260319, -1.0980762, 0.2209759, -2.1185226, 1.3834056, 0.1140448, 0.2709519, 0.5824490, 0.1628781,
               3.0341356, 0.5832060]}
    of_projections = {3: [-4.5728331, 6.6105499, 0.2421162, -2.6640241, 3.9680240, -0.2329988],
                      15: [5.4448318, -0.0786086, 2.5874760, 3.6952989, -0.2380410, 1.6176748]}
    for name, values in wanted.items():
        assert net.blobs[name].data.ravel() == pytest.approx(values, abs=1e-6), name
    for name, values in gradients.items():
        assert net.blobs[name].diff.ravel() == pytest.approx(values, abs=2e-5), name
    for k, values in of_projections.items():
        assert net.params["l"][k].diff.ravel() == pytest.approx(values, abs=2e-5), k


@pytest.mark.parametrize("dtype, tolerance", [("FLOAT", 1e-5), ("BFLOAT16", 5e-2), ("FLOAT16", 1e-2)])
@pytest.mark.parametrize("options", PARTS)
def test_other_types_compute_the_same(write, options, dtype, tolerance):
    parts = PARTS[options]
    shapes = [(STEPS, ITEMS, INPUTS), CONT.shape, (ITEMS, STATICS), (parts, ITEMS, PROJECTED), (parts, ITEMS, WIDTH)]
    nets = [net_of(write, f"expose_hidden: true backprop_states: true {options}", shapes, "yhc", dtype=one) for one in ("DOUBLE", dtype)]
    for net in nets:
        net.forward()
        for name in "yhc":
            net.blobs[name].diff[...] = np.random.default_rng(4).standard_normal(net.blobs[name].shape)
        net.backward()
    for name in "yhc":
        assert nets[1].blobs[name].data == pytest.approx(nets[0].blobs[name].data, abs=tolerance), name
    wanted, got = ([*(net.blobs[name].diff for name in net.inputs), *(blob.diff for blob in net.params["l"])] for net in nets)
    for k, (want, have) in enumerate(zip(wanted, got)):
        assert have == pytest.approx(want, abs=2 * tolerance * max(1, abs(want).max())), k
    assert all((abs(blob.diff) > 0).any() for blob in nets[0].params["l"])


def test_states_go_on_in_the_next_pass(write):
    net = net_of(write, "", [(STEPS, ITEMS, INPUTS), CONT.shape], phase=caffe.TEST)
    whole = net_of(write, "", [(2 * STEPS, ITEMS, INPUTS), (2 * STEPS, ITEMS)], phase=caffe.TEST)
    whole.blobs["x1"].data[...] = net.blobs["x1"].data[...] = 1
    whole.blobs["x0"].data[:STEPS] = net.blobs["x0"].data
    whole.blobs["x0"].data[STEPS:] = net.blobs["x0"].data[::-1]
    first = net.forward()["y"].copy()
    net.blobs["x0"].data[...] = net.blobs["x0"].data[::-1].copy()
    assert np.concatenate([first, net.forward()["y"]]) == pytest.approx(whole.forward()["y"], abs=1e-6)


def test_shapes_of_parameters(write):
    net = net_of(write, "num_layers: 2 bidirectional: true", [(STEPS, ITEMS, INPUTS), CONT.shape])
    of_part = [(24, 4), (24,), (24, 2), (2, 6)]
    assert [tuple(blob.shape) for blob in net.params["l"]] == 2 * of_part + 2 * of_part
    assert tuple(net.blobs["y"].shape) == (STEPS, ITEMS, 2 * PROJECTED)


@pytest.mark.parametrize("kind, width, projected, message", [
    ("LSTM", 6, 6, "layer 'l' .*projection_size is 6, but num_output is 6; a projection must make the hidden state narrower: "
                   "give less than num_output, or leave it out"),
    ("LSTM", 6, 7, "projection_size is 7, but num_output is 6"),
    ("GRU", 6, 2, "layer 'l' .*projection_size is 2, but only LSTM has projections; leave it out"),
    ("RNN", 6, 2, "projection_size is 2, but only LSTM has projections")])
def test_what_cannot_be_is_refused(write, kind, width, projected, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        net_of(write, "", [(STEPS, ITEMS, INPUTS), CONT.shape], kind=kind, width=width, projected=projected)


def test_states_have_their_own_widths(write):
    states = [(1, ITEMS, WIDTH)] * 2
    with pytest.raises(caffe.InvalidArgument, match="bottom 2 has shape 1x3x6; a state must be 1x3x2"):
        net_of(write, "expose_hidden: true", [(STEPS, ITEMS, INPUTS), CONT.shape, *states], "yhc")
    with pytest.raises(caffe.InvalidArgument, match="bottom 3 has shape 1x3x2; a state must be 1x3x6"):
        net_of(write, "expose_hidden: true", [(STEPS, ITEMS, INPUTS), CONT.shape, *[(1, ITEMS, PROJECTED)] * 2], "yhc")

"""Compares CTCDecoder with a sum over all paths."""
import itertools

import caffe
import numpy as np
import pytest


def labels_of(path, blank, merges):
    kept = [c for t, c in enumerate(path) if not (merges and t and path[t - 1] == c)]
    return tuple(c for c in kept if c != blank)


def log_softmax(scores):
    shifted = scores - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def all_labels(log_y, blank, merges):
    """The probability of each sequence of labels."""
    found = {}
    for path in itertools.product(range(log_y.shape[1]), repeat=len(log_y)):
        labels = labels_of(path, blank, merges)
        found[labels] = found.get(labels, 0) + np.exp(sum(log_y[t, c] for t, c in enumerate(path)))
    return found


def decode(run_layer, options, *inputs):
    bottoms = " ".join(f"bottom: 'x{i}'" for i in range(len(inputs)))
    out = run_layer(f"layer {{ name: 'l' type: 'CTCDecoder' {bottoms} top: 'labels' top: 'scores' ctc_decoder_param {{ {options} }} }}",
                    *inputs)
    assert all((row[np.argmax(row < 0):] == -1).all() for row in out["labels"] if (row < 0).any())
    return [tuple(int(c) for c in row if c >= 0) for row in out["labels"]], out["scores"], out["labels"].shape


def draw(steps, items, classes, seed=3):
    return np.random.default_rng(seed).normal(0, 2, (steps, items, classes))


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("blank, index", [(3, -1), (0, 0), (1, 1), (2, -2)])
def test_a_wide_beam_finds_the_likeliest_labels(run_layer, merges, blank, index):
    scores = draw(5, 12, 4)
    options = f"method: BEAM beam_width: 1000 blank_index: {index} merge_repeated: {str(merges).lower()}"
    labels, probabilities, shape = decode(run_layer, options, scores)
    assert shape == (12, 5)
    for n in range(12):
        of = all_labels(log_softmax(scores[:, n]), blank, merges)
        best = max(of, key=of.get)
        assert labels[n] == best
        assert probabilities[n] == pytest.approx(np.log(of[best]), rel=1e-5)


@pytest.mark.parametrize("merges", [True, False])
def test_greedy_takes_the_best_class_of_each_step(run_layer, merges):
    scores = draw(6, 9, 3)
    labels, probabilities, _ = decode(run_layer, f"merge_repeated: {str(merges).lower()}", scores)
    log_y = log_softmax(scores)
    for n in range(9):
        assert labels[n] == labels_of(log_y[:, n].argmax(-1), 2, merges)
        assert probabilities[n] == pytest.approx(log_y[:, n].max(-1).sum(), rel=1e-5)


def test_a_beam_finds_what_greedy_misses(run_layer):
    # Graves 2012: the blank is likeliest at both steps, but "0" is likelier than no label.
    scores = np.log(np.array([[[0.4, 0.6]], [[0.4, 0.6]]]))
    assert decode(run_layer, "", scores)[0] == [()]
    labels, probabilities, _ = decode(run_layer, "method: BEAM", scores)
    assert labels == [(0,)] and probabilities[0] == pytest.approx(np.log(0.64), rel=1e-6)


def search(log_y, blank, merges, width):
    """The same search with a dictionary of prefixes: probabilities of paths that end with the blank, and of others."""
    beams = {(): (1.0, 0.0)}
    for step in np.exp(log_y):
        after = {}

        def add(prefix, with_blank, without):
            old = after.get(prefix, (0.0, 0.0))
            after[prefix] = old[0] + with_blank, old[1] + without

        for prefix, (with_blank, without) in beams.items():
            add(prefix, (with_blank + without) * step[blank], 0)
            for c in (c for c in range(len(step)) if c != blank):
                is_repeated = merges and prefix[-1:] == (c,)
                if is_repeated:
                    add(prefix, 0, without * step[c])
                add(prefix + (c,), 0, (with_blank if is_repeated else with_blank + without) * step[c])
        beams = dict(sorted(after.items(), key=lambda one: (-sum(one[1]), one[0]))[:width])
    best, probabilities = next(iter(beams.items()))
    return best, sum(probabilities)


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_a_narrow_beam_keeps_the_best_prefixes(run_layer, merges, width):
    """Some prefixes leave the beam and come back, while longer ones stay: their paths belong together."""
    scores = draw(9, 60, 3)
    labels, probabilities, _ = decode(run_layer, f"method: BEAM beam_width: {width} merge_repeated: {str(merges).lower()}", scores)
    for n in range(60):
        best, probability = search(log_softmax(np.float32(scores[:, n]).astype(float)), 2, merges, width)
        assert labels[n] == best
        assert probabilities[n] == pytest.approx(np.log(probability), rel=1e-5)


def test_equal_scores_give_the_first_labels(run_layer):
    scores = np.zeros((3, 1, 4))
    assert decode(run_layer, "", scores)[0] == [(0,)]
    once = decode(run_layer, "method: BEAM beam_width: 2", scores)[0]
    assert once == decode(run_layer, "method: BEAM beam_width: 2", scores)[0] == [(0,)]


@pytest.mark.parametrize("method", ["GREEDY", "BEAM"])
def test_sequences_end_early(run_layer, method):
    scores, lengths = draw(7, 3, 4), [7, 1, 4]
    assert decode(run_layer, f"method: {method}", scores, np.array([7, 0, 4]))[0][1] == ()
    indicators = np.array([[0] + [1] * (n - 1) + [0] * (7 - n) for n in lengths]).T
    whole = [decode(run_layer, f"method: {method}", scores[:n, k:k + 1]) for k, n in enumerate(lengths)]
    for second in (np.array(lengths), indicators, np.array(lengths)[:, None]):
        labels, probabilities, _ = decode(run_layer, f"method: {method}", scores, second)
        assert labels == [one[0][0] for one in whole]
        assert np.allclose(probabilities, [one[1][0] for one in whole])


def test_labels_stay_whole_in_16_bits(write):
    net = caffe.Net(write("default_forward_type: FLOAT16 layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 dim: 4099 } } }"
                          "layer { name: 'l' type: 'CTCDecoder' bottom: 'x' top: 'y' }"), caffe.TEST)
    net.blobs["x"].data[..., 4097] = 1
    assert net.forward()["y"].tolist() == [[4097]]


@pytest.mark.parametrize("options, shapes, message", [
    ("blank_index: 4", [(3, 2, 4)], "the blank is class 4; there are 4 classes, so it must be one of 0..3"),
    ("blank_index: -5", [(3, 2, 4)], "the blank is class -1; there are 4 classes"),
    ("beam_width: 0", [(3, 2, 4)], "beam_width is 0; it must be at least 1"),
    ("", [(3, 2)], "bottom 0 has shape 3x2; scores are T x N x C"),
    ("", [(0, 2, 4)], "there must be at least 1 time step"),
    ("", [(3, 2, 4), (3,)], "bottom 1 has shape 3; it must hold a length for each of 2 sequences, or indicators T x N, 3 x 2"),
])
def test_what_does_not_fit_is_refused(run_layer, options, shapes, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        decode(run_layer, options, *map(np.zeros, shapes))


@pytest.mark.parametrize("length", [4, 1.5, -1])
def test_a_wrong_length_is_refused(run_layer, length):
    with pytest.raises(caffe.InvalidArgument, match=f"the length {length} of sequence 1 must be a whole number in 0..3"):
        decode(run_layer, "", np.zeros((3, 2, 4)), np.array([1, length]))


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_scores_without_a_softmax_are_refused(run_layer, score):
    scores = np.zeros((3, 2, 4))
    scores[1, 1, 2] = score
    with pytest.raises(caffe.InvalidArgument, match="the scores of sequence 1 at time step 1 have no softmax"):
        decode(run_layer, "", scores)

"""LSTM, GRU and RNN: one layer each."""
import numpy as np

from .registry import reads

_SATURATED = 1e4  # the sigmoid of +-1e4 is exactly 1 or 0


class _Recurrent:
    """A recurrent node: W, R and the sums of both biases for each direction, and its sizes."""

    def __init__(self, node, gates, activations):
        self.node, self.direction = node, node.get("direction", "forward")
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.steps, self.items = node.shape()[:2]
        node.require(not node.get("layout", 0), "layout = 1; items come after steps in the layer")
        node.require(not node.get("clip", 0), "clip; the layer does not limit its gates")
        given = [name.decode().lower() for name in node.get("activations", [])]
        node.require(given in ([], activations * self.directions), f"activations {', '.join(given)}; the layer has {', '.join(activations)}")
        if node.has(4):
            lengths = node.weights(4, "lengths of sequences")
            node.require(np.all(lengths == self.steps), f"sequences shorter than the {self.steps} steps")
        self.weights, self.recurrent = node.weights(1, "weights"), node.weights(2, "weights")
        self.width = self.recurrent.shape[2]
        node.require(self.weights.shape[:2] == self.recurrent.shape[:2] == (self.directions, gates * self.width),
                     f"weights of shapes {self.weights.shape} and {self.recurrent.shape} for {self.directions} directions")
        biases = node.weights(3, "biases") if node.has(3) else np.zeros((self.directions, 2 * gates * self.width), np.float32)
        self.both_biases = biases.reshape(self.directions, 2, gates * self.width)
        self.biases = self.both_biases.sum(1)

    def write(self, kind, blobs, states, **options):
        """Writes the layer, with these options. states: for each the index of the input that holds the initial one, and of the output for the last one."""
        node = self.node
        used = [index < len(node.outputs) and node.is_read(node.outputs[index]) for index in range(1 + len(states))]
        shows = any(used[1:]) or any(node.has(index) and np.any(node.constant(index) != 0) for index, _ in states)
        x = node.blob_of(0)
        if self.direction == "reverse":
            node.layer("Reverse", bottoms=[x], tops=[self.node.scratch("turned")], reverse_param={"axis": 0})
            x = self.node.scratch("turned")
        marks = np.ones((self.steps, self.items), np.float32)
        marks[0] = 0 if not shows else 1  # without states as bottoms, those of the last pass would go on
        bottoms, tops = [x, node.hold(marks, "cont")], [self.node.scratch("outputs")]
        if shows:
            for index, output in states:
                zeros = np.zeros((self.directions, self.items, self.width), np.float32)
                bottoms.append(node.blob_of(index) if node.has(index) else node.hold(zeros, f"state{index}"))
                tops.append(node.outputs[output] if used[output] else self.node.scratch(f"last{output}"))
        node.layer(kind, bottoms=bottoms, tops=tops, blobs=blobs, recurrent_param={
            "num_output": self.width, "bidirectional": self.directions == 2 or None, "expose_hidden": shows or None, **options})
        unread = [top for k, top in enumerate(tops) if not used[k]]
        if unread:
            node.layer("Silence", bottoms=unread, tops=[])
        if used[0]:
            self._write_outputs(tops[0])

    def _write_outputs(self, top):
        """Outputs with an axis for the directions, after that of the steps."""
        node, sizes = self.node, [self.steps, self.items, self.directions, self.width]
        if self.direction == "reverse":
            node.layer("Reverse", bottoms=[top], tops=[self.node.scratch("turned_back")], reverse_param={"axis": 0})
            top = self.node.scratch("turned_back")
        if self.directions == 1:
            node.reshape(top, node.outputs[0], [self.steps, 1, self.items, self.width])
            return
        node.reshape(top, self.node.scratch("by_direction"), sizes)
        node.layer("Permute", bottoms=[self.node.scratch("by_direction")], permute_param={"order": [0, 2, 1, 3]})


def _blocks(array, order):
    """The gates' rows in another order."""
    parts = np.split(array, len(order))
    return np.concatenate([parts[k] for k in order])


@reads("LSTM")
def lstm(node):
    recurrent = _Recurrent(node, 4, ["sigmoid", "tanh", "tanh"])
    node.require(not node.has(7), "peepholes")
    node.require(not node.get("input_forget", 0), "input_forget")
    order, blobs = [0, 2, 1, 3], []  # ONNX has i, o, f, c; the layer i, f, o, c
    for weights, biases, fed_back in zip(recurrent.weights, recurrent.biases, recurrent.recurrent):
        blobs += [_blocks(array, order) for array in (weights, biases, fed_back)]
    recurrent.write("LSTM", blobs, [(5, 1), (6, 2)])


@reads("GRU")
def gru(node):
    recurrent = _Recurrent(node, 3, ["sigmoid", "tanh"])
    width, resets_after, blobs = recurrent.width, bool(node.get("linear_before_reset", 0)), []
    for weights, (of_inputs, of_states), fed_back in zip(recurrent.weights, recurrent.both_biases, recurrent.recurrent):
        apart = 2 * width if resets_after else 3 * width  # from there on the second bias is within the reset gate's factor
        blobs += [weights, np.concatenate([of_inputs[:apart] + of_states[:apart], of_inputs[apart:]]), *np.split(fed_back, 3)]
        if resets_after:
            blobs.append(of_states[apart:])
    recurrent.write("GRU", blobs, [(5, 1)], reset_after=resets_after or None)


@reads("RNN")
def rnn(node):
    """A GRU whose update gate is 0 and whose reset gate is 1: the layer RNN has a second product, which ONNX's does not have."""
    recurrent = _Recurrent(node, 1, ["tanh"])
    width, blobs = recurrent.width, []
    for weights, biases, fed_back in zip(recurrent.weights, recurrent.biases, recurrent.recurrent):
        gates = np.repeat(np.float32([-_SATURATED, _SATURATED]), width)
        nothing = np.zeros_like(fed_back)
        blobs += [np.concatenate([np.zeros_like(weights)] * 2 + [weights]), np.concatenate([gates, biases]), nothing, nothing, fed_back]
    recurrent.write("GRU", blobs, [(5, 1)])

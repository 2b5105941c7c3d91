"""Fixtures for the tests of the package caffe."""
import pytest

from built_package import SIMPLE


@pytest.fixture
def write(tmp_path):
    """write(text, name='net.prototxt') writes a new file with the text and returns its name."""
    def write_file(text, name="net.prototxt"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


@pytest.fixture
def simple(write):
    """A net with a convolution and a loss, with inputs set."""
    import caffe
    import numpy as np
    caffe.set_random_seed(3)
    net = caffe.Net(write(SIMPLE), caffe.TRAIN)
    random = np.random.default_rng(1)
    net.blobs["data"].data[...] = random.standard_normal((5, 2, 6, 7))
    net.blobs["label"].data[...] = random.integers(4, size=5)
    return net


@pytest.fixture
def run_layer(write):
    """run_layer(layers, *inputs): the net's outputs by name for arrays x0, x1, ...; computed in double, returned as float.

    `params` are the learned blobs of the layer `of`, in order; `train` chooses the phase.
    """
    def run(layers, *inputs, params=(), of="l", train=False):
        import caffe
        text = "default_forward_type: DOUBLE default_backward_type: DOUBLE\n"
        for i, value in enumerate(inputs):
            dims = " ".join(f"dim: {extent}" for extent in value.shape)
            text += f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ {dims} }} }} }}\n"
        net = caffe.Net(write(text + layers), caffe.TRAIN if train else caffe.TEST)
        for i, value in enumerate(inputs):
            net.blobs[f"x{i}"].data[...] = value
        for blob, value in zip(net.params[of] if params else (), params):
            blob.data[...] = value
        return {name: value.copy() for name, value in net.forward().items()}

    return run

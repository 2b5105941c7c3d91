"""Fixtures of the tests of package caffe."""
import pytest

from built_package import SIMPLE


@pytest.fixture
def write(tmp_path):
    """write(text, name='net.prototxt'): the name of a new file that holds the text."""
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

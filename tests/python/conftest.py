"""Tests of package caffe as the build left it, in the interpreter that it was built for."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve()
PACKAGE = BUILD / "python"
os.environ.setdefault("GLOG_minloglevel", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # small nets beside other load
sys.path.insert(0, str(PACKAGE))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

SIMPLE = """
name: 'simple'
force_backward: true
layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 5 dim: 2 dim: 6 dim: 7 } } }
layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 5 } } }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
        convolution_param { num_output: 11 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }
layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'relu' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'relu' top: 'ip'
        inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
"""


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

"""Layers whose results stay float in 16-bit nets, and what may follow them: values and gradients as in float."""
import numpy as np
import pytest

import caffe

TYPES = "".join(f"default_{what}: {{0}}\n" for what in ("forward_type", "backward_type", "forward_math", "backward_math"))
INPUT = 'force_backward: true layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 8 dim: 5 dim: 5 } } }\n'
FILLER = 'weight_filler { type: "xavier" }'
FIRST = {
    "Softmax": 'layer { name: "wide" type: "Softmax" bottom: "x" top: "wide" }',
    "MVN": 'layer { name: "wide" type: "MVN" bottom: "x" top: "wide" }',
    "Normalize": 'layer { name: "wide" type: "Normalize" bottom: "x" top: "wide" norm_param { across_spatial: false '
                 'channel_shared: false scale_filler { value: 2 } } }',
    "LSTM": 'layer { name: "cont" type: "DummyData" top: "cont" dummy_data_param { shape { dim: 2 dim: 8 } } } '
            f'layer {{ name: "wide" type: "LSTM" bottom: "x" bottom: "cont" top: "wide" recurrent_param {{ num_output: 6 {FILLER} }} }}',
}
NEXT = {
    "nothing": "",
    "ReLU": 'layer { name: "y" type: "ReLU" bottom: "wide" top: "y" }',
    "in place": 'layer { name: "relu" type: "ReLU" bottom: "wide" top: "wide" } layer { name: "y" type: "Power" bottom: "wide" '
                'top: "y" power_param { scale: 2 } }',
    "InnerProduct": f'layer {{ name: "y" type: "InnerProduct" bottom: "wide" top: "y" inner_product_param {{ num_output: 3 {FILLER} }} }}',
    "Slice": 'layer { name: "cut" type: "Slice" bottom: "wide" top: "a" top: "b" slice_param { slice_point: 3 } } '
             'layer { name: "y" type: "Sigmoid" bottom: "a" top: "y" } layer { name: "rest" type: "Silence" bottom: "b" }',
    "Scale": 'layer { name: "y" type: "Scale" bottom: "wide" top: "y" }',
}
# For results that are images of the input's size.
NEXT_OF_IMAGES = {
    "Convolution": f'layer {{ name: "y" type: "Convolution" bottom: "wide" top: "y" convolution_param {{ num_output: 4 kernel_size: 3 {FILLER} }} }}',
    "Pooling": 'layer { name: "y" type: "Pooling" bottom: "wide" top: "y" pooling_param { kernel_size: 3 stride: 2 } }',
    "Eltwise": 'layer { name: "y" type: "Eltwise" bottom: "x" bottom: "wide" top: "y" }',
    "product": 'layer { name: "y" type: "Eltwise" bottom: "wide" bottom: "x" top: "y" eltwise_param { operation: PROD } }',
    "Concat": 'layer { name: "y" type: "Concat" bottom: "x" bottom: "wide" top: "y" }',
    "BatchNorm": 'layer { name: "y" type: "BatchNorm" bottom: "wide" top: "y" }',
    "LRN": 'layer { name: "y" type: "LRN" bottom: "wide" top: "y" }',
}


def values_and_gradients(path):
    caffe.set_random_seed(3)
    net = caffe.Net(path, caffe.TRAIN)
    net.blobs["x"].data[...] = np.random.default_rng(1).uniform(-3, 3, net.blobs["x"].data.shape)
    net.forward()
    y = net.blobs["y" if "y" in net.blobs else "wide"]
    found = [np.array(y.data)]
    y.diff[...] = np.cos(np.arange(y.diff.size)).reshape(y.diff.shape)
    net.backward()
    return found + [np.array(net.blobs["x"].diff)] + [np.array(blob.diff) for blobs in net.params.values() for blob in blobs]


# The scale of Normalize has no gradient where BatchNorm takes it away again.
CASES = [(first, then) for first in FIRST for then in (*NEXT, *(NEXT_OF_IMAGES if first != "LSTM" else ()))
         if (first, then) != ("Normalize", "BatchNorm")]


@pytest.mark.parametrize("first, then", CASES)
@pytest.mark.parametrize("dtype, tolerance", [("FLOAT16", 0.004), ("BFLOAT16", 0.03)])
def test_float_results_meet_sixteen_bits(write, first, then, dtype, tolerance):
    text = INPUT + FIRST[first] + {**NEXT, **NEXT_OF_IMAGES}[then]
    expected = values_and_gradients(write(text, "float.prototxt"))
    for found, wanted in zip(values_and_gradients(write(TYPES.format(dtype) + text, "narrow.prototxt")), expected):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(), 1e-3))

"""Layers whose results are never stored in 16 bits, and the layers after them, in nets of mixed types: values and gradients
equal those in float."""
import numpy as np
import pytest

import caffe

TYPES = "".join(f"default_{way}_{what}: {{{i}}}\n" for i, way in enumerate(("forward", "backward")) for what in ("type", "math"))
INPUT = 'force_backward: true layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 8 dim: 5 dim: 5 } } }\n'
FILLER = 'weight_filler { type: "xavier" }'
FIRST = {
    "Softmax in place": 'layer { name: "copy" type: "Power" bottom: "x" top: "wide" } '
                        'layer { name: "soft" type: "Softmax" bottom: "wide" top: "wide" }',
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
    "SoftmaxWithLoss": 'layer { name: "labels" type: "DummyData" top: "labels" dummy_data_param { shape { dim: 2 } data_filler { value: 3 } } } '
                       'layer { name: "flat" type: "Flatten" bottom: "wide" top: "flat" } '
                       'layer { name: "y" type: "SoftmaxWithLoss" bottom: "flat" bottom: "labels" top: "y" }',
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


# The scale of Normalize has no gradient if BatchNorm removes it again.
CASES = [(first, then) for first in FIRST for then in (*NEXT, *(NEXT_OF_IMAGES if first != "LSTM" else ()))
         if (first, then) != ("Normalize", "BatchNorm")]


@pytest.mark.parametrize("first, then", CASES)
@pytest.mark.parametrize("forward, backward, tolerance", [
    ("FLOAT16", "FLOAT16", 0.004), ("BFLOAT16", "BFLOAT16", 0.03), ("DOUBLE", "FLOAT", 1e-5), ("FLOAT", "DOUBLE", 1e-5),
    ("FLOAT16", "DOUBLE", 0.004)])
def test_types_meet(write, first, then, forward, backward, tolerance):
    text = INPUT + FIRST[first] + {**NEXT, **NEXT_OF_IMAGES}[then]
    expected = values_and_gradients(write(text, "float.prototxt"))
    for found, wanted in zip(values_and_gradients(write(TYPES.format(forward, backward) + text, "mixed.prototxt")), expected):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(), 1e-3))


@pytest.mark.parametrize("own", ["forward_type: DOUBLE", "backward_type: DOUBLE", "forward_type: FLOAT16 backward_type: DOUBLE",
                                 "forward_type: DOUBLE backward_type: DOUBLE"])
def test_a_loss_may_have_types_of_its_own(write, own):
    text = INPUT + ('layer { name: "labels" type: "DummyData" top: "labels" dummy_data_param { shape { dim: 2 } data_filler { value: 3 } } } '
                    f'layer {{ name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param {{ num_output: 5 {FILLER} }} }} '
                    'layer { name: "y" type: "SoftmaxWithLoss" bottom: "ip" bottom: "labels" top: "y" OWN }')
    expected = values_and_gradients(write(text.replace("OWN", ""), "float.prototxt"))
    tolerance = 0.004 if "16" in own else 1e-5
    for found, wanted in zip(values_and_gradients(write(text.replace("OWN", own), "mixed.prototxt")), expected):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16", "DOUBLE"])
@pytest.mark.parametrize("layer", ["ReLU", "Softmax", "MVN"])
def test_an_input_is_changed_in_place(write, dtype, layer):
    text = INPUT + f'layer {{ name: "change" type: "{layer}" bottom: "x" top: "x" }}'
    ones = {name: caffe.Net(write(header + text, "net.prototxt"), caffe.TEST) for name, header in (
        ("float", ""), ("other", TYPES.format(dtype, dtype)))}
    values = np.linspace(-1, 1, 400).reshape(2, 8, 5, 5)
    wanted, found = (np.array(net.forward(x=values)["x"]) for net in ones.values())
    np.testing.assert_allclose(found, wanted, atol=0.04 * np.abs(wanted).max())

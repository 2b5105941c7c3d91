"""The random inputs of a comparison resemble those of users: the layer that reads an input decides its values."""
from types import SimpleNamespace

import caffe.onnx
import nets
import numpy as np
import pytest
from caffe.onnx.inputs import inputs_of


def _drawn(shapes, layers):
    net = nets.net_with(shapes, layers)
    return inputs_of(net, SimpleNamespace(inputs={name: tuple(net.blobs[name].shape) for name in net.inputs}), None)


REGIONS = {
    "ROIPooling": "roi_pooling_param { pooled_w: 3 pooled_h: 3 spatial_scale: 0.0625 }",
    "ROIAlign": "roi_align_param { pooled_w: 3 pooled_h: 3 spatial_scale: 0.0625 }",
    "PSROIPooling": "psroi_pooling_param { output_dim: 3 group_size: 1 spatial_scale: 0.0625 }",
}


@pytest.mark.parametrize("kind", REGIONS)
@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 1, 1)])
def test_regions_are_in_the_image(kind, shape):
    layers = f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' bottom: 'x1' top: 'y' {REGIONS[kind]} }}"
    boxes = _drawn([(2, 3, 14, 20), shape], layers)["x1"].reshape(7, 5)
    assert set(boxes[:, 0]) == {0, 1}
    assert (boxes[:, 1:] >= 0).all() and (boxes[:, 1:3] < boxes[:, 3:]).all() and (boxes[:, 3:] <= [20 * 16, 14 * 16]).all()
    assert max(caffe.onnx.export(nets.net_with([(2, 3, 14, 20), shape], layers), check=True).differences.values()) <= 1e-5


def test_whole_numbers_are_in_range():
    embed = _drawn([(4, 3)], "layer { name: 'l' type: 'Embed' bottom: 'x0' top: 'y' embed_param { num_output: 2 input_dim: 5 } }")
    assert set(embed["x0"].flat) <= set(range(5))
    items = _drawn([(4, 3), (9,)], "layer { name: 'l' type: 'BatchReindex' bottom: 'x0' bottom: 'x1' top: 'y' }")
    assert set(items["x1"]) <= set(range(4))
    selector = _drawn([(30, 3), (30,)], "layer { name: 'l' type: 'Filter' bottom: 'x0' bottom: 'x1' top: 'y' }")
    assert set(selector["x1"]) == {0, 1}


def test_what_is_reshaped_before_it_is_read():
    found = _drawn([(12,)], """layer { name: 'r' type: 'Reshape' bottom: 'x0' top: 'r' reshape_param { shape { dim: 4 dim: 3 } } }
        layer { name: 'l' type: 'Embed' bottom: 'r' top: 'y' embed_param { num_output: 2 input_dim: 5 } }""")["x0"]
    assert found.shape == (12,) and set(found) <= set(range(5))


@pytest.mark.parametrize("kind", ["LSTM", "RNN", "GRU"])
def test_sequences_begin_somewhere(kind):
    cont = _drawn([(9, 4, 3), (9, 4)], f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' bottom: 'x1' top: 'y' recurrent_param {{ "
                                       "num_output: 2 weight_filler { type: 'uniform' } } }")["x1"]
    assert (cont[0] == 0).all() and set(cont[1:].flat) == {0, 1}


def test_masks_hide_some_rows():
    mask = _drawn([(9, 4, 6)] * 3 + [(9, 4)], "layer { name: 'l' type: 'Attention' bottom: 'x0' bottom: 'x1' bottom: 'x2' bottom: 'x3' top: 'y' }")["x3"]
    assert set(mask.flat) == {0, 1}
    for shapes, which in (([(9, 4, 6), (9, 4)], 1), ([(9, 4, 6), (9, 5, 3), (9, 5)], 2), ([(9, 4, 6), (9, 5), (9, 5, 3)], 1)):
        bottoms = " ".join(f"bottom: 'x{k}'" for k in range(len(shapes)))
        found = _drawn(shapes, f"layer {{ name: 'l' type: 'MultiHeadAttention' {bottoms} top: 'y' }}")
        assert set(found.pop(f"x{which}").flat) == {0, 1} and all(len(set(array.flat)) == array.size for array in found.values())


def test_the_size_of_an_image():
    found = _drawn([(2, 18, 5, 6), (2, 36, 5, 6), (2, 4)], "layer { name: 'l' type: 'Proposal' bottom: 'x0' bottom: 'x1' bottom: 'x2' "
                                                        "top: 'y' }")["x2"]
    assert found.tolist() == [[80, 96, 1, 1]] * 2


def test_a_mask_has_a_place_in_each_window():
    mask = _drawn([(2, 3, 4, 5), (2, 3, 4, 5)], "layer { name: 'l' type: 'Upsample' bottom: 'x0' bottom: 'x1' top: 'y' }")["x1"]
    down, across = np.divmod(mask, 10)
    assert (down // 2 == np.arange(4)[:, None]).all() and (across // 2 == np.arange(5)).all()


def test_pictures_have_areas():
    """Neighbouring pixels are similar; in noise they would differ by 2 / 3 on average."""
    picture = _drawn([(1, 3, 64, 64)], "layer { name: 'l' type: 'ReLU' bottom: 'x0' top: 'y' }")["x0"]
    assert np.abs(picture).max() <= 1 and np.abs(np.diff(picture)).mean() < 0.35
    noise = _drawn([(1, 7, 64, 64)], "layer { name: 'l' type: 'ReLU' bottom: 'x0' top: 'y' }")["x0"]
    assert np.abs(np.diff(noise)).mean() > 0.6

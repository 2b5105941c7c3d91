"""Maps of coordinates through nets, and the resulting crops."""
import numpy as np
import pytest

from caffe import coord_map as cm
from caffe.coord_map import AxisMismatchException, CropError, coord_map_from_to, crop
from caffe.net_spec import NetSpec, layers as L, to_proto


def image():
    return L.Input(shape=dict(dim=[2, 1, 100, 100]))


def conv(x, **options):
    return L.Convolution(x, num_output=10, **options)


def deconv(x, **options):
    return L.Deconvolution(x, convolution_param=dict(num_output=10, **options))


def check(result, axis, a, b):
    assert result[0] == axis
    np.testing.assert_allclose(result[1], a)
    np.testing.assert_allclose(result[2], b)


def test_a_chain_and_its_way_back():
    """3x3 convolution, 2x2 pooling, 4x4 upsampling by 2: by hand, -1, -1/2 and /2, then *2 and +3/2."""
    data = image()
    top = deconv(L.Pooling(L.ReLU(conv(data, kernel_size=3)), kernel_size=2, stride=2), kernel_size=4, stride=2)
    check(coord_map_from_to(top, data), 1, 1, 1 + 0.5 - 1.5)
    check(coord_map_from_to(data, top), 1, 1, 0)


def test_maps_say_where_a_window_is_centred():
    """The centre of output o of kernel k, stride s, pad p is o * s - p + (k - 1) / 2."""
    for kernel, stride, pad, dilation in [(3, 1, 0, 1), (5, 2, 1, 1), (3, 4, 2, 3), (2, 2, 0, 1)]:
        data = image()
        top = conv(data, kernel_size=kernel, stride=stride, pad=pad, dilation=dilation)
        centre = (dilation * (kernel - 1)) / 2 - pad
        check(coord_map_from_to(top, data), 1, stride, centre)


def test_padding_only_shifts():
    data = image()
    plain, padded = (coord_map_from_to(conv(data, kernel_size=3, pad=pad), data) for pad in (0, 7))
    check(padded, 1, plain[1], plain[2] - 7)


def test_deconvolution_undoes_convolution():
    data = image()
    for options in (dict(kernel_size=3), dict(kernel_size=7, stride=4, pad=2), dict(kernel_size=[3, 5], stride=[2, 1])):
        top = deconv(conv(data, **options), **options)
        check(coord_map_from_to(top, data), 1, 1, 0)


def test_pointwise_layers_pass_through():
    data = image()
    top = conv(data, kernel_size=5, stride=2)
    for name in sorted(cm.PASS_THROUGH_LAYERS):
        check(coord_map_from_to(getattr(L, name)(top), data), 1, 2, 2)


def test_sides_of_a_window_are_apart():
    data = image()
    both = coord_map_from_to(conv(data, kernel_size=[3, 5], stride=[1, 2], pad=[0, 4]), data)
    tall = coord_map_from_to(conv(data, kernel_size=3), data)
    wide = coord_map_from_to(conv(data, kernel_size=5, stride=2, pad=4), data)
    check(both, 1, [tall[1][0], wide[1][0]], [tall[2][0], wide[2][0]])


def test_spatial_axes_can_begin_elsewhere():
    data = image()
    check(coord_map_from_to(conv(data, kernel_size=3, axis=2), data), 2, 1, 1)
    with pytest.raises(AxisMismatchException, match="axis 2 and of axis 1|axis 1 and of axis 2"):
        coord_map_from_to(conv(conv(data, kernel_size=3, axis=2), kernel_size=3), data)


def test_two_branches_meet_at_their_common_blob():
    data = image()
    trunk = conv(data, kernel_size=3)
    left, right = conv(trunk, kernel_size=5), conv(trunk, kernel_size=3, stride=2)
    check(coord_map_from_to(right, left), 1, 2, 1 - 2)


def test_either_input_of_a_sum_leads_back():
    data = image()
    total = L.Eltwise(L.Input(), conv(data, kernel_size=3))
    check(coord_map_from_to(total, data), 1, 1, 1)


def test_a_crop_shifts_and_only_its_first_bottom_counts():
    data = image()
    size = image()
    top = L.Crop(data, size, axis=2, offset=5)
    check(coord_map_from_to(top, data), 1, 1, 5)
    with pytest.raises(RuntimeError, match="no map"):
        coord_map_from_to(top, size)


def test_crop_of_a_crop():
    data = image()
    upscored = deconv(conv(data, kernel_size=3, stride=2, pad=10), kernel_size=7, stride=2)
    first = crop(upscored, data)
    offset = first.fn.params["crop_param"]["offset"][0]
    again = crop(L.Crop(upscored, data, crop_param=dict(axis=2, offset=[3])), data)
    assert again.fn.params["crop_param"]["offset"] == [offset - 3]


def test_crop_writes_the_layer():
    n = NetSpec()
    n.data = image()
    n.conv = conv(n.data, kernel_size=3, pad=6)
    n.score = crop(n.conv, n.data)
    layer = n.to_proto().layer[-1]
    assert (layer.type, list(layer.bottom), layer.crop_param.axis) == ("Crop", ["conv", "data"], 2)
    assert list(layer.crop_param.offset) == [5]
    assert to_proto(crop(n.conv, n.data)).layer[-1].crop_param == layer.crop_param


@pytest.mark.parametrize("stride", [1, 3, 7, 49])
def test_offsets_are_whole_after_fractions(stride):
    data = image()
    options = dict(kernel_size=2 * stride + 1, stride=stride)
    top = conv(deconv(conv(data, **options), **options), kernel_size=3, pad=4)
    assert crop(top, data).fn.params["crop_param"]["offset"] == [3]


@pytest.mark.parametrize("options, reason", [
    (dict(kernel_size=3, stride=2), "scales differ"),
    (dict(kernel_size=3), "negative"),
    (dict(kernel_size=4, pad=9), "whole number"),
])
def test_crops_that_cannot_be(options, reason):
    data = image()
    with pytest.raises(CropError, match=reason) as caught:
        crop(conv(data, **options), data)
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("layer", [
    lambda x: L.InnerProduct(x, num_output=10),
    lambda x: L.Softmax(x),
    lambda x: L.Pooling(x, global_pooling=True),
    lambda x: conv(x, kernel_h=3, kernel_w=3),
])
def test_layers_without_a_map(layer):
    data = image()
    top = layer(data)
    with pytest.raises(cm.UndefinedMapException):
        cm.coord_map(top.fn)
    with pytest.raises(RuntimeError, match="no map"):
        coord_map_from_to(top, data)


def test_unconnected_blobs():
    with pytest.raises(RuntimeError, match="no map"):
        coord_map_from_to(conv(image(), kernel_size=3), image())

"""Compares layers that only move elements with NumPy."""
import caffe
import numpy as np
import pytest


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


def test_shuffled_channels_exchange_group_and_place(run_layer):
    x = numbers(2, 6, 3, 2)
    y = run_layer("layer { name: 'l' type: 'ShuffleChannel' bottom: 'x0' top: 'y' "
                  "shuffle_channel_param { group: 3 } }", x)["y"]
    assert (y == x[:, [0, 2, 4, 1, 3, 5]]).all()


def darknet(x, stride, reverse):
    """darknet's definition of its order by index arithmetic."""
    n, c, h, w = x.shape
    small, y = c // stride**2, np.empty(x.size)
    for item, channel, row, column in np.ndindex(*x.shape):
        block, plane = divmod(channel, small)
        at = column * stride + block % stride
        at += w * stride * (row * stride + block // stride + h * stride * (plane + small * item))
        inside = column + w * (row + h * (channel + c * item))
        y[at if reverse else inside] = x.ravel()[inside if reverse else at]
    if reverse:
        return y.reshape(n, small, h * stride, w * stride)
    return y.reshape(n, c * stride**2, h // stride, w // stride)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("reverse", [False, True])
def test_reorg_has_the_order_of_darknet(run_layer, stride, reverse):
    x = numbers(2, 18 if stride == 3 else 8, 6, 12)
    y = run_layer(f"layer {{ name: 'l' type: 'Reorg' bottom: 'x0' top: 'y' "
                  f"reorg_param {{ stride: {stride} reverse: {str(reverse).lower()} }} }}", x)["y"]
    assert (y == darknet(x, stride, reverse)).all()


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_channels_become_pixels(run_layer, factor):
    x = numbers(2, 2 * factor ** 2, 3, 4)
    y = run_layer(f"layer {{ name: 'l' type: 'PixelShuffle' bottom: 'x0' top: 'y' pixel_shuffle_param {{ upscale_factor: {factor} }} }}",
                  x)["y"]
    assert y.shape == (2, 2, 3 * factor, 4 * factor)
    for n, c, row, column in np.ndindex(*y.shape):
        i, j = row % factor, column % factor
        assert y[n, c, row, column] == x[n, c * factor ** 2 + i * factor + j, row // factor, column // factor]


def test_axes_are_turned_around(run_layer):
    x = numbers(2, 3, 4, 5)
    for options, want in (("type: 'Flip'", x[..., ::-1]),
                          ("type: 'Flip' flip_param { flip_width: false flip_height: true }", x[:, :, ::-1]),
                          ("type: 'Flip' flip_param { flip_height: true }", x[:, :, ::-1, ::-1]),
                          ("type: 'Reverse'", x[::-1]),
                          ("type: 'Reverse' reverse_param { axis: 1 }", x[:, ::-1]),
                          ("type: 'Reverse' reverse_param { axis: -2 }", x[:, :, ::-1])):
        y = run_layer(f"layer {{ name: 'l' {options} bottom: 'x0' top: 'y' }}", x)["y"]
        assert (y == want).all(), options


@pytest.mark.parametrize("layer, shape, message", [
    ("type: 'ShuffleChannel' shuffle_channel_param { group: 4 }", (1, 6, 2, 2),
     "the 6 channels cannot be divided into 4 groups"),
    ("type: 'ShuffleChannel' shuffle_channel_param { group: 0 }", (1, 6, 2, 2), "group is 0"),
    ("type: 'Reorg'", (1, 6, 4, 4), "the 6 channels cannot be divided by 4"),
    ("type: 'Reorg'", (1, 8, 5, 4), "the bottom has 5x4 pixels; both sides must be multiples of stride 2"),
    ("type: 'Reorg' reorg_param { stride: 0 }", (1, 8, 4, 4), "stride is 0"),
    ("type: 'Flip' flip_param { flip_width: false }", (1, 2, 4, 4), "flip_width and flip_height are false"),
    ("type: 'Flip'", (2, 4), "needs a bottom with 4 axes"),
    ("type: 'Reverse' reverse_param { axis: 2 }", (2, 4), "axis 2"),
    ("type: 'PixelShuffle'", (1, 6, 4, 4), "the 6 channels cannot be divided by the square of upscale_factor, 4"),
    ("type: 'PixelShuffle'", (8, 4), "needs a bottom with 4 axes"),
    ("type: 'PixelShuffle' pixel_shuffle_param { upscale_factor: 0 }", (1, 8, 4, 4), "upscale_factor is 0; it must be from 1 to 1024"),
    ("type: 'PixelShuffle' pixel_shuffle_param { upscale_factor: 1025 }", (1, 8, 4, 4), "upscale_factor is 1025"),
])
def test_what_does_not_fit_is_refused(run_layer, layer, shape, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(f"layer {{ name: 'l' {layer} bottom: 'x0' top: 'y' }}", numbers(*shape))


@pytest.mark.parametrize("other", ["type: 'Input' input_param { shape { dim: 2 dim: 3 } }",
                                   "type: 'Parameter' parameter_param { shape { dim: 2 dim: 3 } }"])
def test_concat_beside_a_bottom_without_items(write, other):
    net = caffe.Net(write(f"""layer {{ name: 'none' type: 'Input' top: 'none' input_param {{ shape {{ dim: 0 dim: 3 }} }} }}
                              layer {{ name: 'x' {other} top: 'x' }}
                              layer {{ name: 'y' type: 'Concat' bottom: 'none' bottom: 'x' top: 'y' concat_param {{ axis: 0 }} }}"""), caffe.TEST)
    (net.params["x"][0] if "x" in net.params else net.blobs["x"]).data[...] = 2
    assert (net.forward()["y"] == 2).all()

"""Compares layers that resize images with loops over pixels."""
import math

import caffe
import numpy as np
import pytest

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((2, 3, 6, 9)).astype(np.float32)


def layer(kind, options="", bottoms=1):
    bottoms = " ".join(f"bottom: 'x{i}'" for i in range(bottoms))
    return f"layer {{ name: 'l' type: '{kind}' {bottoms} top: 'y' {options} }}"


def filtered(x, rows, columns):
    """Each image as rows @ image @ columns.T."""
    return np.einsum("ih,nchw,jw->ncij", rows, x, columns)


def interp_matrix(extent, outputs, begin=0, end=0):
    """Bilinear weights with aligned corners, for an axis that is cropped by -begin and -end."""
    last, matrix = extent + begin + end - 1, np.zeros((outputs, extent))
    for i in range(outputs):
        position = i * last / (outputs - 1) if outputs > 1 else 0
        left = math.floor(position)
        matrix[i, left - begin] += 1 - (position - left)
        if left < last:
            matrix[i, left + 1 - begin] += position - left
    return matrix


@pytest.mark.parametrize("options, size, crop", [
    ("height: 11 width: 4", (11, 4), (0, 0)), ("height: 1 width: 1", (1, 1), (0, 0)),
    ("zoom_factor: 3", (16, 25), (0, 0)), ("shrink_factor: 2", (3, 5), (0, 0)),
    ("zoom_factor: 2 shrink_factor: 2", (5, 9), (0, 0)),
    ("zoom_factor: 2 pad_beg: -1 pad_end: -2", (5, 11), (-1, -2)),
])
def test_interp(run_layer, options, size, crop):
    y = run_layer(layer("Interp", f"interp_param {{ {options} }}"), X)["y"]
    want = filtered(X, interp_matrix(6, size[0], *crop), interp_matrix(9, size[1], *crop))
    assert y.shape == want.shape and y == pytest.approx(want, abs=1e-5)


def area_matrix(extent, outputs, begin=0, end=0):
    """Bilinear weights of pixels that are areas: those beyond the edge are like the outermost ones."""
    last, matrix = extent + begin + end - 1, np.zeros((outputs, extent))
    for i in range(outputs):
        position = (i + 0.5) * (last + 1) / outputs - 0.5
        left = math.floor(position)
        for pixel, share in ((left, 1 - (position - left)), (left + 1, position - left)):
            matrix[i, min(max(pixel, 0), last) - begin] += share
    return matrix


@pytest.mark.parametrize("options, size, crop", [
    ("height: 11 width: 4", (11, 4), (0, 0)), ("height: 1 width: 1", (1, 1), (0, 0)), ("height: 6 width: 27", (6, 27), (0, 0)),
    ("zoom_factor: 3", (18, 27), (0, 0)), ("shrink_factor: 2", (3, 4), (0, 0)),
    ("zoom_factor: 2 pad_beg: -1 pad_end: -2", (6, 12), (-1, -2)),
])
def test_interp_of_areas(run_layer, options, size, crop):
    y = run_layer(layer("Interp", f"interp_param {{ align_corners: false {options} }}"), X)["y"]
    want = filtered(X, area_matrix(6, size[0], *crop), area_matrix(9, size[1], *crop))
    assert y.shape == want.shape and y == pytest.approx(want, abs=1e-5)


def test_interp_takes_the_size_of_a_second_bottom(run_layer):
    y = run_layer(layer("Interp", bottoms=2), X, np.zeros((2, 1, 13, 5)))["y"]
    assert y == pytest.approx(filtered(X, interp_matrix(6, 13), interp_matrix(9, 5)), abs=1e-5)


def triangle(t):
    return max(0, 1 - abs(t))


def cubic(t):
    t = abs(t)
    if t <= 1:
        return 1.5 * t**3 - 2.5 * t**2 + 1
    return -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0


def resample_pixel(image, row, column, pixel, weigh, antialias):
    """One output pixel of FlowNet's layer, normalised over the window; pixel is its (height, width)."""
    centre = (row * pixel[0] + pixel[1] / 2 - 0.5, column * pixel[1] + pixel[0] / 2 - 0.5)
    width = [max(1, side) if antialias else 1 for side in pixel]
    total = weights = 0
    for (h, w), value in np.ndenumerate(image):
        weight = weigh((h - centre[0]) / width[0]) * weigh((w - centre[1]) / width[1])
        total, weights = total + weight * value, weights + weight
    return total / weights if weights else 0


@pytest.mark.parametrize("kind, weigh", [("LINEAR", triangle), ("CUBIC", cubic)])
@pytest.mark.parametrize("size", [(3, 4), (12, 18), (7, 8), (6, 9)])
@pytest.mark.parametrize("antialias", [True, False])
def test_resample_weighs_a_window(run_layer, kind, weigh, size, antialias):
    options = f"type: {kind} height: {size[0]} width: {size[1]} antialias: {str(antialias).lower()}"
    y = run_layer(layer("Resample", f"resample_param {{ {options} }}"), X)["y"]
    pixel = (6 / size[0], 9 / size[1])
    for (n, c, h, w), value in np.ndenumerate(y):
        assert value == pytest.approx(resample_pixel(X[n, c], h, w, pixel, weigh, antialias), abs=1e-5)


def test_resample_makes_0_of_windows_without_pixels(run_layer):
    y = run_layer(layer("Resample", "resample_param { type: CUBIC height: 3 width: 1 }"), X[:, :, :1, :5])["y"]
    for (n, c, h, w), value in np.ndenumerate(y):
        assert value == pytest.approx(resample_pixel(X[n, c, :1, :5], h, w, (1 / 3, 5), cubic, True), abs=1e-5)
    assert (y == 0).all()


def test_resample_to_the_nearest_pixel_and_by_area(run_layer):
    y = run_layer(layer("Resample", "resample_param { type: NEAREST factor: 2 }"), X)["y"]
    assert (y == X.repeat(2, 2).repeat(2, 3)).all()
    y = run_layer(layer("Resample", "resample_param { type: AREA height: 3 width: 3 }"), X)["y"]
    assert y == pytest.approx(X.reshape(2, 3, 3, 2, 3, 3).mean((3, 5)), abs=1e-5)
    # Pixels of 1.5: a whole one and half of the next, or the other way round.
    y = run_layer(layer("Resample", "resample_param { type: AREA height: 4 width: 9 }", 1), X)["y"]
    assert y[:, :, 0] == pytest.approx((2 * X[:, :, 0] + X[:, :, 1]) / 3, abs=1e-5)
    assert y[:, :, 1] == pytest.approx((X[:, :, 1] + 2 * X[:, :, 2]) / 3, abs=1e-5)
    y = run_layer(layer("Resample", "resample_param { type: NEAREST }", 2), X, np.zeros((1, 1, 6, 9)))["y"]
    assert (y == X).all()


def test_resample_takes_the_second_bottoms_size_before_that_of_its_options(run_layer):
    sized = "resample_param { type: CUBIC height: 3 width: 4 factor: 2 }"
    want = run_layer(layer("Resample", "resample_param { type: CUBIC height: 3 width: 4 }"), X)["y"]
    assert run_layer(layer("Resample", sized), X)["y"].tolist() == want.tolist()
    want = run_layer(layer("Resample", "resample_param { type: CUBIC height: 8 width: 5 }"), X)["y"]
    assert run_layer(layer("Resample", sized, 2), X, np.zeros((1, 1, 8, 5)))["y"].tolist() == want.tolist()


def downsampled_pixel(image, row, column, size):
    """FlowNet's mean of the neighbourhood, without unknown pixels; NaN if more than half are unknown, allowing for rounding."""
    step = [(image.shape[i] - 1) / (size[i] - 1) for i in (0, 1)]
    total = known = unknown = 0
    for (h, w), value in np.ndenumerate(image):
        weight = max(0, 1 - abs(h - row * step[0]) / step[0]) * max(0, 1 - abs(w - column * step[1]) / step[1])
        if math.isnan(value):
            unknown += weight
        else:
            total, known = total + weight * value, known + weight
    return math.nan if known == 0 or unknown / known > 0.5015 else total / known


def test_downsample_leaves_out_unknown_pixels(run_layer):
    x = X.copy()
    x[RANDOM.random(x.shape) < 0.3] = math.nan
    y = run_layer(layer("Downsample", "downsample_param { top_height: 3 top_width: 5 }"), x)["y"]
    want = [downsampled_pixel(x[n, c], h, w, (3, 5)) for n, c, h, w in np.ndindex(*y.shape)]
    assert y.ravel() == pytest.approx(want, abs=1e-5, nan_ok=True)
    assert 0 < np.isnan(y).sum() < y.size
    y = run_layer(layer("Downsample", bottoms=2), X, np.zeros((1, 1, 1, 1)))["y"]
    assert y.shape == (2, 3, 1, 1) and np.isfinite(y).all()


def bicubic(image, size):
    """Catmull-Rom's curve through four neighbours, as in OpenPose."""
    def weights(output, outputs, extent):
        position = (output + 0.5) * extent / outputs - 0.5
        left = max(0, int(position + 1e-5))
        d, right = position - left, min(left + 1, extent - 1)
        places = (max(left - 1, 0), left, right, min(right + 1, extent - 1))
        values = (-0.5 * d**3 + d**2 - 0.5 * d, 1.5 * d**3 - 2.5 * d**2 + 1,
                  -1.5 * d**3 + 2 * d**2 + 0.5 * d, 0.5 * d**3 - 0.5 * d**2)
        return list(zip(places, values))
    y = np.zeros(size)
    for row, column in np.ndindex(*size):
        y[row, column] = sum(v * u * image[h, w] for h, v in weights(row, size[0], image.shape[0])
                             for w, u in weights(column, size[1], image.shape[1]))
    return y


def test_imresize(run_layer):
    y = run_layer(layer("ImResize", "imresize_param { factor: 2.5 }"), X[:1])["y"]
    want = [bicubic(image, (15, 22)) for image in X[0]]
    assert y.shape == (1, 3, 15, 22) and y[0] == pytest.approx(np.array(want), abs=1e-5)


def test_imresize_takes_the_mean_of_scales(run_layer):
    x = RANDOM.standard_normal((2, 1, 12, 20))
    options = "imresize_param { target_spatial_height: 24 target_spatial_width: 30 scale_gap: 0.25 }"
    y = run_layer(layer("ImResize", options), x)["y"]
    want = (bicubic(x[0, 0], (24, 30)) + bicubic(x[1, 0, 1:-1, 2:-2], (24, 30))) / 2
    assert y.shape == (1, 1, 24, 30) and y[0, 0] == pytest.approx(want, abs=1e-5)


def test_upsample_repeats_pixels(run_layer):
    for options, want in (("", X.repeat(2, 2).repeat(2, 3)),
                          ("upsample_param { scale: 3 }", X.repeat(3, 2).repeat(3, 3)),
                          ("upsample_param { scale_h: 1 scale_w: 2 pad_out_w: true }", X.repeat(2, 3)[..., :-1]),
                          ("upsample_param { upsample_h: 9 upsample_w: 9 }",
                           X[:, :, [0, 0, 1, 2, 2, 3, 4, 4, 5]])):
        assert (run_layer(layer("Upsample", options), X)["y"] == want).all(), options


def test_upsample_puts_values_where_maxima_were(run_layer):
    pool = ("layer { name: 'p' type: 'Pooling' bottom: 'x0' top: 'p' top: 'mask' "
            "pooling_param { pool: MAX kernel_size: 2 stride: 2 } } ")
    unpool = "layer { name: 'l' type: 'Upsample' bottom: 'x1' bottom: 'mask' top: 'y' upsample_param { %s } }"
    values = RANDOM.standard_normal((2, 3, 3, 5)).astype(np.float32)
    for options in ("scale: 2 pad_out_w: true", "upsample_h: 6 upsample_w: 9"):
        y = run_layer(pool + unpool % options, X, values)["y"]
        assert y.shape == X.shape and np.count_nonzero(y) == values.size
        for n, c, h, w in np.ndindex(*values.shape):
            window = X[n, c, 2 * h:2 * h + 2, 2 * w:2 * w + 2]
            row, column = np.unravel_index(window.argmax(), window.shape)
            assert y[n, c, 2 * h + row, 2 * w + column] == values[n, c, h, w]


def test_the_last_of_several_values_for_one_place_counts(run_layer):
    x, mask = np.array([[[[5.0, 6.0, 7.0]]]]), np.array([[[[1.0, 1.0, -1.0]]]])
    y = run_layer(layer("Upsample", "upsample_param { upsample_h: 1 upsample_w: 3 }", 2), x, mask)["y"]
    assert y.tolist() == [[[[0, 6, 0]]]]
    with pytest.raises(caffe.InvalidArgument, match="names place 3 of an image of 1x3 pixels"):
        run_layer(layer("Upsample", "upsample_param { upsample_h: 1 upsample_w: 3 }", 2), x, mask + 2)


@pytest.mark.parametrize("kind, options, message", [
    ("Interp", "", "has no size"),
    ("Interp", "interp_param { height: 4 }", "only one of height and width"),
    ("Interp", "interp_param { height: 4 width: 4 zoom_factor: 2 }", "leave out one kind"),
    ("Interp", "interp_param { zoom_factor: 0 }", "must be at least 1"),
    ("Interp", "interp_param { zoom_factor: 2 pad_beg: 1 }", "use 0 or less"),
    ("Interp", "interp_param { zoom_factor: 2 pad_beg: -3 pad_end: -3 }", "leave nothing of 6x9 pixels"),
    ("Interp", "interp_param { height: -1 width: 4 }", "the top would have -1x4 pixels"),
    ("Resample", "", "has no size"),
    ("Resample", "resample_param { factor: 2 height: 3 }", "only one of height and width"),
    ("Resample", "resample_param { factor: 0.01 }", "the top would have 0x0 pixels"),
    ("Resample", "resample_param { factor: -2 }", "factor is -2"),
    ("Downsample", "", "has no size"),
    ("Downsample", "downsample_param { top_height: 7 top_width: 9 }", "the bottom has 6x9; use Resample"),
    ("ImResize", "", "factor is 0, target_spatial_height 0"),
    ("ImResize", "imresize_param { factor: 2 start_scale: 1.5 }", "item 0 has scale 1.5"),
    ("Upsample", "upsample_param { scale: 0 }", "the scale must be at least 1, got 0"),
    ("Upsample", "upsample_param { scale_h: 2 }", "needs scale, or scale_h and scale_w"),
    ("Upsample", "upsample_param { upsample_h: 2 }", "only one of upsample_h and upsample_w"),
    ("Upsample", "upsample_param { scale: 3 pad_out_h: true }", "pad_out_h needs a scale of 2, got 3"),
])
def test_options_that_contradict_are_refused(run_layer, kind, options, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(layer(kind, options), X)


def test_second_bottoms_that_do_not_fit_are_refused(run_layer):
    with pytest.raises(caffe.InvalidArgument, match="one of bottom 1; leave out one"):
        run_layer(layer("Interp", "interp_param { zoom_factor: 2 }", 2), X, X)
    with pytest.raises(caffe.InvalidArgument, match="so they must be equal"):
        run_layer(layer("Upsample", "", 2), X, X[:, :1])
    with pytest.raises(caffe.InvalidArgument, match="it must have 4 axes"):
        run_layer(layer("Resample", "", 2), X, X[0])

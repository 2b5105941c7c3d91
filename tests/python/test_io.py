"""caffe.io: messages, Transformer, images."""
import caffe
import numpy as np
import pytest
from caffe.proto import caffe_pb2


def test_blobproto_and_back():
    data, diff = np.arange(24.0).reshape(2, 3, 4), np.ones((2, 3, 4))
    blob = caffe.io.array_to_blobproto(data, diff)
    assert list(blob.shape.dim) == [2, 3, 4]
    assert (caffe.io.blobproto_to_array(blob) == data).all()
    assert (caffe.io.blobproto_to_array(blob, return_diff=True) == diff).all()
    old = caffe_pb2.BlobProto(num=1, channels=2, height=1, width=2, data=[1, 2, 3, 4])
    assert caffe.io.blobproto_to_array(old).shape == (1, 2, 1, 2)
    scalar = caffe.io.blobproto_to_array(caffe.io.array_to_blobproto(np.float32(3)))
    assert scalar.shape == () and scalar == 3
    with pytest.raises(ValueError, match="4 numbers for shape"):
        old.width = 3
        caffe.io.blobproto_to_array(old)
    with pytest.raises(ValueError, match="diff has shape"):
        caffe.io.array_to_blobproto(data, diff[0])


def test_vectors_of_blobs():
    arrays = [np.ones((3, 5, 7)), np.zeros((1, 1))]
    for write in (caffe.io.arraylist_to_blobprotovector_str, caffe.io.arraylist_to_blobprotovecor_str):
        back = caffe.io.blobprotovector_str_to_arraylist(write(arrays))
        assert all((a == b).all() for a, b in zip(arrays, back)) and len(back) == 2


def test_datum_and_back():
    image = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    datum = caffe.io.array_to_datum(image, label=1)
    assert datum.label == 1 and datum.data == image.tobytes() and not datum.float_data
    back = caffe.io.datum_to_array(datum)
    assert (back == image).all() and back.flags.writeable
    datum = caffe.io.array_to_datum(image / 2)
    assert not datum.data and (caffe.io.datum_to_array(datum) == image / 2).all()
    with pytest.raises(ValueError, match="3 axes"):
        caffe.io.array_to_datum(np.zeros(3))
    datum.encoded = True
    with pytest.raises(ValueError, match="encoded"):
        caffe.io.datum_to_array(datum)


def test_preprocess_in_its_order_and_back():
    transformer = caffe.io.Transformer({"data": (1, 3, 2, 4)})
    image = np.random.default_rng(0).random((2, 4, 3)).astype(np.float32)
    assert transformer.preprocess("data", image) is not None
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_channel_swap("data", (2, 1, 0))
    transformer.set_raw_scale("data", 255)
    transformer.set_mean("data", np.array([1, 2, 3]))
    transformer.set_input_scale("data", 0.5)
    expected = (image.transpose(2, 0, 1)[::-1] * 255 - np.array([1, 2, 3])[:, None, None]) * 0.5
    found = transformer.preprocess("data", image)
    assert found == pytest.approx(expected, rel=1e-5) and found.dtype == np.float32
    assert transformer.deprocess("data", found) == pytest.approx(image, abs=1e-6)
    assert transformer.preprocess("data", np.zeros((5, 7, 3))).shape == (3, 2, 4)


def test_wrong_settings():
    transformer = caffe.io.Transformer({"data": (1, 3, 2, 4)})
    for call, text in [(lambda: transformer.set_mean("data", np.zeros(2)), "Mean channels incompatible"),
                       (lambda: transformer.set_mean("data", np.zeros((3, 4, 4))), "Mean shape incompatible"),
                       (lambda: transformer.set_mean("data", np.zeros((1, 3, 2, 4))), "Mean shape invalid"),
                       (lambda: transformer.set_channel_swap("data", (0, 1)), "Channel swap"),
                       (lambda: transformer.set_transpose("data", (0, 1)), "Transpose order"),
                       (lambda: transformer.set_raw_scale("image", 1), "not one of the net inputs"),
                       (lambda: transformer.preprocess("image", np.zeros((2, 4, 3))), "not one of the net inputs")]:
        with pytest.raises(ValueError, match=text):
            call()
    transformer.set_mean("data", np.full((3, 2, 4), 2))
    transformer.set_transpose("data", (2, 0, 1))
    assert (transformer.preprocess("data", np.zeros((2, 4, 3))) == -2).all()


def test_load_image(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    rgb = np.random.default_rng(0).integers(256, size=(5, 7, 3), dtype=np.uint8)
    image_module.fromarray(rgb).save(tmp_path / "rgb.png")
    image_module.fromarray(rgb[:, :, 0]).save(tmp_path / "gray.png")
    image_module.fromarray(np.dstack([rgb, rgb[:, :, 0]])).save(tmp_path / "rgba.png")
    image = caffe.io.load_image(str(tmp_path / "rgb.png"))
    assert image.dtype == np.float32 and image == pytest.approx(rgb / 255.0, abs=1e-6)
    assert caffe.io.load_image(tmp_path / "rgba.png") == pytest.approx(rgb / 255.0, abs=1e-6)
    gray = caffe.io.load_image(tmp_path / "gray.png")
    assert gray.shape == (5, 7, 3) and gray[..., 1] == pytest.approx(rgb[:, :, 0] / 255.0, abs=1e-6)
    assert caffe.io.load_image(tmp_path / "gray.png", color=False).shape == (5, 7, 1)
    assert caffe.io.load_image(tmp_path / "rgb.png", color=False).shape == (5, 7, 1)
    (tmp_path / "text.png").write_text("no image")
    for name in ("none.png", "text.png"):
        with pytest.raises(caffe.IoError, match=name):
            caffe.io.load_image(tmp_path / name)


def test_resize_image():
    ramp = np.tile(np.arange(8, dtype=np.float32)[None, :, None], (8, 1, 3))
    assert (caffe.io.resize_image(ramp, (8, 8)) == ramp).all()
    half = caffe.io.resize_image(ramp, (4, 4))
    assert half[:, :, 0] == pytest.approx(np.tile([0.5, 2.5, 4.5, 6.5], (4, 1)))
    double = caffe.io.resize_image(ramp, (8, 16))
    assert double[4, 1:-1, 1] == pytest.approx((np.arange(1, 15) + 0.5) / 2 - 0.5)
    assert double[4, -1, 0] == pytest.approx(7 * 0.75)  # a quarter is beyond the edge
    assert (caffe.io.resize_image(np.full((3, 3, 2), 4), (7, 5)) == 4).all()
    nearest = caffe.io.resize_image(ramp, (8, 16), interp_order=0)
    assert set(nearest.ravel()) == set(range(8))
    with pytest.raises(ValueError, match=r"\(H, W, C\)"):
        caffe.io.resize_image(np.zeros((3, 3)), (2, 2))
    with pytest.raises(ValueError, match="at least 1"):
        caffe.io.resize_image(ramp, (0, 2))


def test_resize_image_of_other_channel_counts_keeps_the_corners():
    ramp = np.tile(np.arange(8, dtype=np.float32)[None, :, None], (8, 1, 4))
    assert caffe.io.resize_image(ramp, (4, 4))[:, :, 3] == pytest.approx(np.tile(np.arange(4) * 7 / 3, (4, 1)))
    assert caffe.io.resize_image(ramp, (8, 15))[4, :, 0] == pytest.approx(np.arange(15) / 2)
    assert caffe.io.resize_image(ramp, (8, 15), interp_order=0)[4, ::2, 0].tolist() == list(range(8))
    assert caffe.io.resize_image(ramp, (1, 1))[0, 0].tolist() == [0] * 4
    ndimage = pytest.importorskip("scipy.ndimage")
    image = np.random.default_rng(0).random((10, 12, 2)).astype(np.float32)
    for height, width in ((5, 6), (20, 24), (13, 12)):
        expected = ndimage.zoom(image, (height / 10, width / 12, 1), order=1)
        assert caffe.io.resize_image(image, (height, width)) == pytest.approx(expected, abs=1e-5)


def test_resize_image_by_splines():
    pytest.importorskip("scipy.ndimage")
    ramp = np.tile(np.arange(16, dtype=np.float32)[None, :, None], (16, 1, 3))
    half = caffe.io.resize_image(ramp, (8, 8), interp_order=3)
    assert half[4, 2:6, 0] == pytest.approx([4.5, 6.5, 8.5, 10.5], abs=0.02)
    assert half.min() >= 0 and half.max() <= 15
    assert caffe.io.resize_image(np.full((3, 3, 3), 4), (7, 5), interp_order=2) == pytest.approx(np.full((7, 5, 3), 4))


def test_oversample():
    images = [np.random.default_rng(i).random((6, 8, 3)) for i in range(2)]
    crops = caffe.io.oversample(images, (4, 5))
    assert crops.shape == (20, 4, 5, 3) and crops.dtype == np.float32
    corners = [(0, 0), (0, 3), (2, 0), (2, 3), (1, 1)]
    for i, image in enumerate(images):
        for k, (y, x) in enumerate(corners):
            assert crops[10 * i + k] == pytest.approx(image[y:y + 4, x:x + 5])
            assert crops[10 * i + 5 + k] == pytest.approx(image[y:y + 4, x:x + 5][:, ::-1])
    with pytest.raises(ValueError, match="crops of"):
        caffe.io.oversample(images, (7, 2))
    with pytest.raises(ValueError, match="no images"):
        caffe.io.oversample([], (7, 2))

"""Image files as a net's input."""
import io

import numpy as np
import pytest

import caffe
from caffe.proto import caffe_pb2

Image = pytest.importorskip("PIL.Image")


def png(pixels, **more):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", **more)
    return file.getvalue()


def info(**fields):
    return caffe_pb2.ModelInfo(**fields)


def picture(height, width):
    return np.random.default_rng(1).integers(0, 256, (height, width, 3)).astype(np.uint8)


def test_pixels_of_the_inputs_size():
    pixels = picture(4, 6)
    found = caffe.ImageInput(info(mean_value=[1, 2, 3], scale=0.5), 3, 4, 6).read(png(pixels))
    wanted = (pixels[:, :, ::-1].astype(np.float32) - [1, 2, 3]) * 0.5
    assert found.dtype == np.float32 and found.shape == (3, 4, 6)
    np.testing.assert_array_equal(found, wanted.transpose(2, 0, 1))


def test_one_channel():
    pixels = np.full((2, 3, 3), (30, 60, 90), np.uint8)
    found = caffe.ImageInput(info(), 1, 2, 3).read(png(pixels))
    assert found.shape == (1, 2, 3) and np.all(found == round(0.299 * 30 + 0.587 * 60 + 0.114 * 90))


def test_images_are_stretched_or_cropped():
    halves = np.zeros((32, 96, 3), np.uint8)
    halves[:, :48, 2], halves[:, 48:, 0] = 240, 240
    values, extents, seen = caffe.ImageInput(info(), 3, 4, 6).read_placed(png(halves))
    assert extents == (32, 96) and seen == (0, 0, 32, 96) and values[0].mean() == pytest.approx(120, abs=1)
    short = info(resize=caffe_pb2.ResizeParameter(resize_mode=caffe_pb2.ResizeParameter.FIT_SMALL_SIZE, height=4))
    values, extents, seen = caffe.ImageInput(short, 3, 4, 4).read_placed(png(halves))
    assert extents == (32, 96) and seen == (0, 32, 32, 32)


def test_a_mean_image_is_larger_than_the_input():
    mean = caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=[1, 3, 8, 8]), data=[5] * 192)
    pixels = picture(8, 8)
    found = caffe.ImageInput(info(mean=mean), 3, 4, 4).read(png(pixels))
    np.testing.assert_array_equal(found, pixels[2:6, 2:6, ::-1].transpose(2, 0, 1).astype(np.float32) - 5)
    with pytest.raises(caffe.InvalidArgument, match="mean image 'of the weights' is of 8x8, smaller than the net's input of 9x9"):
        caffe.ImageInput(info(mean=mean), 3, 9, 9)


@pytest.mark.parametrize("file", [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0"])
def test_files_that_are_no_images(file):
    with pytest.raises(caffe.IoError):
        caffe.ImageInput(info(), 3, 4, 4).read(file)


@pytest.mark.parametrize("channels, height, width, why", [
    (2, 4, 4, "the net reads 2 channels; an image has 1 or 3"), (3, 0, 4, "height is 0 and width 4; give positive numbers"), (3, 4, -1, "width -1")])
def test_inputs_that_are_no_images(channels, height, width, why):
    with pytest.raises(caffe.InvalidArgument, match=why):
        caffe.ImageInput(info(), channels, height, width)


def test_sizes_that_do_not_fit():
    small = info(resize=caffe_pb2.ResizeParameter(height=2, width=2))
    with pytest.raises(caffe.InvalidArgument, match="the model's images are resized to 2x2, smaller than the net's input of 4x4"):
        caffe.ImageInput(small, 3, 4, 4)


def test_the_wrong_message():
    for wrong in (None, 7, {}):
        with pytest.raises((TypeError, AttributeError)):
            caffe.ImageInput(wrong, 3, 4, 4)

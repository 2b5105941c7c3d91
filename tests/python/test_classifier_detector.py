"""Classifier and Detector, on a net whose output is the mean of each channel of its input."""
import caffe
import numpy as np
import pytest

MEANS = """
name: 'means'
layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 3 dim: 3 dim: 8 dim: 8 } } }
layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'pool' pooling_param { pool: AVE global_pooling: true } }
layer { name: 'out' type: 'InnerProduct' bottom: 'pool' top: 'out'
        inner_product_param { num_output: 3 bias_term: false } }
"""


@pytest.fixture
def files(write, tmp_path):
    file, weights = write(MEANS), str(tmp_path / "w.caffemodel")
    net = caffe.Net(file, caffe.TEST)
    net.params["out"][0].data[...] = np.eye(3)
    net.save(weights)
    return file, weights


def picture(height, width, *rgb):
    return np.tile(np.float32(rgb), (height, width, 1))


def test_classifier(files):
    classifier = caffe.Classifier(*files, image_dims=(10, 12), mean=np.float32([1, 2, 3]), raw_scale=255,
                                  input_scale=2, channel_swap=(2, 1, 0))
    assert classifier.crop_dims.tolist() == [8, 8] and isinstance(classifier, caffe.Net)
    images = [picture(10, 12, 0.1, 0.2, 0.3), picture(10, 12, 0.5, 0.5, 0.5)]
    expected = [[2 * (255 * c - m) for c, m in zip((0.3, 0.2, 0.1), (1, 2, 3))],
                [2 * (127.5 - m) for m in (1, 2, 3)]]
    for oversample in (True, False):
        found = classifier.predict(images, oversample)
        assert found.shape == (2, 3) and found == pytest.approx(np.float32(expected), rel=1e-4)
    assert classifier.predict([picture(20, 24, 0.5, 0.5, 0.5)], oversample=False)[0] == pytest.approx(expected[1], rel=1e-4)
    assert caffe.Classifier(*files, image_dims=np.array([10, 12])).predict(images).shape == (2, 3)
    left = picture(10, 12, 0, 0, 0)
    left[:, :6] = 1  # the crops have different content
    crops = caffe.io.oversample([left], (8, 8))
    assert classifier.predict([left])[0, 0] == pytest.approx(2 * (255 * crops.mean() - 1), rel=1e-4)
    with pytest.raises(ValueError, match="no images"):
        classifier.predict([])


def test_classifier_of_the_nets_own_size(files):
    classifier = caffe.Classifier(*files)
    assert classifier.predict([picture(8, 8, 1, 2, 3)], oversample=False)[0] == pytest.approx([1, 2, 3])


@pytest.fixture
def image(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pixels = np.zeros((20, 30, 3), np.uint8)
    pixels[5:13, 10:18] = (255, 0, 51)
    image_module.fromarray(pixels).save(tmp_path / "image.png")
    return str(tmp_path / "image.png")


def test_detector_windows(files, image):
    detector = caffe.Detector(*files, raw_scale=10)
    windows = np.array([[5, 10, 13, 18], [0, 0, 4, 4], [5, 10, 13, 26], [6, 11, 12, 17]])
    found = detector.detect_windows([(image, windows), (image, [[5, 10, 13, 18]])])
    assert len(found) == 5 and all(one["filename"] == image for one in found)
    assert found[0]["prediction"] == pytest.approx([10, 0, 2], abs=1e-4)
    assert found[1]["prediction"] == pytest.approx([0, 0, 0], abs=1e-4)
    assert found[2]["prediction"] == pytest.approx([5, 0, 1], abs=0.4)
    assert (found[3]["window"] == windows[3]).all()
    assert detector.detect_windows([]) == []
    with pytest.raises(ValueError, match="empty"):
        detector.detect_windows([(image, [[5, 5, 5, 9]])])
    with pytest.raises(caffe.Unsupported, match="selective_search"):
        detector.detect_selective_search([image])


def test_detector_context(files, image):
    detector = caffe.Detector(*files, mean=np.float32([1, 2, 3]), raw_scale=10, channel_swap=(2, 1, 0), context_pad=2)
    assert detector.crop_mean.shape == (8, 8, 3)
    assert detector.crop_mean[0, 0] == pytest.approx([0.3, 0.2, 0.1])  # RGB, before raw_scale
    crop = detector.crop(caffe.io.load_image(image), [7, 12, 10, 15])
    assert crop.shape == (8, 8, 3) and crop[2:6, 2:6, 0].min() > 0.5
    at_rim = detector.crop(np.ones((20, 30, 3), np.float32), [0, 0, 8, 8])
    assert at_rim[0, 0] == pytest.approx([0.3, 0.2, 0.1]) and (at_rim[3:, 3:] > 0.9).any()
    with pytest.raises(ValueError, match="outside"):
        detector.crop(np.ones((20, 30, 3), np.float32), [100, 100, 108, 108])
    with pytest.raises(ValueError, match="context_pad 4"):
        detector.configure_crop(4)

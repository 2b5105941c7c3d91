"""Detector: classifies windows of images."""
import numpy as np

from . import io
from ._caffe import InvalidArgument, Unsupported
from .classifier import make_transformer
from .proto.caffe_pb2 import TEST
from .pycaffe import Net


class Detector(Net):
    """Detector(model_file, pretrained_file, mean=None, input_scale=None, raw_scale=None,
    channel_swap=None, context_pad=None)

    context_pad: width in pixels of the net's input of the surroundings shown around a window. Mean
    and scales as in caffe.io.Transformer.
    """

    def __init__(self, model_file, pretrained_file, mean=None, input_scale=None, raw_scale=None, channel_swap=None,
                 context_pad=None):
        Net.__init__(self, model_file, TEST, weights=pretrained_file)
        self.transformer = make_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def detect_windows(self, images_windows):
        """images_windows: (image file, windows) pairs; windows are rows (ymin, xmin, ymax, xmax) in
        pixels.

        Returns a list with one dict for each window: window, prediction (the net's first output),
        filename.
        """
        found, inputs = [], []
        name = self.inputs[0]
        for filename, windows in images_windows:
            image = io.load_image(filename).astype(np.float32)
            for window in np.atleast_2d(np.asarray(windows)):
                inputs.append(self.transformer.preprocess(name, self.crop(image, window)))
                found.append({"window": window, "prediction": None, "filename": filename})
        if not inputs:
            return []
        predictions = self.forward_all(**{name: np.stack(inputs)})[self.outputs[0]]
        for one, prediction in zip(found, predictions):
            one["prediction"] = prediction.squeeze()
        return found

    def detect_selective_search(self, image_fnames):
        """Runs detect_windows on the windows that selective search proposes (module
        selective_search_ijcv_with_python)."""
        try:
            import selective_search_ijcv_with_python as selective_search
        except ImportError:
            raise Unsupported("detect_selective_search needs module selective_search_ijcv_with_python; with windows of "
                              "your own use detect_windows") from None
        names = [str(name) for name in image_fnames]
        return self.detect_windows(zip(names, selective_search.get_windows(names, cmd="selective_search_rcnn")))

    def crop(self, im, window):
        """Cuts the window (ymin, xmin, ymax, xmax) out of an image (H, W, C). With context_pad the result
        includes the surroundings, is resized to the net's input, and has the mean outside the image."""
        window = np.round(np.asarray(window, dtype=float)).astype(int)
        if window.shape != (4,) or window[2] <= window[0] or window[3] <= window[1]:
            raise InvalidArgument(f"crop: window {window.tolist()} is empty; it is (ymin, xmin, ymax, xmax)")
        if not self.context_pad:
            crop = im[max(window[0], 0):window[2], max(window[1], 0):window[3]]
            if crop.size == 0:
                raise InvalidArgument(f"crop: window {window.tolist()} lies outside of the image {im.shape[:2]}")
            return crop
        size = self.blobs[self.inputs[0]].shape[2]
        # The window grows around its centre so that, resized, it has context_pad pixels on each side.
        growth = size / (size - 2.0 * self.context_pad)
        centre = (window[:2] + window[2:]) / 2.0
        half = (window[2:] - window[:2] + 1) / 2.0 * growth
        box = np.round(np.concatenate([centre - half, centre + half])).astype(int)
        factor = size / (box[2:] - box[:2] + 1.0)
        begin, end = np.maximum(box[:2], 0), np.minimum(box[2:], im.shape[:2])
        if (end <= begin).any():
            raise InvalidArgument(f"crop: window {window.tolist()} lies outside of the image {im.shape[:2]}")
        offset = np.round((begin - box[:2]) * factor).astype(int)
        inside = np.maximum(np.round((end - begin + 1) * factor).astype(int), 1)
        inside = np.minimum(inside, size - offset)
        crop = np.ones((size, size, im.shape[2]), np.float32) * self.crop_mean
        crop[offset[0]:offset[0] + inside[0], offset[1]:offset[1] + inside[1]] = io.resize_image(
            im[begin[0]:end[0], begin[1]:end[1]], inside)
        return crop

    def configure_crop(self, context_pad):
        """Sets the context, in pixels of the net's input, and the value that fills it outside the image:
        the mean."""
        name = self.inputs[0]
        channels, size, width = self.blobs[name].shape[1:]
        if context_pad and not (size == width and 0 < 2 * context_pad < size):
            raise InvalidArgument(f"configure_crop: context_pad {context_pad} for an input of {size} x {width}; the input "
                                  "must be square and twice the padding smaller than it")
        self.context_pad = context_pad
        if not context_pad:
            return
        # Converts the mean to the image's scale, because preprocess will subtract it again.
        mean = self.transformer.mean.get(name)
        mean = np.zeros((channels, 1, 1), np.float32) if mean is None else mean
        mean = np.broadcast_to(mean, (channels, size, size))
        raw_scale = self.transformer.raw_scale.get(name)
        swap = self.transformer.channel_swap.get(name)
        if raw_scale is not None:
            mean = mean / raw_scale
        if swap is not None:
            mean = mean[np.argsort(swap)]
        self.crop_mean = mean.transpose(np.argsort(self.transformer.transpose[name])).astype(np.float32)

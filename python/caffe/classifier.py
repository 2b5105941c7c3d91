"""Classifier: a net that classifies images."""
import numpy as np

from . import io
from ._caffe import InvalidArgument
from .proto.caffe_pb2 import TEST
from .pycaffe import Net


def make_transformer(net, mean, input_scale, raw_scale, channel_swap):
    """The Transformer for a net's first input; it takes images (H, W, C) from load_image."""
    name = net.inputs[0]
    transformer = io.Transformer({name: net.blobs[name].data.shape})
    transformer.set_transpose(name, (2, 0, 1))
    if mean is not None:
        transformer.set_mean(name, mean)
    if input_scale is not None:
        transformer.set_input_scale(name, input_scale)
    if raw_scale is not None:
        transformer.set_raw_scale(name, raw_scale)
    if channel_swap is not None:
        transformer.set_channel_swap(name, channel_swap)
    return transformer


class Classifier(Net):
    """Classifier(model_file, pretrained_file, image_dims=None, mean=None, input_scale=None,
    raw_scale=None, channel_swap=None)

    image_dims: (height, width) to which images are resized before they are cropped to the net's
    input (default: the input's size). The other arguments are those of caffe.io.Transformer.
    """

    def __init__(self, model_file, pretrained_file, image_dims=None, mean=None, input_scale=None, raw_scale=None,
                 channel_swap=None):
        Net.__init__(self, model_file, TEST, weights=pretrained_file)
        self.transformer = make_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].data.shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else image_dims

    def predict(self, inputs, oversample=True):
        """inputs: images (H, W, C) from load_image. Returns class probabilities of shape (number of
        images, classes): the mean over ten crops with oversample, else of the centre crop."""
        inputs = list(inputs)
        if not inputs:
            raise InvalidArgument("predict: no images given")
        images = np.stack([io.resize_image(image, self.image_dims) for image in inputs])
        if oversample:
            images = io.oversample(images, self.crop_dims)
        else:
            y, x = ((np.array(self.image_dims) - self.crop_dims) / 2.0).astype(int)
            images = images[:, y:y + self.crop_dims[0], x:x + self.crop_dims[1], :]
        name = self.inputs[0]
        batch = np.stack([self.transformer.preprocess(name, image) for image in images]).astype(np.float32)
        predictions = self.forward_all(**{name: batch})[self.outputs[0]]
        if oversample:
            predictions = predictions.reshape(len(inputs), 10, -1).mean(1)
        return predictions

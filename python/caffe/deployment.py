"""What has to be known beside a net and its weights to ask it about an image: names of classes, mean,
scale and size; and nets for use, made of nets for training."""
import os

from ._caffe import Net, _deploy_net, _describe_model, _model_info_of_weights
from .proto import caffe_pb2


def model_info(source):
    """The ModelInfo message (docs/options.md) that a net or its weights have.

    source: the name of a .caffemodel, or several with commas, of which the last that has one counts;
    a Net; or a NetParameter, of which data layers and the files beside their databases tell what the
    message itself does not. Empty where nothing is known. Raises IoError for files that cannot be
    read.
    """
    if isinstance(source, Net):
        source = caffe_pb2.NetParameter.FromString(source._definition())
    if isinstance(source, (str, bytes, os.PathLike)):
        return caffe_pb2.ModelInfo.FromString(_model_info_of_weights(source))
    return caffe_pb2.ModelInfo.FromString(_describe_model(source.SerializePartialToString()))


def deploy_net(net, inputs=()):
    """The NetParameter for use of a net of phase TEST: an Input of one item in the place of its data,
    without layers that need labels; what a softmax loss reads becomes probabilities, in "prob".

    inputs: the tops of data layers that the net is asked about; by default the first of the first
    layer. Raises InvalidArgument for a net of phase TRAIN or without data layers, and where nothing
    is left.

        definition = caffe.deploy_net(caffe.Net("train_val.prototxt", caffe.TEST))
    """
    return caffe_pb2.NetParameter.FromString(_deploy_net(net, list(inputs)))

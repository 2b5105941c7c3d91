"""Preprocessing and labels that inference needs besides a net and its weights: names of
classes, mean, scale and size. Also derives nets for inference from nets for training."""
import os

from google.protobuf import text_format

from ._caffe import InvalidArgument, IoError, Net, _deploy_net, _describe_model, _model_info_of_weights
from .proto import caffe_pb2


def model_info(source):
    """The ModelInfo message (docs/options.md) of a net or its weights.

    source: the name of a .caffemodel, or several separated by commas (the last one with a ModelInfo
    counts); a Net; or a NetParameter, whose data layers, with the files next to their databases, fill
    what its own message lacks. The result is empty if nothing is known. Raises IoError for files that
    cannot be read.
    """
    if isinstance(source, Net):
        source = caffe_pb2.NetParameter.FromString(source._definition())
    if isinstance(source, (str, bytes, os.PathLike)):
        return caffe_pb2.ModelInfo.FromString(_model_info_of_weights(source))
    return caffe_pb2.ModelInfo.FromString(_describe_model(source.SerializePartialToString()))


def read_model_info(file):
    """The ModelInfo in a prototxt. Raises IoError, or InvalidArgument with the line of a mistake."""
    info = caffe_pb2.ModelInfo()
    try:
        with open(file, encoding="utf-8") as text:
            return text_format.Parse(text.read(), info)
    except OSError as error:
        raise IoError(f"{file}: {error.strerror}") from None
    except text_format.ParseError as error:
        raise InvalidArgument(f"{file}:{error}") from None


def deploy_net(net, inputs=()):
    """The NetParameter for inference, made from a net of phase TEST. An Input for one item replaces the
    data, layers that need labels are removed, and the input of a softmax loss becomes probabilities in
    "prob".

    inputs: the tops of data layers that become inputs; by default the first top of the first data
    layer. Raises InvalidArgument for a net of phase TRAIN or without data layers, and if no layer is
    left.

        definition = caffe.deploy_net(caffe.Net("train_val.prototxt", caffe.TEST))
    """
    return caffe_pb2.NetParameter.FromString(_deploy_net(net, list(inputs)))

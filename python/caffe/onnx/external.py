"""Weights in external files. A model may come from a stranger, so files are read only from its own folder."""
import os
import stat

from onnx import TensorProto, external_data_helper

from .._caffe import InvalidArgument


def external_tensors(proto):
    """All tensors of a model that are stored in other files."""
    return [tensor for tensor in _tensors(proto) if tensor.data_location == TensorProto.EXTERNAL]


def require_texts(proto):
    """Raises InvalidArgument for names that are not UTF-8: protobuf returns them as bytes."""
    for message in _messages(proto):
        for field, value in message.ListFields():
            if field.type == field.TYPE_STRING:
                for text in [value] if isinstance(value, (str, bytes)) else value:
                    if isinstance(text, bytes):
                        raise InvalidArgument(f"the model is not valid: {field.full_name} {text[:40]!r} is not UTF-8")


def _tensors(proto):
    return (message for message in _messages(proto) if isinstance(message, TensorProto))


def _messages(message):
    """Iterates over a message and all nested messages."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if hasattr(value, "__len__") else [value]:
                yield from _messages(part)


def load_external(proto, file):
    """Reads the weights of the model in `file` into it."""
    folder = os.path.realpath(os.path.dirname(file) or ".")
    tensors = external_tensors(proto)
    for tensor in tensors:
        _check(tensor, folder)
    for tensor in tensors:
        external_data_helper.load_external_data_for_tensor(tensor, folder)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _check(tensor, folder):
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    path = os.path.join(folder, location)
    if not location or "\0" in location or os.path.isabs(location):
        raise InvalidArgument(f"tensor '{tensor.name}' lies in {location!r}; weights must be next to the model, with relative names")
    if os.path.commonpath([folder, os.path.realpath(path)]) != folder:
        raise InvalidArgument(f"tensor '{tensor.name}' lies in {location!r}, outside of the model's folder")
    if not os.path.exists(path):
        raise InvalidArgument(f"tensor '{tensor.name}' lies in {location!r}, which is not there")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InvalidArgument(f"tensor '{tensor.name}' lies in {location!r}, which is not a file")

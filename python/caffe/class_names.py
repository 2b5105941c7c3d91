"""Files with the names of classes."""
from google.protobuf import text_format

from ._caffe import InvalidArgument, IoError
from .proto import caffe_pb2


def read_names(file):
    """Names of classes by label, from a text file with one name per line or from a LabelMap prototxt."""
    try:
        with open(file, encoding="utf-8-sig") as lines:
            text = lines.read()
    except OSError as error:
        raise IoError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{file}: is not text in UTF-8 ({error.reason} at byte {error.start})") from None
    if not file.endswith(".prototxt"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    names = caffe_pb2.LabelMap()
    try:
        text_format.Parse(text, names)
    except text_format.ParseError as error:
        raise InvalidArgument(f"{file}:{error}") from None
    found = {item.label: item.display_name or item.name for item in names.item}
    return [found.get(label, str(label)) for label in range(max(found, default=-1) + 1)]

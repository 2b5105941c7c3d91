"""Lists for the editor of definitions of what can be typed: fields, values of enums, and types of layers."""
import functools
import json
import pathlib

from google.protobuf.descriptor import FieldDescriptor as Field

from .. import layer_type_list
from ..proto import caffe_pb2

_NUMBERS = (Field.CPPTYPE_FLOAT, Field.CPPTYPE_DOUBLE)


def _kind(field):
    """[kind, what follows]: kind is a message's full name, "bool", "text", "number" or "integer"; what follows are an enum's values."""
    if field.message_type is not None:
        return [field.message_type.full_name, []]
    if field.enum_type is not None:
        return [field.enum_type.name, [value.name for value in field.enum_type.values]]
    if field.cpp_type == Field.CPPTYPE_BOOL:
        return ["bool", ["true", "false"]]
    if field.cpp_type == Field.CPPTYPE_STRING:
        return ["text", []]
    return ["number" if field.cpp_type in _NUMBERS else "integer", []]


def schema(*roots):
    """{full name of a message: {field: _kind()}} of the messages that can occur in those named."""
    found, waiting = {}, [getattr(caffe_pb2, root).DESCRIPTOR for root in roots]
    while waiting:
        message = waiting.pop()
        if message.full_name in found:
            continue
        fields = found[message.full_name] = {}
        for field in message.fields:
            if field.GetOptions().deprecated:
                continue
            fields[field.name] = _kind(field)
            if field.message_type is not None:
                waiting.append(field.message_type)
    return found


@functools.lru_cache(maxsize=None)
def script(root):
    """JavaScript, a function of a CodeMirror view, that makes it complete a prototxt of the message `root`."""
    known = schema(root)
    layer = known.get("caffe.LayerParameter")
    if layer:
        layer["type"] = ["text", sorted(layer_type_list())]
    code = (pathlib.Path(__file__).parent / "completion.js").read_text(encoding="utf-8")
    return f"({code})({json.dumps(known, separators=(',', ':'))}, 'caffe.{root}')"

"""Nets written in Python: layers are calls, blobs are variables, and the result is a NetParameter.

    from caffe import layers as L, params as P, NetSpec

    n = NetSpec()
    n.data, n.label = L.Data(source="train_lmdb", backend=P.Data.LMDB, batch_size=64, ntop=2)
    n.conv1 = L.Convolution(n.data, num_output=20, kernel_size=5)
    n.pool1 = L.Pooling(n.conv1, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.loss = L.SoftmaxWithLoss(n.pool1, n.label)
    print(n.to_proto())

`L.Type(*bottoms, **options)` returns the layer's top; with ntop=2 or more a tuple of tops, with
ntop=0 the layer itself. in_place=True makes the tops overwrite the bottoms. Every other keyword
is a field:

* of the type's own message (`num_output` of ConvolutionParameter), else of LayerParameter
  (`include`, `loss_weight`, `name`);
* the other way round if it ends in "param": `param`, `transform_param`, or the whole message of a
  type that shares another's (`L.Deconvolution(x, convolution_param=dict(num_output=2))`).

A value is a number, a string, a `P` enum, a dict for a message, or a list for a repeated field; a
single value is accepted for a list of one, and 1.0 for 1. Messages of types, and all enums,
come from the schema.
"""
from __future__ import annotations

import collections
import numbers
from typing import Any, Callable, Counter, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from .proto import caffe_pb2

OPTIONS = "Parameter"
FIELD = "_param"


def param_name_dict() -> Dict[str, str]:
    """Layer type -> its field of LayerParameter without "_param": {"Convolution": "convolution",
    ...}."""
    fields = caffe_pb2.LayerParameter.DESCRIPTOR.fields
    return {field.message_type.name[:-len(OPTIONS)]: field.name[:-len(FIELD)] for field in fields
            if field.name.endswith(FIELD) and field.message_type.name.endswith(OPTIONS)}


_OPTIONS_OF_TYPE = param_name_dict()


def is_repeated(field: FieldDescriptor) -> bool:
    """True if a field is a list. protobuf before 6 lacks `is_repeated`, protobuf 7 lacks `label`."""
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return field.label == field.LABEL_REPEATED


def assign_proto(proto: Message, name: str, value: Any) -> None:
    """Sets a field of a message from plain Python values, as described in the module's docstring.

    Raises AttributeError if the message has no such field, TypeError or ValueError if the value does
    not fit the field; the text names the field, as in "weight_filler.std is '1'".
    """
    field = proto.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise AttributeError(f"{proto.DESCRIPTOR.name} has no field {name!r}")
    if is_repeated(field):
        values = value if isinstance(value, (list, tuple)) else [value]
        target = getattr(proto, name)
        for item in values:
            if field.message_type is None:
                _checked(target.append, field, item)
            else:
                _assign_message(target.add(), field, item)
    elif field.message_type is not None:
        _assign_message(getattr(proto, name), field, value)
    else:
        _checked(lambda item: setattr(proto, name, item), field, value)


_WHOLE = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32,
          FieldDescriptor.CPPTYPE_UINT64}
_REAL = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}


def _checked(put: Callable[[Any], None], field: FieldDescriptor, value: Any) -> None:
    """Sets a number, string or enum. Integer fields accept 1.0, because `(3 - 1) / 2` was an integer in Python 2."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    if field.cpp_type in _WHOLE and is_real and float(value).is_integer():
        value = int(value)
    try:
        put(value)
    except (TypeError, ValueError) as error:  # protobuf raises its own subclasses of ValueError
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{field.name} is {value!r}; it must be {_wanted(field)}") from None


def _wanted(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return "one of " + ", ".join(field.enum_type.values_by_name)
    if field.cpp_type in _WHOLE:
        least = " from 0 up" if field.cpp_type in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64) else ""
        return "a whole number" + least
    if field.cpp_type in _REAL:
        return "a number"
    return "True or False" if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else "text"


def _assign_message(proto: Message, field: FieldDescriptor, value: Union[Mapping[str, Any], Message]) -> None:
    if isinstance(value, Message):
        if value.DESCRIPTOR.full_name != proto.DESCRIPTOR.full_name:
            raise TypeError(f"{field.name} is a {value.DESCRIPTOR.name}; it must be a {proto.DESCRIPTOR.name}, or a dict")
        proto.CopyFrom(value)
        return
    if not isinstance(value, collections.abc.Mapping):
        raise TypeError(f"{field.name} is {value!r}; {proto.DESCRIPTOR.name} is set from a dict")
    proto.SetInParent()
    for name, item in value.items():
        try:
            assign_proto(proto, name, item)
        except AttributeError as error:
            raise AttributeError(f"{field.name}: {error}") from None
        except (TypeError, ValueError) as error:
            raise type(error)(f"{field.name}.{error}") from None


class Top:
    """One output of a layer, which other layers take as a bottom.

    fn: the Function it comes from. n: its index among the layer's tops.
    """

    def __init__(self, fn: Function, n: int) -> None:
        self.fn = fn
        self.n = n

    def update(self, params: Mapping[str, Any]) -> None:
        """Changes or adds keywords of the layer this top comes from."""
        self.fn.params.update(params)

    def to_proto(self) -> Message:
        """A NetParameter with this top's layer and all layers it depends on, named by type and count."""
        return to_proto(self)


class Function:
    """A layer that has not been written yet.

    type_name: the layer type. inputs: its bottoms, Tops. params: keywords that are fields. tops:
    its Tops.
    """

    def __init__(self, type_name: str, inputs: Iterable[Top], params: Mapping[str, Any]) -> None:
        self.type_name = type_name
        self.inputs: Tuple[Top, ...] = tuple(inputs)
        for index, top in enumerate(self.inputs):
            if not isinstance(top, Top):
                raise TypeError(f"{type_name} input {index} is not a Top (type is {type(top)})")
        self.params: Dict[str, Any] = dict(params)
        self.ntop: int = self.params.pop("ntop", 1)
        self.in_place: bool = self.params.pop("in_place", False)
        if self.in_place and self.ntop != len(self.inputs):
            raise TypeError(f"{type_name} in place needs as many bottoms as tops; it has {len(self.inputs)} bottoms, "
                            f"ntop={self.ntop}")
        self.tops: Tuple[Top, ...] = tuple(Top(self, n) for n in range(self.ntop))

    def to_layer(self, bottoms: Iterable[str], tops: Iterable[str], name: str) -> Message:
        """The LayerParameter. Raises AttributeError for a keyword that is not a field of this type, TypeError
        or ValueError for a value that does not fit its field; the text names layer and
        field."""
        layer = caffe_pb2.LayerParameter(type=self.type_name, bottom=bottoms, top=tops, name=name)
        for keyword, value in self.params.items():
            try:
                self._assign(layer, keyword, value)
            except (AttributeError, TypeError, ValueError) as error:
                raise type(error)(f"layer '{name}' ({self.type_name}): {error}") from None
        return layer

    def _assign(self, layer: Message, keyword: str, value: Any) -> None:
        own = getattr(layer, _OPTIONS_OF_TYPE[self.type_name] + FIELD) if self.type_name in _OPTIONS_OF_TYPE else None
        holders = [layer] if own is None else [own, layer]
        for holder in holders:
            if keyword in holder.DESCRIPTOR.fields_by_name:
                assign_proto(holder, keyword, value)
                return
        extension = _extension(layer, keyword)
        if extension is not None:
            _assign_message(layer.Extensions[extension], extension, value)
            return
        searched = " nor ".join(holder.DESCRIPTOR.name for holder in holders)
        hint = "" if own is not None else f"; options of other types need their message: x_param=dict({keyword}=...)"
        raise AttributeError(f"no field {keyword!r} in {searched}{hint}")


def _extension(layer: Message, name: str) -> Any:
    """The field of a plug-in layer's options, if the Python module of its .proto file has been imported; else None."""
    known = layer.DESCRIPTOR.file.pool.FindAllExtensions(layer.DESCRIPTOR)
    return next((extension for extension in known if extension.name == name), None)


class _Writer:
    """Writes each layer once, in the order of dependencies, and names blobs that have no name."""

    def __init__(self, names: Mapping[Union[Top, Function], str]) -> None:
        self.layers: Dict[Function, Message] = {}
        self._names = names
        self._counts: Counter[str] = collections.Counter()

    def write(self, function: Function) -> None:
        # Uses a stack instead of recursion: deep nets would exceed Python's recursion limit.
        stack = [function]
        while stack:
            top = stack[-1]
            missing = [t.fn for t in top.inputs if t.fn not in self.layers]
            if top not in self.layers and missing:
                stack.append(missing[0])
                continue
            stack.pop()
            if top not in self.layers:
                self.layers[top] = self._layer(top)

    def net(self) -> Message:
        return caffe_pb2.NetParameter(layer=self.layers.values())

    def _layer(self, function: Function) -> Message:
        bottoms = [self.layers[top.fn].top[top.n] for top in function.inputs]
        own = [self._name(top, function) for top in ([] if function.in_place else function.tops)]
        tops = bottoms if function.in_place else own
        # An in-place layer is named after its variable, although its top has the bottom's name.
        named = function.tops[0] if function.tops else function
        name = own[0] if own else self._name(named, function)
        return function.to_layer(bottoms, tops, name)

    def _name(self, key: Union[Top, Function], function: Function) -> str:
        if key in self._names:
            return self._names[key]
        self._counts[function.type_name] += 1
        return f"{function.type_name}{self._counts[function.type_name]}"


class NetSpec:
    """A net whose blobs are its attributes, `spec.conv1`, or items, `spec["conv1/3x3"]`.

    A layer is named after its first top, unless its keyword `name` is given. Layers follow the layers
    that they read, otherwise the order in which their tops were set.
    """

    tops: Dict[str, Union[Top, Function]]

    def __init__(self) -> None:
        super().__setattr__("tops", collections.OrderedDict())

    def __setattr__(self, name: str, value: Union[Top, Function]) -> None:
        self[name] = value

    def __getattr__(self, name: str) -> Union[Top, Function]:
        # Python also looks up "tops" itself while an object is being copied.
        if name == "tops" or name not in self.tops:
            raise AttributeError(f"the net has no blob {name!r}")
        return self.tops[name]

    def __delattr__(self, name: str) -> None:
        if name not in self.tops:
            raise AttributeError(f"the net has no blob {name!r}")
        del self.tops[name]

    def __setitem__(self, name: str, value: Union[Top, Function]) -> None:
        if not isinstance(value, (Top, Function)):
            if isinstance(value, tuple) and all(isinstance(top, Top) for top in value):
                raise TypeError(f"{name!r} is one name for {len(value)} tops; give each its own, as in n.data, n.label = ...")
            raise TypeError(f"{name!r} is {value!r}; a blob is set to what a layer returns")
        self.tops[name] = value

    def __getitem__(self, name: str) -> Union[Top, Function]:
        return self.tops[name]

    def __delitem__(self, name: str) -> None:
        """Removes the name; the layer stays as long as another layer reads it."""
        del self.tops[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tops

    def keys(self) -> List[str]:
        """Names of the blobs, in the order in which they were set."""
        return list(self.tops.keys())

    def vals(self) -> List[Union[Top, Function]]:
        """The Tops (Functions for ntop=0), in the same order."""
        return list(self.tops.values())

    def update(self, name: str, params: Mapping[str, Any]) -> None:
        """Changes or adds keywords of the layer of blob `name`."""
        top = self.tops[name]
        (top if isinstance(top, Function) else top.fn).params.update(params)

    def to_proto(self, verbose: bool = False) -> Message:
        """The NetParameter; with verbose, prints each name with its layer type."""
        writer = _Writer({top: name for name, top in self.tops.items()})
        for name, top in self.tops.items():
            function = top if isinstance(top, Function) else top.fn
            if verbose:
                print(name, function.type_name)
            writer.write(function)
        return writer.net()


def to_proto(*tops: Union[Top, Function]) -> Message:
    """A NetParameter that computes the given tops; layers and blobs are named Type1, Type2, ..."""
    writer = _Writer({})
    for top in tops:
        writer.write(top if isinstance(top, Function) else top.fn)
    return writer.net()


class Layers:
    """`Layers().Convolution(...)` and so on, for any type: nets may use layer types of other libraries."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def layer(*bottoms: Top, **params: Any) -> Union[Top, Tuple[Top, ...], Function]:
            function = Function(name, bottoms, params)
            if function.ntop == 0:
                return function
            return function.tops[0] if function.ntop == 1 else function.tops

        return layer


class Parameters:
    """`Parameters().Pooling` is the message PoolingParameter, which has the enums: P.Pooling.MAX."""

    def __getattr__(self, name: str) -> Any:
        message: Optional[Any] = getattr(caffe_pb2, name + OPTIONS, None)
        if message is None:
            raise AttributeError(f"the schema has no message {name}{OPTIONS}")
        return message


layers = Layers()
params = Parameters()

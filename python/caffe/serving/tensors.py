"""Reads and writes the messages of the Open Inference Protocol, in JSON and with Triton's binary tensors."""
import dataclasses
import math

import numpy as np
import orjson

from .images import top_classes

# Types of the protocol. Nets compute float32, so all numbers become that; answers are FP32.
_TYPES = {"FP32": np.float32, "FP64": np.float64, "FP16": np.float16, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32,
          "INT64": np.int64, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "BOOL": np.bool_}


MOST_ITEMS = 4096  # in a request


class BadRequest(Exception):
    """The text says what is wrong, and what to send."""


@dataclasses.dataclass
class Wish:
    """An output that a client wants. top: for so many classes their names instead of all scores, 0 for the scores."""
    name: str
    is_binary: bool = False
    top: int = 0


@dataclasses.dataclass
class Request:
    inputs: dict  # arrays of float32 by input
    count: int  # items; 1 for a model without batches
    wishes: list
    id: str = ""


def _mapping(value, what):
    if not isinstance(value, dict):
        raise BadRequest(f"{what} is not a JSON object")
    return value


def _number(parameters, name, what):
    value = parameters.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(f"{what}: {name} is {str(value)[:40]}; give a whole number from 0 on")
    return value


def _header(body, header_length):
    """The JSON of a request, and what follows it."""
    if header_length is not None and not 0 < header_length <= len(body):
        raise BadRequest(f"Inference-Header-Content-Length is {header_length}, but the body has {len(body)} bytes")
    try:
        message = orjson.loads(body if header_length is None else body[:header_length])
    except orjson.JSONDecodeError as error:
        hint = "" if header_length else "; for binary tensors give the length of the JSON in Inference-Header-Content-Length"
        raise BadRequest(f"the body is not valid JSON: {error}{hint}") from None
    return _mapping(message, "the body"), memoryview(body)[len(body) if header_length is None else header_length:]


def _shape(tensor, what):
    shape = tensor.get("shape")
    if not isinstance(shape, list) or not all(isinstance(extent, int) and not isinstance(extent, bool) and extent >= 0 for extent in shape):
        raise BadRequest(f"{what}: shape is {str(shape)[:80]}; give a list of whole numbers")
    return tuple(shape)


def _check_shape(shape, wanted, max_batch, what):
    fits = len(shape) == len(wanted) and all(want in (-1, extent) for extent, want in zip(shape, wanted))
    if not fits or (max_batch and shape[0] == 0):
        raise BadRequest(f"{what}: the shape is {list(shape)}; the model takes {list(wanted)}" + (", where -1 is 1 or more" if -1 in wanted else ""))


def _as_type(data, dtype, what):
    """Numbers in the type that the request names. Floats are rounded; what does not fit is refused."""
    if data.dtype == dtype:
        return data
    with np.errstate(all="ignore"):
        cast = data.astype(dtype)
        changed = np.isinf(cast) & np.isfinite(data) if dtype.kind == "f" else cast.astype(data.dtype) != data
        if dtype.kind in "iu" and data.dtype.kind in "iuf":  # the largest of 64 bits come back as they were
            changed |= (data < np.iinfo(dtype).min) if data.dtype.kind != "u" else False
            changed |= data >= float(np.iinfo(dtype).max) + 1
    _require_none(changed, data, dtype, what)
    return cast


def _as_float(data, what):
    if data.dtype == np.float32:
        return data
    with np.errstate(all="ignore"):
        cast = data.astype(np.float32)
    if data.dtype.kind == "f":
        _require_none(np.isinf(cast) & np.isfinite(data), data, cast.dtype, what)
    return cast


def _require_none(changed, data, dtype, what):
    if not changed.any():
        return
    if dtype.kind == "b":
        known = "takes 0 and 1"
    elif dtype.kind == "f":
        known = f"ends at {np.finfo(dtype).max:g}"
    else:
        known = f"takes whole numbers from {np.iinfo(dtype).min} to {np.iinfo(dtype).max}"
    raise BadRequest(f"{what}: {data[changed].reshape(-1)[0]!s} is not a valid {dtype.name}, which {known}")


def _from_json(tensor, dtype, what):
    try:
        data = np.asarray(tensor["data"])
        if data.dtype.kind not in "biuf":
            raise TypeError("they are not numbers" if data.dtype.kind in "US" else "its lists are of different lengths, or too deep")
        return _as_float(_as_type(data, np.dtype(dtype), what), what).reshape(-1)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRequest(f"{what}: cannot read its data: {error}") from None


def _from_bytes(chunk, dtype, what):
    item = np.dtype(dtype).itemsize
    if len(chunk) % item:
        raise BadRequest(f"{what}: has {len(chunk)} bytes, not a multiple of {item}")
    return _as_float(np.frombuffer(chunk, np.dtype(dtype).newbyteorder("<")), what)


class _Inputs:
    """Reads the inputs of a request, one after the other."""

    def __init__(self, model, rest):
        self._max_batch = model.max_batch
        self._wanted = {one.name: one.shape for one in model.inputs}
        self._rest = rest  # bytes of the binary tensors that are not read yet
        self.found = {}

    def read(self, tensor, number):
        name = _mapping(tensor, f"inputs[{number}]").get("name")
        what = f"input {str(name)[:80]!r}"
        if not isinstance(name, str) or name not in self._wanted or name in self.found:
            raise BadRequest(f"{what} {'is given twice' if str(name) in self.found else 'is none of the model'}; "
                             f"it has {', '.join(self._wanted)}")
        datatype = tensor.get("datatype")
        if not isinstance(datatype, str) or datatype not in _TYPES:
            raise BadRequest(f"{what}: datatype is {str(datatype)[:40]}; give one of {', '.join(_TYPES)}")
        shape = _shape(tensor, what)
        _check_shape(shape, self._wanted[name], self._max_batch, what)
        values = self._values(tensor, _TYPES[datatype], what)
        if values.size != math.prod(shape):
            raise BadRequest(f"{what}: has {values.size} numbers; its shape {list(shape)} says {math.prod(shape)}")
        self.found[name] = values.reshape(shape)

    def _values(self, tensor, dtype, what):
        parameters = _mapping(tensor.get("parameters", {}), f"{what}: parameters")
        if "binary_data_size" not in parameters:
            if "data" not in tensor:
                raise BadRequest(f"{what}: has neither data nor binary_data_size")
            return _from_json(tensor, dtype, what)
        size = _number(parameters, "binary_data_size", what)
        if size > len(self._rest):
            raise BadRequest(f"{what}: binary_data_size is {size}, but {len(self._rest)} bytes are left in the body")
        chunk, self._rest = self._rest[:size], self._rest[size:]
        return _from_bytes(chunk, dtype, what)

    def count(self):
        """The items of the request, when all inputs are read."""
        if missing := [name for name in self._wanted if name not in self.found]:
            raise BadRequest(f"input {missing[0]!r} is missing; the model takes {', '.join(self._wanted)}")
        if len(self._rest):
            raise BadRequest(f"{len(self._rest)} bytes after the last tensor belong to none")
        counts = {len(values) for values in self.found.values()} if self._max_batch else {1}
        if max(counts) > MOST_ITEMS:
            raise BadRequest(f"the request has {max(counts)} items; at most {MOST_ITEMS} are possible, so divide it")
        if len(counts) > 1:
            raise BadRequest(f"the inputs have batches of different sizes: {', '.join(map(str, sorted(counts)))}")
        return counts.pop()


def read_request(body, header_length, model):
    """The Request in a body. header_length: that of the JSON if binary tensors follow it, else None. Raises BadRequest."""
    message, rest = _header(body, header_length)
    tensors = message.get("inputs")
    if not isinstance(tensors, list) or not tensors:
        raise BadRequest("the request has no list 'inputs'")
    inputs = _Inputs(model, rest)
    for number, tensor in enumerate(tensors):
        inputs.read(tensor, number)
    return Request(inputs.found, inputs.count(), _wishes(message, model), str(message.get("id", "")))


def _wishes(message, model):
    names = [one.name for one in model.outputs]
    is_binary = bool(_mapping(message.get("parameters", {}), "parameters").get("binary_data_output", False))
    given = message.get("outputs")
    if given is None:
        return [Wish(name, is_binary) for name in names]
    if not isinstance(given, list) or not given:
        raise BadRequest("'outputs' is not a list of outputs; leave it out for all")
    wishes = []
    for number, one in enumerate(given):
        name = _mapping(one, f"outputs[{number}]").get("name")
        if name not in names:
            raise BadRequest(f"output {str(name)[:80]!r}: the model has no such output; it has {', '.join(names)}")
        if any(wish.name == name for wish in wishes):
            raise BadRequest(f"output {name!r} is given twice")
        parameters = _mapping(one.get("parameters", {}), f"output {name!r}: parameters")
        wishes.append(Wish(name, bool(parameters.get("binary_data", is_binary)), _number(parameters, "classification", f"output {name!r}")))
    return wishes


def _named_classes(scores, count, labels):
    """Triton's form: strings "score:class:name"."""
    return [f"{score:f}:{label}" + (f":{labels[label]}" if label < len(labels) else "")
            for row in top_classes(scores, count) for score, label in row]


def write_answer(model, request, answer):
    """The body of an answer, and the length of its JSON if binary tensors follow it, else None.

    answer: arrays by output. In JSON, numbers that are not finite are null.
    """
    outputs, chunks = [], []
    for wish in request.wishes:
        values = np.ascontiguousarray(answer[wish.name])
        if wish.top and values.ndim:
            data = _named_classes(values, wish.top, model.labels)
            shape, datatype = [len(values), len(data) // max(1, len(values))], "BYTES"
            chunk = b"".join(len(text.encode()).to_bytes(4, "little") + text.encode() for text in data) if wish.is_binary else None
        else:
            data, shape, datatype = values.reshape(-1), list(values.shape), "FP32"
            chunk = data.astype("<f4", copy=False).tobytes() if wish.is_binary else None
        tensor = {"name": wish.name, "datatype": datatype, "shape": shape}
        if chunk is None:
            tensor["data"] = data
        else:
            tensor["parameters"] = {"binary_data_size": len(chunk)}
            chunks.append(chunk)
        outputs.append(tensor)
    message = {"model_name": model.name, "model_version": "1", "outputs": outputs}
    if request.id:
        message["id"] = request.id
    header = orjson.dumps(message, option=orjson.OPT_SERIALIZE_NUMPY)
    return (b"".join([header, *chunks]), len(header)) if chunks else (header, None)

"""The definitions that a run folder keeps, as fields with paths."""
import os

from google.protobuf import text_format

from ..proto import caffe_pb2

# Differ between any two runs, or are told elsewhere.
_IGNORED = {"snapshot_prefix", "net", "train_net", "test_net"}
_LARGEST = 4 << 20  # bytes of a definition that is read


def flat(message, prefix=""):
    """{path: text of the value} of all fields that are set. Layers go by their names: layer[conv1].type."""
    fields = {}
    for field, value in message.ListFields():
        path = prefix + field.name
        repeated = isinstance(value, (list, tuple)) or hasattr(value, "append") and not isinstance(value, (str, bytes))
        if field.type != field.TYPE_MESSAGE:
            fields[path] = " ".join(_text(field, one) for one in value) if repeated else _text(field, value)
        elif not repeated:
            fields.update(flat(value, path + "."))
        else:
            for index, one in enumerate(value):
                fields.update(flat(one, f"{path}[{getattr(one, 'name', '') or index}]."))
    return fields


def _text(field, value):
    if field.type == field.TYPE_ENUM:
        found = field.enum_type.values_by_number.get(value)
        return found.name if found else str(value)
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _read(file, message):
    try:
        if not os.path.isfile(file) or os.path.getsize(file) > _LARGEST:
            return message
        with open(file, encoding="utf-8") as text:
            text_format.Parse(text.read(), message, allow_unknown_field=True)
    except (OSError, ValueError, text_format.ParseError):
        pass  # of a newer version, or damaged: what could be read counts
    return message


def fields_of(folder):
    """Fields of the solver and the train net of a run. A resumed run may have several solvers; the first one counts."""
    solver = flat(_read(os.path.join(folder, "solver.prototxt"), caffe_pb2.SolverParameter()))
    net = flat(_read(os.path.join(folder, "train_net.prototxt"), caffe_pb2.NetParameter()))
    return {path: value for path, value in {**solver, **net}.items() if path.partition(".")[0] not in _IGNORED}


def differences(folders):
    """{path: [value in each folder, "" where it is not set]} of the fields that are not the same in all."""
    fields = [fields_of(folder) for folder in folders]
    paths = dict.fromkeys(path for found in fields for path in found)
    rows = {path: [found.get(path, "") for found in fields] for path in paths}
    return {path: values for path, values in rows.items() if len(set(values)) > 1}

"""The process that checks and runs models from strangers. sandbox.py starts it, and sends one line per model:

    a folder with model.onnx and inputs.json, which names a .npy for each input; and the memory limit in bytes

It writes a .npy for each tensor of the model, and their names to outputs.json. It answers with one line: "done", or the kind of
the error and a text.
"""
import json
import os
import resource
import sys

sys.path.pop(0)  # this folder, whose modules must not hide others

import numpy as np  # noqa: E402  pylint: disable=wrong-import-position
import onnx  # noqa: E402  pylint: disable=wrong-import-position
import onnxruntime  # noqa: E402  pylint: disable=wrong-import-position
from onnxruntime.capi import onnxruntime_pybind11_state as errors  # noqa: E402  pylint: disable=wrong-import-position


def _session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = min(4, os.cpu_count() or 1)  # each thread uses address space
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _with_all_tensors(model, arrays):
    """The model with the inputs' shapes, and with all tensors as outputs."""
    proto = onnx.load_model_from_string(model)
    for value in proto.graph.input:
        if value.name in arrays:
            del value.type.tensor_type.shape.dim[:]
            for extent in arrays[value.name].shape:
                value.type.tensor_type.shape.dim.add().dim_value = extent
    shown = {value.name for value in proto.graph.output}
    for node in proto.graph.node:
        proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in node.output
                                  if name and name not in shown)
    del proto.graph.value_info[:]
    return proto.SerializeToString()


def _read(folder, name):
    return np.load(os.path.join(folder, name), allow_pickle=False)


def _run(folder):
    with open(os.path.join(folder, "model.onnx"), "rb") as file:
        model = file.read()
    with open(os.path.join(folder, "inputs.json"), encoding="utf-8") as file:
        inputs = {name: _read(folder, path) for name, path in json.load(file).items()}
    onnx.checker.check_model(model)
    session = _session(_with_all_tensors(model, inputs))
    names = [value.name for value in session.get_outputs()]
    files = {}
    for k, (name, array) in enumerate(zip(names, session.run(names, inputs))):
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise ValueError(f"tensor '{name}' is not an array of numbers")
        files[name] = f"output{k}.npy"
        np.save(os.path.join(folder, files[name]), array)
    with open(os.path.join(folder, "outputs.json"), "w", encoding="utf-8") as file:
        json.dump(files, file)


def _answer(folder):
    try:
        _run(folder)
        return "done"
    except onnx.checker.ValidationError as error:
        return f"invalid {error}"
    except errors.NotImplemented as error:
        return f"unknown {error}"
    except MemoryError:
        return "memory"
    except Exception as error:  # pylint: disable=broad-exception-caught
        return f"failed {error}"


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)  # keeps output of libraries apart from answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        folder, most = json.loads(line)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
        answers.write(_answer(folder).replace("\n", " ") + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

"""Stores models. protobuf serializes at most 2 GiB at once, so larger models keep their weights in a second file from the
start, and everything that reads such a model gets its path.

    with Storage("net.onnx") as storage:
        stored = storage.store(model, weights)
        stored.check()
        storage.publish(stored)
"""
import os
import shutil
import tempfile
from collections import OrderedDict

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LARGEST_MESSAGE = 2**31 - 2**20  # limit in bytes for a model in one file

_ALIGNMENT = 4096  # of weights in the second file: a page, so that runtimes can map them
_INLINE = 1024  # bytes; smaller tensors stay in the model, because shape inference reads them


class Stored:
    """model: the onnx.ModelProto. path: its file, with its weights in PATH.data; None if the weights are in the model itself."""

    def __init__(self, model, path=None):
        self.model, self.path = model, path

    @property
    def source(self):
        """The path or the model, whichever onnx and onnxruntime should read."""
        return self.path or self.model

    def check(self):
        """Raises onnx.checker.ValidationError if the model is not valid."""
        onnx.checker.check_model(self.source, full_check=True)

    def weights(self):
        """Arrays by name. Arrays in a second file are memory-mapped, not read."""
        return OrderedDict((tensor.name, self._array(tensor)) for tensor in self.model.graph.initializer)

    def _array(self, tensor):
        if tensor.data_location != TensorProto.EXTERNAL:
            return numpy_helper.to_array(tensor)
        offset = next(int(entry.value) for entry in tensor.external_data if entry.key == "offset")
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
        return np.memmap(_data(self.path), dtype, "r", offset, tuple(tensor.dims))

    def embed(self):
        """Moves the weights of the second file into the model."""
        weights = self.weights()
        for tensor in self.model.graph.initializer:
            if tensor.data_location == TensorProto.EXTERNAL:
                tensor.raw_data = weights[tensor.name].tobytes()
                tensor.ClearField("data_location")
                del tensor.external_data[:]
        self.path = None

    def discard(self):
        """Deletes the files."""
        if self.path is not None:
            shutil.rmtree(os.path.dirname(self.path))


class Storage:
    """Stores models to be published as `file`, or None. Large ones go to a folder next to it, which the context manager deletes."""

    def __init__(self, file):
        self.file = None if file is None else os.fspath(file)
        self._folder = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._folder is not None:
            self._folder.cleanup()

    def store(self, model, weights):
        """Adds weights, arrays by name, to a model without weights; returns a Stored."""
        if model.ByteSize() + sum(array.nbytes for array in weights.values()) < LARGEST_MESSAGE:
            model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
            return Stored(model)
        try:
            # Uses the final file name, because the model refers to the second file by name.
            path = os.path.join(tempfile.mkdtemp(dir=self._temporary()), os.path.basename(self.file or "model.onnx"))
            _write(model, weights, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.file and _data(self.file)) from None
        return Stored(model, path)

    def _temporary(self):
        if self._folder is None:
            if self.file is None:
                self._folder = tempfile.TemporaryDirectory(prefix="caffe_onnx_")
            else:
                folder, name = os.path.split(os.path.abspath(self.file))
                self._folder = tempfile.TemporaryDirectory(prefix=f"{name}.partial_", dir=folder)
        return self._folder.name

    def publish(self, stored):
        """Renames a stored model to its final name. If that fails, an earlier file of that name stays."""
        if stored.path is None:
            partial = f"{self.file}.partial"
            onnx.save_model(stored.model, partial)
            os.replace(partial, self.file)
        else:
            self._publish_both(stored.path)

    def _publish_both(self, path):
        """Renames both files. An old and a new file never coexist under these names: a missing file is an error, but a mixture would
        give wrong numbers."""
        pairs = [(_data(path), _data(self.file)), (path, self.file)]
        old = [(name, f"{new}.old") for new, name in pairs if os.path.lexists(_data(self.file)) and os.path.lexists(name)]
        moves = old + pairs
        done = []
        try:
            for source, target in moves:
                os.replace(source, target)
                done.append((source, target))
        except BaseException:
            for source, target in reversed(done):
                os.replace(target, source)
            raise


def stored_model(model):
    """The Stored of an onnx.ModelProto, or of a file that export() has written."""
    if not isinstance(model, (str, os.PathLike)):
        return Stored(model)
    model = os.fspath(model)
    proto = onnx.load(model, load_external_data=False)
    is_large = any(tensor.data_location == TensorProto.EXTERNAL for tensor in proto.graph.initializer)
    return Stored(proto, model if is_large else None)


def _data(path):
    return f"{path}.data"


def _write(model, weights, path):
    """Writes the model, and its weights one after another to the second file, without copying them in memory."""
    with open(_data(path), "wb") as stream:
        for name, array in weights.items():
            if array.nbytes < _INLINE:
                model.graph.initializer.append(numpy_helper.from_array(array, name))
                continue
            stream.seek(-stream.tell() % _ALIGNMENT, os.SEEK_CUR)
            tensor = model.graph.initializer.add(name=name, dims=array.shape, data_location=TensorProto.EXTERNAL,
                                                 data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
            for key, value in (("location", os.path.basename(_data(path))), ("offset", stream.tell()), ("length", array.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            stream.write(little.reshape(-1).view(np.uint8))
    with open(path, "wb") as stream:
        stream.write(model.SerializeToString())

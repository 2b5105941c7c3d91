"""Hundreds of invalid calls in one process: each raises an exception with a text, and nets continue to work."""
import os
import subprocess
import sys
import threading

import caffe
import numpy as np
import pytest
from caffe.proto import caffe_pb2

from built_package import PACKAGE, SIMPLE


def wrong_values():
    """Values that are not valid inputs of shape (5, 2, 6, 7)."""
    good = np.zeros((5, 2, 6, 7), np.float32)
    return [None, "text", b"bytes", object(), {}, {"a": 1}, set(), [], 3, np.nan, good[:4], good[0], good[:, :1, :5],
            good[..., :6], good.reshape(5, 84), good.astype(complex), good.astype(object), good.astype("U3"),
            np.zeros(5, "datetime64[s]"), np.zeros(5, [("a", "f4")]), [[1], [2, 3]], lambda: 0, np.zeros((0, 2, 6, 7))]


def calls(net, file, folder):
    """(name, function) pairs; all calls are invalid."""
    label = np.zeros(5)
    for value in wrong_values():
        yield f"forward(data={value!r:.20})", lambda value=value: net.forward(data=value, label=label)
        yield f"forward_all(data={value!r:.20})", lambda value=value: net.forward_all(data=value, label=label)
        yield f"set_input_arrays({value!r:.20})", lambda value=value: net.set_input_arrays(value, value)
        yield f"backward(loss={value!r:.20})", lambda value=value: net.backward(
            loss=[1, 2] if isinstance(value, (int, float)) or value is None else value)
    for name in ("no", "", None, 3, b"data", ("data",)):
        if name is not None:
            yield f"blobs[{name!r}]", lambda name=name: net.blobs[name]
            yield f"forward(start={name!r})", lambda name=name: net.forward(start=name)
            yield f"forward(end={name!r})", lambda name=name: net.forward(end=name)
            yield f"backward(start={name!r})", lambda name=name: net.backward(start=name)
            yield f"backward(end={name!r})", lambda name=name: net.backward(end=name)
            yield f"forward([{name!r}])", lambda name=name: net.forward([name])
            yield f"backward([{name!r}])", lambda name=name: net.backward([name])
        yield f"params[{name!r}]", lambda name=name: net.params[name]
        yield f"before_forward({name!r})", lambda name=name: net.before_forward(name)
        yield f"share_with({name!r})", lambda name=name: net.share_with(name)
    for bounds in ((-1, 2), (0, 6), (3, 99), ("a", 2), (0, None), (1 << 40, 1), ()):
        yield f"_forward{bounds}", lambda bounds=bounds: net._forward(*bounds)
        yield f"_backward{bounds}", lambda bounds=bounds: net._backward(*reversed(bounds))
    yield "_top_ids(-1)", lambda: net._top_ids(-1)
    yield "_bottom_ids(6)", lambda: net._bottom_ids(6)
    yield "forward(data)", lambda: net.forward(data=np.zeros((5, 2, 6, 7)))
    yield "forward(more)", lambda: net.forward(data=0, label=0, more=0)
    yield "backward(other)", lambda: net.backward(ip=np.zeros((5, 4)))
    yield "forward_all()", lambda: net.forward_all()
    yield "forward_all(counts)", lambda: net.forward_all(data=np.zeros((5, 2, 6, 7)), label=np.zeros(4))
    yield "forward_backward_all(unknown)", lambda: net.forward_backward_all(dta=np.zeros((5, 2, 6, 7)))
    kinds = {"missing": None, "empty": b"", "noise": bytes(range(256)) * 9, "png": b"\x89PNG\r\n\x1a\n" + bytes(99),
             "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(99), "text": SIMPLE.encode(), "folder": folder}
    for kind, content in kinds.items():
        for suffix in ("", ".h5"):
            path = folder / (kind + suffix)
            if kind == "folder":
                path = folder
            elif content is not None:
                path.write_bytes(content)
            yield f"copy_from({kind}{suffix})", lambda path=path: net.copy_from(path)
            yield f"load_hdf5({kind}{suffix})", lambda path=path: net.load_hdf5(str(path))
            yield f"Net(weights={kind}{suffix})", lambda path=path: caffe.Net(file, caffe.TEST, weights=str(path))
            yield f"get_solver({kind}{suffix})", lambda path=path: caffe.get_solver(str(path))
            if kind not in ("text", "empty"):  # a net without layers is valid
                yield f"Net({kind}{suffix})", lambda path=path: caffe.Net(str(path), caffe.TEST)
    for target in (folder, folder / "no" / "such", "/proc/nothing", 3.5, None):
        yield f"save({target})", lambda target=target: net.save(target)
        yield f"save_hdf5({target})", lambda target=target: net.save_hdf5(target)
    for arguments in ((), (file,), (file, 9), (file, -1), (file, "TEST"), (None, 1), (3, 1), (file, 1, "level"),
                      (file, 1, 0, "stage"), (file, 1, 0, [3]), (file, 1, 0, None, 7), (file, file, 1),
                      (caffe_pb2.SolverParameter(), 1), (b"\xff\xfe", 1)):
        yield f"Net{arguments!r:.40}", lambda arguments=arguments: caffe.Net(*arguments)
    yield "Net(unknown=)", lambda: caffe.Net(file, caffe.TEST, unknown=3)
    blob = net.blobs["ip"]
    for shape in ((-1,), ("a",), (1.5,), (1 << 31,), (2,) * 33, (None,), ((1, 2), 3)):
        yield f"reshape{shape}", lambda shape=shape: blob.reshape(*shape)
    for index in (9, -9, "a", None, 1.5):
        yield f"params[{index!r}]", lambda index=index: net.params["ip"][index]
    yield "params = ", lambda: setattr(net, "params", {})
    yield "blobs = ", lambda: setattr(net, "blobs", {})
    yield "shape = ", lambda: setattr(blob, "shape", (1,))
    yield "data = text", lambda: setattr(blob, "data", "x")
    yield "data = shape", lambda: setattr(blob, "data", np.zeros((9, 9)))
    yield "data[...] = shape", lambda: blob.data.__setitem__(Ellipsis, np.zeros(3))
    yield "params[0] = ", lambda: net.params["ip"].__setitem__(0, 1)
    yield "Blob(-1)", lambda: caffe.Blob(-1)
    yield "BlobVec()", lambda: caffe.BlobVec()
    yield "Layer()", lambda: caffe.Layer()
    yield "Layer(3)", lambda: caffe.Layer(3)
    for name in caffe.solver_type_list():
        yield f"{name}Solver(none)", lambda name=name: getattr(caffe, name + "Solver")(str(folder / "none"))
        yield f"{name}Solver()", lambda name=name: getattr(caffe, name + "Solver")()
    yield "get_solver(net)", lambda: caffe.get_solver(file)
    yield "get_solver(None)", lambda: caffe.get_solver(None)
    yield "train(None)", lambda: caffe.train(None)
    yield "NCCL()", lambda: caffe.NCCL(None, b"")
    yield "new_uid()", lambda: caffe.NCCL.new_uid()
    yield "set_device(-1)", lambda: caffe.set_device(-1)
    yield "set_device(a)", lambda: caffe.set_device("a")
    yield "set_max_decoded_mb(0)", lambda: caffe.set_max_decoded_mb(0)
    yield "set_max_decoded_mb(a)", lambda: caffe.set_max_decoded_mb("a")
    yield "set_random_seed(-1)", lambda: caffe.set_random_seed(-1)
    yield "set_random_seed(a)", lambda: caffe.set_random_seed(1.5)
    yield "set_solver_count(0)", lambda: caffe.set_solver_count(0)
    yield "set_solver_rank(-1)", lambda: caffe.set_solver_rank(-1)
    yield "init_log(9)", lambda: caffe.init_log(9)
    yield "Classifier", lambda: caffe.Classifier(file, str(folder / "none"))
    yield "Detector", lambda: caffe.Detector(file, str(folder / "none"))
    yield "load_image", lambda: caffe.io.load_image(folder)
    yield "Timer(3)", lambda: caffe.Timer(3)


def test_wrong_calls_raise_and_nothing_breaks(simple, write, tmp_path):
    file = write(SIMPLE, "again.prototxt")
    folder = tmp_path / "files"
    folder.mkdir()
    before = simple.forward(["ip"])["ip"].copy()
    data = simple.blobs["data"].data.copy()
    count, silent = 0, []
    for name, call in calls(simple, file, folder):
        count += 1
        try:
            call()
        except Exception as error:  # any exception is fine if it has a text
            if not str(error).strip() or isinstance(error, (SystemError, caffe.InternalError)):
                silent.append(f"{name}: {type(error).__name__} {error}")
        else:
            silent.append(f"{name} raised nothing")
    assert count >= 200 and silent == []
    simple.blobs["data"].data[...] = data
    assert (simple.forward(["ip"])["ip"] == before).all()


def test_wrong_nets_and_solvers_raise(write):
    net = write(SIMPLE.replace("'Input' top: 'data'", "'DummyData' top: 'data'"))
    for text in ("layer { name: 'a' type: 'No' }", "layer { name: 'a' type: 'ReLU' bottom: 'none' top: 'b' }",
                 "layer {", "layer { name: 'a' type: 'Data' top: 'x' data_param { source: 'none' batch_size: 1 } }",
                 "layer { name: 'a' type: 'ImageData' top: 'x' top: 'y' image_data_param { source: 'none' } }",
                 "layer { name: 'a' type: 'HDF5Data' top: 'x' hdf5_data_param { source: 'none' batch_size: 1 } }",
                 "layer { name: 'a' type: 'Input' top: 'a' input_param { shape { dim: -1 } } }",
                 "input: 'a' input_dim: 1", "nam: 'x'"):
        with pytest.raises(caffe.Error, match="."):
            caffe.Net(write(text, "wrong.prototxt"), caffe.TEST)
    for text in ("", f"net: '{net}'", f"net: '{net}x' lr_policy: 'fixed' base_lr: 1",
                 f"net: '{net}' lr_policy: 'no' base_lr: 1", f"net: '{net}' lr_policy: 'fixed' base_lr: 1 iter_size: 0",
                 f"net: '{net}' train_net: '{net}' lr_policy: 'fixed' base_lr: 1", "ne: 'x'"):
        with pytest.raises(caffe.Error, match="."):
            caffe.get_solver(write(text, "wrong_solver.prototxt")).solve()


def test_many_threads_on_one_net_raise_or_work(simple):
    answers = []

    def work():
        for _ in range(50):
            try:
                simple.forward()
                simple.blobs["ip"].data.sum()
                answers.append(True)
            except caffe.InvalidArgument as error:
                answers.append("running in another thread" in str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(answers) == 200 and all(answers)


def test_gpu_mode_says_that_there_is_none(simple, write):
    with pytest.raises((caffe.Unsupported, caffe.DeviceError), match="caffe.set_mode_cpu|driver|device"):
        caffe.set_mode_gpu()
    with pytest.raises((caffe.Unsupported, caffe.DeviceError), match="caffe.set_mode_cpu|driver|device"):
        caffe.set_device(0)
    caffe.Net(write(SIMPLE), caffe.TEST)


NONE_AS_SELF = r"""
import faulthandler, inspect, os, sys
import caffe
faulthandler.enable()
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
SPECIAL = ("__len__", "__iter__", "__getitem__", "__repr__", "__array__", "__dlpack__", "__call__")
count = 0
for name in sorted(dir(caffe)):
    kind = getattr(caffe, name)
    if not inspect.isclass(kind):
        continue
    unmade = []

    class Kept(kind):
        def __init__(self):
            unmade.append(self)
            super().__init__("missing.prototxt", *([caffe.TEST] if kind is caffe.Net else []))

    if kind is caffe.Net or issubclass(kind, caffe.Solver):
        try:
            Kept()
        except Exception:
            pass
        assert "not made" in repr(unmade[0])
    for part in sorted(dir(kind)):
        member = getattr(kind, part, None)
        if part.startswith("__") and part not in SPECIAL:
            continue
        if isinstance(member, property):
            calls = [lambda: member.fget(None)] + ([lambda: member.fset(None, 1)] if member.fset else [])
        elif callable(member):
            calls = [lambda more=more: member(None, *more) for more in ((), (0,), (0, 0), (None,), ("x",))]
        else:
            continue
        for call in calls:
            count += 1
            print(f"{name}.{part}", file=sys.stderr, flush=True)
            try:
                call()
            except BaseException:
                pass
        for one in unmade:
            try:
                getattr(one, part)
                raise SystemExit(f"an object that was not made has {part}")
            except RuntimeError:
                pass
print(count, "calls", file=sys.stderr)
"""


def test_members_of_none_and_of_objects_that_were_not_made(tmp_path):
    """77 of these calls once ended the interpreter."""
    done = subprocess.run([sys.executable, "-c", NONE_AS_SELF], cwd=tmp_path, text=True, check=False, stderr=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 0, done.stderr[-600:]
    assert int(done.stderr.split()[-2]) > 1500


def test_an_error_whose_text_is_not_utf8_keeps_its_text(tmp_path):
    """The list names a missing file in Latin-1; in Python the error once had no text at all."""
    (tmp_path / "list").write_bytes(b"%s/caf\xe9.jpg 0\n" % str(tmp_path).encode())
    net = tmp_path / "net.prototxt"
    net.write_text('layer { name: "d" type: "ImageData" top: "data" top: "label" '
                   'image_data_param { source: "%s/list" batch_size: 1 } }' % tmp_path)
    with pytest.raises(caffe.Error, match="caf\ufffd.jpg"):
        caffe.Net(str(net), caffe.TRAIN).forward()


@pytest.mark.parametrize("call", [
    "caffe.Net.__new__(caffe.Net).name", "caffe.Net.__new__(caffe.Net).forward()", "repr(caffe.Net.__new__(caffe.Net))",
    "caffe.Net.blobs.__get__(caffe.Net.__new__(caffe.Net))", "caffe.SGDSolver.__new__(caffe.SGDSolver).net", "caffe._caffe.Timer.__new__(caffe._caffe.Timer).start()",
    "caffe._caffe.Blob.__new__(caffe._caffe.Blob).data", "numpy.asarray(caffe._caffe.Blob.__new__(caffe._caffe.Blob))",
    "repr(caffe._caffe.BlobVec.__new__(caffe._caffe.BlobVec))", "len(caffe._caffe.BlobVec.__new__(caffe._caffe.BlobVec))",
    "caffe.Layer.__new__(caffe.Layer).blobs", "caffe._caffe.PlanStep.__new__(caffe._caffe.PlanStep).layers", "caffe._caffe.Blob.reshape(caffe._caffe.Blob.__new__(caffe._caffe.Blob), 1)"])
def test_objects_without_construction_are_refused(call):
    """The interpreter once ended: pybind11 passes memory that was never initialised."""
    script = f"import caffe, numpy\ntry:\n    {call}\nexcept TypeError as error:\n    assert '__init__' in str(error), error\n    print('refused')"
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.stdout == "refused\n", (done.returncode, done.stderr[-500:])

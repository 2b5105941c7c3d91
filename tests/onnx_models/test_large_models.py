"""Models whose weights do not fit into one protobuf message."""
import errno
import os
import shutil
import subprocess
import sys

import caffe
import caffe.onnx
import nets
import numpy as np
import onnx
import onnxruntime
import pytest
from caffe.calibration import calibrate
from caffe.onnx import registry, storing
from caffe.onnx.__main__ import main
from onnx import TensorProto, numpy_helper

SHAPE = (2, 40)
PRODUCTS = """
layer { name: 'fc' type: 'InnerProduct' bottom: 'x0' top: 'fc' inner_product_param { num_output: 50 } }
layer { name: 'relu' type: 'ReLU' bottom: 'fc' top: 'fc' }
layer { name: 'out' type: 'InnerProduct' bottom: 'fc' top: 'out' inner_product_param { num_output: 30 } }"""


@pytest.fixture(autouse=True)
def _small_messages(monkeypatch):
    monkeypatch.setattr(storing, "LARGEST_MESSAGE", 2000)


@pytest.fixture(name="net")
def fixture_net():
    return nets.draw_weights(nets.net_with([SHAPE], PRODUCTS))


def _contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _external(model):
    return [tensor for tensor in model.graph.initializer if tensor.data_location == TensorProto.EXTERNAL]


def _some_data():
    return {"x0": np.random.default_rng(2).uniform(-1, 1, SHAPE).astype(np.float32)}


def test_no_message_holds_the_weights(net, tmp_path, monkeypatch):
    """Each of these calls would serialise the weights."""
    def watch(module, name, check):
        original = getattr(module, name)

        def watched(first, *arguments, **options):
            check(first)
            return original(first, *arguments, **options)
        monkeypatch.setattr(module, name, watched)

    def require_path(model):
        assert isinstance(model, str) and os.path.getsize(model) < 2000

    def require_small(array):
        assert array.nbytes < 2000

    watch(onnx.checker, "check_model", require_path)
    watch(onnxruntime, "InferenceSession", require_path)
    watch(numpy_helper, "from_array", require_small)
    report = caffe.onnx.export(net, tmp_path / "net.onnx", check=True)
    assert report.differences["out"] < 1e-5
    assert report.model.ByteSize() < 2000 and len(_external(report.model)) == 2


def test_weights_lie_on_pages_and_are_those_of_the_net(net, tmp_path):
    caffe.onnx.export(net, tmp_path / "net.onnx", check=False)
    model = onnx.load(tmp_path / "net.onnx", load_external_data=False)
    for tensor in _external(model):
        entries = {entry.key: entry.value for entry in tensor.external_data}
        assert entries["location"] == "net.onnx.data" and int(entries["offset"]) % 4096 == 0
    x = _some_data()
    got = caffe.onnx.run(tmp_path / "net.onnx", x)["out"]
    np.testing.assert_allclose(got, net.forward(**x)["out"], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(caffe.onnx.run(onnx.load(tmp_path / "net.onnx"), x)["out"], got)


def test_a_model_without_a_file_holds_its_weights(net):
    report = caffe.onnx.export(net, check=True)
    assert not _external(report.model)
    x = _some_data()
    np.testing.assert_allclose(caffe.onnx.run(report.model, x)["out"], net.forward(**x)["out"], rtol=1e-5, atol=1e-5)


def test_a_second_export_replaces_both_files(net, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caffe.onnx.export(net, "net.onnx")
    old = _contents(tmp_path)
    net.params["fc"][0].data[...] *= -1
    caffe.onnx.export(net, "net.onnx")
    new = _contents(tmp_path)
    assert sorted(new) == ["net.onnx", "net.onnx.data"] and new["net.onnx.data"] != old["net.onnx.data"]
    x = _some_data()
    np.testing.assert_allclose(caffe.onnx.run(tmp_path / "net.onnx", x)["out"], net.forward(**x)["out"], rtol=1e-5, atol=1e-5)


def test_a_failed_check_leaves_the_old_files(net, tmp_path, monkeypatch):
    caffe.onnx.export(net, tmp_path / "net.onnx")
    old = _contents(tmp_path)
    monkeypatch.setitem(registry._WRITERS, "ReLU", lambda layer, graph: graph.op("Abs", layer.bottom))
    with pytest.raises(caffe.onnx.Mismatch):
        caffe.onnx.export(net, tmp_path / "net.onnx", check=True)
    assert _contents(tmp_path) == old


@pytest.mark.parametrize("has_old, call", [(False, 0), (False, 1), (True, 0), (True, 1), (True, 2), (True, 3)])
def test_names_that_cannot_be_changed_leave_the_old_files(net, tmp_path, monkeypatch, has_old, call):
    """call: the number of the rename that fails."""
    if has_old:
        caffe.onnx.export(net, tmp_path / "net.onnx")
    old = _contents(tmp_path)
    net.params["fc"][0].data[...] *= -1
    replace, calls = os.replace, []

    def fail_once(source, target):
        calls.append(target)
        if len(calls) == call + 1:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), source)
        replace(source, target)
        if len(calls) <= call:  # never one new and one old file
            names = {path.name for path in tmp_path.iterdir() if path.is_file()}
            assert not has_old or names in ({"net.onnx"}, set(), {"net.onnx.data"})
    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises(OSError):
        caffe.onnx.export(net, tmp_path / "net.onnx", check=False)
    assert _contents(tmp_path) == old


def test_a_full_disk_is_told_by_the_name_of_the_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "net.prototxt").write_text(str(nets.net_with([SHAPE], PRODUCTS).definition))

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(storing, "_write", fail)
    assert main(["export", str(tmp_path / "net.prototxt"), "-o", str(tmp_path / "net.onnx"), "--no-check"]) == 1
    assert capsys.readouterr().err == f"caffe export: {tmp_path}/net.onnx.data: No space left on device\n"
    assert sorted(_contents(tmp_path)) == ["net.prototxt"]


def test_8_bits(net, tmp_path, monkeypatch):
    generator = np.random.default_rng(3)

    def feed(net):
        net.blobs["x0"].data[...] = generator.uniform(-1, 1, SHAPE)
    calibration = calibrate(net, 20, method="min-max", feed=feed)
    report = caffe.onnx.export(net, tmp_path / "net.onnx", int8=calibration, inputs=_some_data(), find_sensitive=True)
    assert report.int8 == ["fc", "out"] and set(report.sensitivity) == {"fc", "out"}
    assert sorted(_contents(tmp_path)) == ["net.onnx", "net.onnx.data"]
    monkeypatch.setattr(storing, "LARGEST_MESSAGE", 1 << 20)
    small = caffe.onnx.export(net, int8=calibration, inputs=_some_data(), find_sensitive=True)
    large = onnx.load(tmp_path / "net.onnx")
    assert large.graph.node == small.model.graph.node
    for ours, theirs in zip(large.graph.initializer, small.model.graph.initializer, strict=True):
        assert (ours.name, ours.data_type, ours.dims, ours.raw_data) == (theirs.name, theirs.data_type, theirs.dims, theirs.raw_data)
    assert report.sensitivity == pytest.approx(small.sensitivity)


def test_the_nets_own_weights_stay_writable(net):
    before = net.params["fc"][0].data.copy()
    caffe.onnx.export(net, check=True)
    np.testing.assert_array_equal(net.params["fc"][0].data, before)
    net.params["fc"][0].data[...] = 1


BIG = """name: "big"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 25000 } } }
layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc"
        inner_product_param { num_output: 25000 weight_filler { type: "xavier" } } }
layer { name: "out" type: "InnerProduct" bottom: "fc" top: "out"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
BIG_BYTES = 25000 * 25000 * 4


@pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ, reason="slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
def test_a_model_beyond_2_gib(tmp_path):
    """Uses little more memory than building its net, which takes twice the weights."""
    if shutil.disk_usage(tmp_path).free < 3 * BIG_BYTES or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") < 3 * BIG_BYTES:
        pytest.skip(f"needs {3 * BIG_BYTES >> 30} GiB of disk and of memory")
    (tmp_path / "net.prototxt").write_text(BIG)
    code = ("import resource, sys; from caffe.onnx.__main__ import main; "
            f"resource.setrlimit(resource.RLIMIT_DATA, ({BIG_BYTES * 12 // 5},) * 2); sys.exit(main(sys.argv[1:]))")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        for check in ("--check", "--no-check"):  # the second one replaces the files
            done = subprocess.run([sys.executable, "-c", code, "export", "net.prototxt", "-o", "net.onnx", check], cwd=tmp_path,
                                  capture_output=True, text=True, env=environment, check=False)
            assert done.returncode == 0, done.stderr
            assert ("largest difference" in done.stdout) == (check == "--check")
            assert sorted(path.name for path in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data", "net.prototxt"]
            assert (tmp_path / "net.onnx.data").stat().st_size > BIG_BYTES
        x = np.random.default_rng(1).uniform(-1, 1, (1, 25000)).astype(np.float32)
        assert np.isfinite(caffe.onnx.run(tmp_path / "net.onnx", {"data": x})["out"]).all()
    finally:
        for name in ("net.onnx", "net.onnx.data"):
            (tmp_path / name).unlink(missing_ok=True)

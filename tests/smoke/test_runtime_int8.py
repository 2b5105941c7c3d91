"""Programs in 8 bits: the same numbers with oneDNN, with loops instead of it and on another processor, whichever compiled them."""
import os
import subprocess

import numpy as np
import pytest
from programs import BINARIES, ROOT
from google.protobuf import text_format
from test_runtime import arm, fill_statistics, largest_difference, outputs_of, portable, run  # noqa: F401

import caffe
from caffe.calibration import calibrate

NETS = ["cifar10_resnet20", "mobilenet_v2"]
OLD = {"ONEDNN_MAX_CPU_ISA": "AVX2"}  # no instructions for 8-bit products


def without_softmax(text):
    """Random weights give scores so large that softmax would turn them all into 0 and 1."""
    net = text_format.Parse(text, caffe.proto.caffe_pb2.NetParameter())
    assert net.layer[-1].type == "Softmax"
    del net.layer[-1]
    return text_format.MessageToString(net)


@pytest.fixture(scope="module", params=NETS)
def compiled(request, tmp_path_factory):
    """A folder with a program and its input, and the results of the float net and the 8-bit net for it."""
    folder = tmp_path_factory.mktemp(request.param)
    caffe.set_random_seed(1)
    model = folder / "deploy.prototxt"
    model.write_text(without_softmax((ROOT / "models" / request.param / "deploy.prototxt").read_text()))
    net = caffe.Net(str(model), caffe.TEST)
    fill_statistics(net)
    weights, ranges = folder / "net.caffemodel", folder / "net.json"
    net.save(str(weights))
    name = net.inputs[0]
    image = np.random.default_rng(1).normal(0, 1, net.blobs[name].data.shape).astype(np.float32)

    def feed(one):
        one.blobs[one.inputs[0]].data[...] = image

    calibrate(net, -(-32 // len(image)), method="min-max", feed=feed).save(str(ranges))
    image.tofile(folder / "input.raw")
    outputs = {}
    for precision, options in (("fp32", {}), ("int8", {"calibration": str(ranges)})):
        one = caffe.Net(str(model), caffe.TEST, weights=str(weights), precision=precision, keep_all=False, **options)
        feed(one)
        outputs[precision] = {blob: values.copy() for blob, values in one.forward().items()}
        one.save_program(str(folder / f"{precision}.cortado"))
        if precision == "int8" and not any("int8" in step.kernel for step in one.plan().steps):
            outputs[precision] = None  # this processor computes the net in float
    return folder, model, outputs


def agree(found, outputs):
    """If float rounding errors decide which 8-bit number is nearest, results differ by a step."""
    if outputs["int8"] is not None:
        assert largest_difference(found, outputs["int8"]) < 0.02
    assert 0 < largest_difference(found, outputs["fp32"]) < 0.2


def test_the_file_takes_a_quarter(compiled):
    folder, _, _ = compiled
    sizes = [(folder / f"{precision}.cortado").stat().st_size for precision in ("int8", "fp32")]
    assert sizes[0] < 0.33 * sizes[1]


def test_the_builds_own_library_computes_the_same(compiled):
    folder, _, outputs = compiled
    found = outputs_of(BINARIES / "cortado_run", folder / "int8.cortado", folder / "input.raw")
    if outputs["int8"] is not None:
        assert largest_difference(found, outputs["int8"]) < 1e-6
    agree(found, outputs)


def test_processors_without_such_instructions_run_it(compiled):
    folder, _, outputs = compiled
    result = subprocess.run([BINARIES / "cortado_run", folder / "int8.cortado", folder / "input.raw"], capture_output=True,
                            text=True, check=True, env={**os.environ, **OLD})
    values = np.array([float(line) for line in result.stdout.splitlines()[1:]])
    name = next(iter(outputs["fp32"]))
    agree({name: values.reshape(outputs["fp32"][name].shape)}, outputs)


@pytest.mark.parametrize("environment", [{}, OLD], ids=["here", "old"])
def test_every_processor_compiles_the_same_file(compiled, environment, tmp_path):
    folder, model, _ = compiled
    subprocess.run([BINARIES / "caffe", "compile", model, f"--weights={folder / 'net.caffemodel'}",
                    f"--output={tmp_path / 'net.cortado'}", "--precision=int8", f"--calibration={folder / 'net.json'}"],
                   check=True, capture_output=True, env={**os.environ, **environment})
    assert (tmp_path / "net.cortado").read_bytes() == (folder / "int8.cortado").read_bytes()


def test_loops_compute_the_same(portable, compiled):  # noqa: F811
    folder, _, outputs = compiled
    agree(outputs_of(portable / "cortado_run", folder / "int8.cortado", folder / "input.raw"), outputs)


def test_another_processor_computes_the_same(arm, compiled):  # noqa: F811
    folder, _, outputs = compiled
    if "cifar10" not in str(folder) and not os.environ.get("CAFFE_SLOW_TESTS"):
        pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
    agree(outputs_of("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", arm / "cortado_run", folder / "int8.cortado",
                     folder / "input.raw"), outputs)


def test_the_calibration_is_asked_for():
    result = subprocess.run([BINARIES / "caffe", "compile", ROOT / "models/cifar10_resnet20/deploy.prototxt",
                             f"--weights={ROOT / 'models/cifar10_resnet20/cifar10_resnet20.caffemodel'}", "--output=none",
                             "--precision=int8"], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "which needs the ranges of the net's blobs" in result.stderr

"""Random nets of the compiler's fuzzer: an exported net computes the same, and so does its re-imported model; all others are
refused by name.

CAFFE_SLOW_TESTS=1 takes 1,000.
"""
import os
import re
import subprocess

import caffe
import caffe.onnx
import nets
import numpy as np

COUNT = 1000 if os.environ.get("CAFFE_SLOW_TESTS") else 60
PROGRAM = os.path.join(os.environ.get("CAFFE_BINARY_DIR", nets.ROOT / "build" / "cpu-release"), "bin", "dag_fuzz")


def _net_of(seed):
    return nets.net_of(subprocess.run([PROGRAM, "--print", str(seed)], capture_output=True, text=True, check=True).stdout)


def _differs(net, blobs, differences):
    """The outputs that differ. An output that is small relative to the blobs may be the rounding error of a sum that is 0."""
    net.forward()
    largest = max(np.abs(blob.data[np.isfinite(blob.data)]).max(initial=0) for blob in net.blobs.values())
    return {name: number for name, number in differences.items() if not number <= 1e-4
            and np.abs(np.nan_to_num(net.blobs[blobs[name]].data)).max(initial=0) > 1e-5 * largest}


def test_random_nets():
    exported, imported, chosen, refused = 0, 0, 0, set()
    for seed in range(1, COUNT + 1):
        try:
            net = _net_of(seed)
        except caffe.Error:
            continue  # the fuzzer also draws nets that are refused
        try:
            report = caffe.onnx.export(net, opset=nets.OPSETS[seed % 4], check=True, tolerance=np.inf)
        except caffe.Unsupported as error:
            refused |= set(re.findall(r"layer '[^']*' \((\w+)\)(?=;|$)", str(error)))
            continue
        except caffe.InvalidArgument as error:
            assert isinstance(error, caffe.onnx.NotComputed) or "no layer is left" in str(error), seed
            continue
        assert not _differs(net, report.blobs, report.differences), seed
        exported += 1
        try:
            again = caffe.onnx.import_model(report.model, tolerance=np.inf)
        except caffe.Unsupported as error:
            assert "NonZero" in str(error), seed  # items chosen by the data
            chosen += 1
            continue
        assert not _differs(again.net, {name: name for name in report.outputs}, again.differences), seed
        imported += 1
    print(f"{exported} nets exported, {imported} imported")
    assert exported >= 0.9 * COUNT and imported == exported - chosen
    assert not refused & set(caffe.onnx.exported_types())

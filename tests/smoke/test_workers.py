"""`caffe train -workers N`: several copies of a net train as one, on a real database."""
import json
import re
import struct

import pytest

from programs import BINARIES, PACKAGE

NET = """
name: "workers"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.0039 mirror: true crop_size: 10 }
  data_param { source: "%s" batch_size: %d backend: LMDB }
}
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
%s
layer {
  name: "ip" type: "InnerProduct" bottom: "%s" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def hidden(layers):
    """The text of this many hidden layers, and the last one's name."""
    text, bottom = [], "conv"
    for i in range(layers):
        text.append(f'layer {{ name: "hidden{i}" type: "InnerProduct" bottom: "{bottom}" top: "hidden{i}" '
                    'inner_product_param { num_output: 300 weight_filler { type: "xavier" } } }')
        bottom = f"hidden{i}"
    return "\n".join(text), bottom


def fields(message):
    """(number, wire type, value) of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = message[at:at + size]
            at += size
        yield number, kind, value


def weights(path):
    """All parameters in a .caffemodel: NetParameter.layer.blobs.data, or double_data."""
    values = []
    for number, _, layer in fields(path.read_bytes()):
        for inner, _, blob in fields(layer) if number == 100 else ():
            for field, kind, data in fields(blob) if inner == 7 else ():
                if kind == 2 and field in (5, 8):
                    size, code = (4, "f") if field == 5 else (8, "d")
                    values += struct.unpack(f"<{len(data) // size}{code}", data)
    assert values
    return values


def test_equals_one_worker_with_the_joined_batch(tmp_path, program, run, database, solver):
    caffe = program("caffe")
    for precision, bound in (("FP64", 1e-12), ("FP32", 1e-5)):
        results = {}
        for workers in (1, 2, 4):
            net = tmp_path / f"net{workers}.prototxt"
            net.write_text(NET % (database, 16 // workers, "", "conv"))
            name = f"{precision}{workers}"
            path = solver(name, max_iter=50, precision=precision, net=f'"{net}"')
            done = run(caffe, "train", f"--solver={path}", f"--workers={workers}")
            assert done.returncode == 0, done.stderr
            assert workers == 1 or "batch_size is that of each of them" in done.stderr
            results[workers] = weights(tmp_path / f"{name}_iter_50.caffemodel")
        largest = max(map(abs, results[1]))
        for workers in (2, 4):
            assert len(results[workers]) == len(results[1])
            difference = max(abs(a - b) for a, b in zip(results[1], results[workers]))
            assert difference <= bound * largest, (precision, workers, difference, largest)


def test_repeats_and_resumes_in_the_same_bytes(tmp_path, program, run, solver):
    """With shuffling, dropout and momentum, as for one worker."""
    caffe = program("caffe")

    def train(name, iterations, *arguments):
        path = solver(name, max_iter=iterations)
        done = run(caffe, "train", f"--solver={path}", "--workers=2", *arguments)
        assert done.returncode == 0, done.stderr
        assert "batch_size is that of all of them together, as in NVCaffe" in done.stderr
        assert done.stderr.count("] Optimization Done.") == 1
        return (tmp_path / f"{name}_iter_{iterations}.caffemodel").read_bytes()

    whole = train("whole", 60)
    assert train("again", 60) == whole
    train("first", 30)
    assert train("second", 60, f"--snapshot={tmp_path}/first_iter_30.solverstate") == whole


def test_a_trace_shows_reduction_and_update_during_backward(tmp_path, program, run, database, solver):
    net = tmp_path / "net.prototxt"
    net.write_text(NET % (database, 128, *hidden(8)))  # enough work to be visible even on a busy machine
    path = solver("traced", max_iter=30, net=f'"{net}"')
    done = run(program("caffe"), "train", f"--solver={path}", "--workers=2", f"--trace={tmp_path}/trace.json")
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted((pid, name) for (pid, _), name in rows.items()) == [
        (0, "compute"), (0, "reduction"), (1, "compute"), (1, "reduction")]

    def spans(rank, row, start):
        return [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and e["name"].startswith(start)
                and (e["pid"], rows[e["pid"], e["tid"]]) == (rank, row)]

    for rank in (0, 1):
        for name in ("forward", "backward", "wait for data", "wait for reduction"):
            assert len(spans(rank, "compute", name)) == 30, name
        for name in ("conv", "hidden3"):
            assert len(spans(rank, "compute", name)) >= 60, f"steps of layer {name}"
        backward, reductions = spans(rank, "compute", "backward"), spans(rank, "reduction", "reduce bucket")
        assert len(reductions) >= 4 * 30
        during = [r for r in reductions if any(b[0] < r[0] < b[1] for b in backward)]
        assert during, "no bucket's reduction began while backward went on"
        beneath, after = spans(rank, "reduction", "update bucket"), spans(rank, "compute", "update bucket")
        # Not all: the computing thread may be interrupted between the end of backward and the end of updates.
        assert any(b[0] < u[0] < b[1] for b in backward for u in beneath), "no bucket was updated while backward went on"
        buckets = len({e["name"] for e in events if e["name"].startswith("update bucket")})
        assert buckets >= 4 and len(beneath) + len(after) == 30 * buckets, "each bucket once in an iteration"


def test_wrong_arguments_are_explained(tmp_path, program, run, solver):
    path = solver("wrong", max_iter=1)
    done = run(program("caffe"), "train", f"--solver={path}", "--workers=0")
    assert done.returncode != 0 and "0 workers" in done.stderr
    done = run(program("caffe"), "train", f"--solver={path}", f"--trace={tmp_path}/missing/trace.json")
    assert done.returncode != 0 and "missing/trace.json" in done.stderr
    done = run(program("caffe"), "train", f"--solver={path}", "--workers=17")
    assert done.returncode != 0 and "batch_size 16" in done.stderr


def test_a_layer_in_python_with_parameters(workplace, monkeypatch):
    if not list(PACKAGE.glob("caffe/_caffe*.so")) or not list((BINARIES.parent / "lib").glob("libcaffe_interpreter.so")):
        pytest.skip("package caffe is not built")
    monkeypatch.setenv("PYTHONPATH", f"{workplace.root}:{PACKAGE}")
    (workplace.root / "gain.py").write_text("""
import caffe
class Gain(caffe.Layer):
    def setup(self, bottom, top): self.blobs.add_blob(1); self.blobs[0].data[...] = 2
    def reshape(self, bottom, top): top[0].reshape(*bottom[0].data.shape)
    def forward(self, bottom, top): top[0].data[...] = self.blobs[0].data[0] * bottom[0].data
    def backward(self, top, propagate_down, bottom): self.blobs[0].diff[...] += (top[0].diff * bottom[0].data).sum()
""")
    (workplace.root / "net.prototxt").write_text("""
layer { name: "data" type: "DummyData" top: "data" top: "target" dummy_data_param { shape { dim: 4 dim: 3 } data_filler { value: 1 } } }
layer { name: "gain" type: "Python" bottom: "data" top: "gain" python_param { module: "gain" layer: "Gain" } }
layer { name: "loss" type: "EuclideanLoss" bottom: "gain" bottom: "target" }
""")
    (workplace.root / "solver.prototxt").write_text(
        'net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 5 display: 1 snapshot_after_train: false')
    log = workplace.run("caffe", "train", "--solver=solver.prototxt", "--workers=2", "--allow_python")
    assert re.search(r"Iteration 4 .*, loss = 0\.0\d+", log), log

"""Nets with includes, blocks and defaults, from Python."""
import pathlib
import subprocess
import sys

import pytest
from google.protobuf import text_format

import caffe
from caffe import net_files, summary
from caffe.proto import caffe_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = ROOT / "examples" / "short_nets"
BLOCKS = """
defaults { type: "InnerProduct" inner_product_param { weight_filler { type: "xavier" } } }
block {
  name: "product" argument { name: "width" }
  layer { name: "ip" type: "InnerProduct" bottom: "$in" top: "$out" inner_product_param { num_output: $width } }
}
"""
NET = """include: "blocks.prototxt"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 8 } } }
use { block: "product" name: "p" bottom: "x" width: 3 repeat: 2 }
layer { name: "y" type: "Softmax" bottom: "p" top: "y" }
"""


@pytest.fixture
def net_file(tmp_path):
    (tmp_path / "blocks.prototxt").write_text(BLOCKS)
    (tmp_path / "net.prototxt").write_text(NET)
    return tmp_path / "net.prototxt"


def test_nets_are_built_of_them(net_file):
    net = caffe.Net(str(net_file), caffe.TEST)
    assert list(net.blobs) == ["x", "p/1", "p", "y"]
    assert {name: blobs[0].data.shape for name, blobs in net.params.items()} == {"p/1/ip": (3, 8), "p/2/ip": (3, 3)}


def test_read_net_writes_blocks_out(net_file):
    net = caffe.read_net(net_file)
    assert [layer.name for layer in net.layer] == ["x", "p/1/ip", "p/2/ip", "y"]
    assert net.layer[2].inner_product_param.weight_filler.type == "xavier"
    assert caffe.read_net(net) == net
    plain = caffe_pb2.NetParameter()
    text_format.Parse(net_files.expanded_text(net_file), plain)
    assert plain == net


def test_read_net_reads_specs_and_old_nets(tmp_path):
    spec = caffe.NetSpec()
    spec.x = caffe.layers.Input(shape={"dim": [1]})
    assert caffe.read_net(spec).layer[0].type == "Input"
    (tmp_path / "old.prototxt").write_text("layers { name: 'a' type: RELU } odd: 1")
    with pytest.raises(caffe.InvalidArgument, match="old.prototxt:1:33: NetParameter has no field 'odd'"):
        caffe.read_net(tmp_path / "old.prototxt")
    assert caffe.read_net(tmp_path / "old.prototxt", lenient=True).layer[0].type == "ReLU"
    with pytest.raises(caffe.IoError, match="none.prototxt"):
        caffe.read_net(tmp_path / "none.prototxt")


def test_mistakes_name_the_file_and_the_use(net_file):
    net_file.write_text(NET.replace('bottom: "x" width', 'bottom: "z" width'))
    with pytest.raises(caffe.InvalidArgument, match=r"blocks.prototxt:5:3: layer 'p/1/ip' .*; used at .*net.prototxt:3:1 \(repeat 1 of 2\)"):
        caffe.Net(str(net_file), caffe.TEST)


def test_expanded_text_of_plain_files_is_theirs(tmp_path):
    text = "# a comment\nlayer { name: 'a' include { phase: TRAIN } }\n"
    (tmp_path / "net.prototxt").write_text(text)
    assert net_files.expanded_text(tmp_path / "net.prototxt") == text
    with pytest.raises(FileNotFoundError):
        net_files.expanded_text(tmp_path / "none.prototxt")


def test_readers_of_nets_read_short_ones(net_file):
    from caffe.studio import drawing
    assert len(drawing.read_net(net_file).layer) == 4
    shown = subprocess.run([sys.executable, ROOT / "tools/extra/summarize.py", net_file, "--input", "x=5,8"], capture_output=True, text=True,
                           check=True).stdout
    assert "p/2/ip" in shown and "5x3" in shown


def test_sweeps_notice_changes_of_included_files(net_file, monkeypatch):
    from caffe.sweep import __main__ as sweep
    monkeypatch.chdir(net_file.parent)
    (net_file.parent / "solver.prototxt").write_text("net: 'net.prototxt' base_lr: 0.1")
    before = sweep._texts("solver.prototxt")
    (net_file.parent / "blocks.prototxt").write_text(BLOCKS.replace("xavier", "msra"))
    after = sweep._texts("solver.prototxt")
    assert before[0] == after[0] and before[1] != after[1]


def test_folders_of_models_may_have_nets_in_solvers(tmp_path):
    from caffe import trained_folder
    (tmp_path / "solver.prototxt").write_text(f"snapshot_prefix: 's' net_param {{ {BLOCKS} use {{ block: 'product' name: 'p' bottom: 'x' width: 3 }} }}")
    (tmp_path / "s_iter_5.caffemodel").write_bytes(b"")
    assert trained_folder._snapshot(str(tmp_path)).endswith("s_iter_5.caffemodel")


def test_evaluation_reads_short_nets(net_file):
    from caffe import evaluation
    weights = net_file.with_suffix(".caffemodel")
    caffe.Net(str(net_file), caffe.TEST).save(str(weights))
    with pytest.raises(caffe.InvalidArgument, match="data"):  # there is no data to evaluate
        evaluation.open_subject(str(net_file), str(weights))


@pytest.mark.parametrize("name", ["resnet20", "vit"])
def test_examples_are_nets_that_exist(name):
    net = caffe.read_net(SHORT / f"{name}.prototxt")
    net = caffe.Net(summary.with_inputs(net, {"data": [2, 3, 32, 32], "label": [2]}), caffe.TEST)
    if name == "resnet20":
        other = caffe.read_net(ROOT / "models/cifar10_resnet20/train_val.prototxt")
        other = summary.with_inputs(other, {"data": [2, 3, 32, 32], "label": [2]})
    else:
        sys.path.insert(0, str(ROOT / "benchmarks" / "peer"))
        import sequence_nets
        text = sequence_nets.vit(blocks=6, width=128, heads=4, items=2, pixels=32, patch=4, classes=10)
        other = text_format.Parse(text, caffe_pb2.NetParameter())
    other = caffe.Net(other, caffe.TEST)
    types = [layer.type for layer in net.layers]
    assert [kind for kind in types if kind not in ("Input", "Accuracy", "Split")] == \
        [layer.type for layer in other.layers if layer.type not in ("Input", "Accuracy", "Split")]
    assert [[blob.data.shape for blob in blobs] for blobs in net.params.values()] == \
        [[blob.data.shape for blob in blobs] for blobs in other.params.values()]
    assert net.plan().memory.parameter_count == other.plan().memory.parameter_count

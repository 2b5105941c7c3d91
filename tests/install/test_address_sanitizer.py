"""A layer that accesses memory outside its blobs ends with AddressSanitizer's report, in a build with preset asan."""
import re

import pytest

from old_cpp import SOURCES, OldTree, caffe_of, run_with_layers

NET = """
layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 3 dim: 5 } data_filler { type: "gaussian" std: 1 } } }
layer { name: "before" type: "InnerProduct" bottom: "data" top: "before" inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { name: "bad" type: "Faulty" bottom: "before" top: "bad" python_param { param_str: "FAULT" } }
layer { name: "after" type: "InnerProduct" bottom: "bad" top: "after" inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "Reduction" bottom: "after" top: "loss" loss_weight: 1 }
"""
FAULTS = [("write", "WRITE", "Forward_cpu"), ("read", "READ", "Forward_cpu"),
          ("write diff", "WRITE", "Backward_cpu"), ("read diff", "READ", "Backward_cpu")]
# In double with memory for each blob, and in float with memory that blobs share.
COMMANDS = [("check-layer",), ("time", "-iterations=1")]


@pytest.fixture(scope="module", name="layers")
def compile_with_the_sanitizer(request):
    if not re.search("^CAFFE_SANITIZE:.*address", (request.getfixturevalue("build") / "CMakeCache.txt").read_text(), re.M):
        pytest.skip("not a build of preset asan")
    tree = OldTree(request.getfixturevalue("tree").prefix)
    return [tree.compile(SOURCES / "layers" / "faulty_layer.cpp", "-shared", "-fPIC", "-g", "-fsanitize=address")]


def run(layers, folder, fault, command, status):
    (folder / "net.prototxt").write_text(NET.replace("FAULT", fault))
    name, *options = command
    return run_with_layers(layers, [caffe_of(layers), name, folder / "net.prototxt", *options], status=status)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("fault, access, method", FAULTS)
def test_a_layer_that_leaves_its_blobs(layers, tmp_path, fault, access, method, command):
    report = run(layers, tmp_path, fault, command, status=1)
    assert "ERROR: AddressSanitizer" in report and f"{access} of size" in report
    assert re.search(rf"#0 \S+ in caffe::FaultyLayer<\w+>::{method}\(", report), report[:3000]


def test_a_layer_that_stays_inside(layers, tmp_path):
    assert "AddressSanitizer" not in run(layers, tmp_path, "", COMMANDS[1], status=0)

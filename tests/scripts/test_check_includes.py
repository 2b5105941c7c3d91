"""scripts/check_includes.py on small trees, with the tables of the real ARCHITECTURE.md."""
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = ROOT / "scripts" / "check_includes.py"


def run(root):
    done = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    shutil.copy(ROOT / "ARCHITECTURE.md", tmp_path)

    def check(path, text):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return run(tmp_path)

    return check


def test_the_project_keeps_its_own_rules():
    assert run(ROOT) == (0, "")


@pytest.mark.parametrize("path, line", [
    ("src/caffe/tensor/blob.cpp", '#include "caffe/tensor/buffer.hpp"'),
    ("src/caffe/tensor/blob.cpp", '#include "caffe/device/device.hpp"'),
    ("src/caffe/graph/graph.cpp", '#include "caffe/blob.hpp"'),
    ("src/caffe/layers/relu_layer.cpp", '#include "caffe/layer_factory.hpp"'),
    ("src/caffe/layers/data/hdf5_data_layer.cpp", '#include "caffe/data/batcher.hpp"'),
    ("src/caffe/solvers/sgd.cpp", '#include "caffe/solver_factory.hpp"'),
    ("src/caffe/io/net_files.cpp", '#include "caffe/proto/caffe.pb.h"'),
    ("include/caffe/net.hpp", '#include "caffe/layer.hpp"'),
    ("include/caffe/caffe.hpp", '#include "caffe/solver.hpp"'),
    ("tools/caffe/train.cpp", '#include "caffe/net.hpp"'),
    ("tests/ops/conv_test.cpp", '#include "caffe/tensor/tensor_view.hpp"'),
    ("tests/net/net_test.cpp", '#include "tests/support/golden.hpp"'),
    ("tests/cuda_on_host/grid.hpp", '#include "caffe/cpu/parallel.hpp"'),
    ("src/caffe/data/readers/lmdb_reader.cpp", "#include <lmdb.h>"),
    ("src/caffe/data/parsers/decode.cpp", "#include <opencv2/imgproc.hpp>"),
    ("src/caffe/cpu/kernels/gemm.cpp", "#include <oneapi/dnnl/dnnl.hpp>"),
    ("src/caffe/core/shape.cpp", "#include <vector>"),
    ("src/caffe/net/net.cpp", "Caffe::mode();"),
    ("src/caffe/plan/plan.cpp", "int x;  // unlike Caffe::mode()"),
])
def test_allows(tree, path, line):
    assert tree(path, line + "\n") == (0, "")


@pytest.mark.parametrize("path, line, reason", [
    ("src/caffe/core/a.cpp", '#include "caffe/tensor/buffer.hpp"', "core may not include tensor; allowed: core"),
    ("src/caffe/core/a.cpp", '#include "caffe/blob.hpp"', "core may not include tensor"),
    ("src/caffe/cpu/a.cpp", '#include "caffe/layer.hpp"', "cpu may not include graph"),
    ("src/caffe/net/a.cpp", '#include "caffe/layers/loss_layer.hpp"', "net may not include layers"),
    ("src/caffe/layers/relu_layer.cpp", '#include "caffe/data/batcher.hpp"', "layers may not include data"),
    ("src/caffe/layers/detection/nms_layer.cpp", '#include "caffe/data/batcher.hpp"', "layers may not include data"),
    ("src/caffe/passes/fuse.cpp", '#include "caffe/experimental/split_exchange.hpp"', "passes may not include experimental"),
    ("src/caffe/net/a.cpp", '#include "compat/loan.hpp"', "net may not include compat"),
    ("src/caffe/net/a.cpp", '#  include "caffe/solver.hpp"', "net may not include solvers"),
    ("include/caffe/blob.hpp", '#include "caffe/net.hpp"', "tensor may not include net"),
    ("tools/caffe/train.cpp", '#include "caffe/plan/executor.hpp"', "tools may not include plan"),
    ("tests/core/a_test.cpp", '#include "caffe/net.hpp"', "tests/core may not include net"),
    ("src/caffe/data/batcher.cpp", "#include <lmdb.h>", "lmdb.h is legal only in data/readers"),
    ("src/caffe/device/device.cpp", "#include <cuda_runtime.h>", "legal only in cuda"),
    ("src/caffe/layers/a_layer.cpp", "#include <opencv2/core.hpp>", "legal only in data"),
    ("src/caffe/layers/a_layer.cpp", "if (Caffe::mode() == Caffe::GPU) {}", "Caffe:: is legal only in core/common"),
    ("src/caffe/net/a.cpp", '#include "caffe/helpers.hpp"', "not in the table of public headers"),
    ("src/caffe/utils/a.cpp", '#include "caffe/net.hpp"', "'utils' has no row"),
])
def test_refuses(tree, path, line, reason):
    status, output = tree(path, "\n" + line + "\n")
    assert status == 1
    assert output.startswith(f"{path}:2: ")
    assert reason in output


def test_a_new_row_changes_the_rule(tree, tmp_path):
    path, line = "src/caffe/core/a.cpp", '#include "caffe/io/text_format.hpp"\n'
    assert tree(path, line)[0] == 1
    architecture = tmp_path / "ARCHITECTURE.md"
    architecture.write_text(architecture.read_text().replace("| `core` | |", "| `core` | io |"))
    assert tree(path, line) == (0, "")


def test_says_so_when_a_table_is_missing(tmp_path):
    (tmp_path / "ARCHITECTURE.md").write_text("# nothing\n")
    done = subprocess.run([sys.executable, CHECKER, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no table" in done.stderr

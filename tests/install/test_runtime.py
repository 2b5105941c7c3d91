"""Only the runtime library, installed and used by C programs as described in docs/runtime.md."""
import os
import re
import shutil
import struct
import subprocess

import pytest

from conftest import ROOT

INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }'
NOISE = 'layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }'
LAYER = """
layer {
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "constant" value: 0.5 } }
}
"""
LOSS = 'layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 }'
PAGE = (ROOT / "docs" / "runtime.md").read_text()


@pytest.fixture(name="prefix")
def installed_runtime(request, tmp_path):
    if "CAFFE_INSTALL_PREFIX" in os.environ:
        return request.getfixturevalue("tree").prefix
    build = request.getfixturevalue("build")
    if not (build / "lib" / "libcortado_runtime.so").exists():
        pytest.skip(f"{build} holds no runtime library")
    subprocess.run(["cmake", "--install", build, "--component", "runtime", "--prefix", tmp_path / "runtime"], check=True,
                   stdout=subprocess.DEVNULL)
    return tmp_path / "runtime"


@pytest.fixture(name="program")
def compiled_net(tree, tmp_path):
    (tmp_path / "net.prototxt").write_text(INPUT + LAYER)
    (tmp_path / "train.prototxt").write_text(NOISE + LAYER + LOSS)
    (tmp_path / "solver.prototxt").write_text('net: "train.prototxt" base_lr: 0 lr_policy: "fixed" max_iter: 1 snapshot_prefix: "net"')
    tree.run(tree.caffe, "train", "--solver=solver.prototxt", cwd=tmp_path)
    tree.run(tree.caffe, "compile", "net.prototxt", "--weights=net_iter_1.caffemodel", "--output=net.cortado", cwd=tmp_path)
    return tmp_path / "net.cortado"


def build_as_the_page_says(tree, prefix, folder, options=""):
    [line] = re.findall(r"^cc .*$", PAGE, re.M)
    tree.run("bash", "-c", line.replace("DIR/", f"{prefix}/") + f" -Wl,-rpath,{prefix}/lib {options}", cwd=folder)
    return folder / "run"


def test_the_pages_program_runs_a_net(tree, prefix, program, tmp_path):
    (tmp_path / "run.c").write_text(re.search(r"^```c\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1])
    done = subprocess.run([build_as_the_page_says(tree, prefix, tmp_path)], cwd=program.parent, check=True,
                          input=struct.pack("4f", 1, 2, 3, 4), stdout=subprocess.PIPE)
    assert done.stdout.decode().split() == ["5", "5"]


@pytest.mark.parametrize("options", ["", "-std=c99 -pedantic-errors -Wall -Wextra -Werror"])
def test_the_example_runs_a_net(tree, prefix, program, tmp_path, options):
    shutil.copy(ROOT / "examples" / "runtime" / "run.c", tmp_path)
    (tmp_path / "input.raw").write_bytes(struct.pack("4f", 1, 2, 3, 4))
    said = tree.run(build_as_the_page_says(tree, prefix, tmp_path, options), program, tmp_path / "input.raw")
    assert said.split() == ["ip", "1", "2", "5", "5"]

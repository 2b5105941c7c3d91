"""Pages with error messages show the program's actual output.

    <!-- mistake: COMMANDS -->      shell commands that make the mistake, in a fresh copy of a folder with a good net
    ```text
    $ caffe plan net.prototxt       runs, and fails with exit status 1
    caffe plan: net.prototxt:...    its output, without the prefix of the log's lines
    ```

After a message has changed, this file rewrites the pages:
    CAFFE_BINARY_DIR=build/cpu-release python3 tests/smoke/test_error_pages.py
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from programs import BINARIES, ROOT, write_idx

PAGES = [ROOT / "docs" / name for name in ("errors.md", "troubleshooting.md")]
MISTAKE = re.compile(r"(<!-- mistake:((?:(?!-->)[\s\S])*)-->\n```text\n)\$ (.*)\n((?:(?!```).*\n)*)(```\n)")
PREFIX = re.compile(r"^E\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] ", re.MULTILINE)

NET = """\
name: "digits"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  transform_param { scale: 0.00390625 }
  data_param { source: "digits_lmdb" batch_size: 10 }
}
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param {
    num_output: 4
    kernel_size: 5
    weight_filler { type: "xavier" }
  }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "conv1" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer {
  name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
}
"""

SOLVER = """\
net: "net.prototxt"
base_lr: 0.01
lr_policy: "fixed"
max_iter: 2
snapshot_prefix: "digits"
random_seed: 1
"""


def shell(command, folder):
    environment = {**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    return subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=environment, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)


def make_place(folder):
    """A net, its solver, a database of 100 digits (noise, labels 0 to 9) and the weights of two iterations."""
    noise = random.Random(1)
    write_idx(folder / "images", [100, 28, 28], [noise.randrange(256) for _ in range(100 * 28 * 28)])
    write_idx(folder / "labels", [100], [i % 10 for i in range(100)])
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)
    for command in ("convert_mnist_data images labels digits_lmdb", "caffe train solver.prototxt"):
        done = shell(command, folder)
        assert done.returncode == 0, done.stdout
    return folder


def message(mistake, command, place):
    """The output of `command` after the mistake was made."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = shutil.copytree(place, pathlib.Path(scratch) / "digits")
        made = shell(mistake, folder)
        assert made.returncode == 0, f"{mistake}: {made.stdout}"
        done = shell(command, folder)
        said = PREFIX.split(done.stdout)[-1].replace(str(folder), "/home/me/digits")
        assert done.returncode == 1, f"{command}: exit status {done.returncode}: {done.stdout[-2000:]}"
    return "".join(line.rstrip() + "\n" for line in said.splitlines())


def with_messages(text, place):
    """The page with the program's current output."""
    def now(found):
        before, mistake, command, _, after = found.groups()
        return f"{before}$ {command}\n{message(mistake, command, place)}{after}"
    return MISTAKE.sub(now, text)


@pytest.fixture(name="place", scope="module")
def make_the_place(tmp_path_factory):
    if not (BINARIES / "convert_mnist_data").exists() or not (BINARIES / "caffe").exists():
        pytest.skip(f"caffe and convert_mnist_data are not built in {BINARIES}")
    return make_place(tmp_path_factory.mktemp("digits"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_message_is_what_the_program_says(page, place):
    text = page.read_text(encoding="utf-8")
    has_cuda = "CAFFE_CUDA_FOUND:INTERNAL=ON" in (BINARIES.parent / "CMakeCache.txt").read_text(encoding="utf-8")
    assert len(MISTAKE.findall(text)) == text.count("<!-- mistake:") >= 15
    for found in MISTAKE.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        if has_cuda and "has no cuda device" in found[4]:
            continue
        assert found[4] == message(found[2], found[3], place), f"{page.name}:{line}"


def test_a_stale_message_is_found(place):
    page = "<!-- mistake: rm net.prototxt -->\n```text\n$ caffe plan net.prototxt\ncaffe plan: what it said once\n```\n"
    assert "cannot open" in with_messages(page, place)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "smoke"))
    with tempfile.TemporaryDirectory() as scratch_place:
        good = make_place(pathlib.Path(scratch_place))
        for one in PAGES:
            one.write_text(with_messages(one.read_text(encoding="utf-8"), good), encoding="utf-8")

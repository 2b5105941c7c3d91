"""Programs are in the places where scripts written for Caffe look for them under CAFFE_ROOT."""
import subprocess

import pytest

from programs import BINARIES, ROOT

CAFFES = ["tools/caffe", "tools/convert_imageset", "tools/compute_image_mean", "examples/mnist/convert_mnist_data.bin",
          "examples/cifar10/convert_cifar_data.bin", "examples/cpp_classification/classification.bin"]


@pytest.mark.parametrize("path", CAFFES)
def test_build_has_caffes_paths(path):
    builds = BINARIES.parent.parent
    if builds != (ROOT / "build").resolve():
        pytest.skip(f"{BINARIES.parent} is not in this checkout's build/")
    if path == "tools/caffe":
        done = subprocess.run([builds / path, "--version"], capture_output=True, text=True, check=True)
        assert "0." in done.stdout
    assert (builds / path).resolve().parent == BINARIES and (builds / path).exists()

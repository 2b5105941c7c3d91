"""The interpreter ends while another thread computes: without messages, as if that thread slept."""
import os
import subprocess
import sys

import pytest

from built_package import PACKAGE

NET = """
layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: %(size)d dim: %(size)d } } }
layer { name: "f" type: "InnerProduct" bottom: "x" top: "f" inner_product_param { num_output: %(size)d weight_filler { type: "xavier" } } }
%(layer)s
layer { name: "loss" type: "Reduction" bottom: "f" top: "loss" loss_weight: 1 }
"""
PYTHON_LAYER = 'layer { name: "same" type: "Python" bottom: "f" top: "f" python_param { module: "same" layer: "Same" } }'
LAYER = """
import caffe
class Same(caffe.Layer):
    def setup(self, bottom, top): pass
    def reshape(self, bottom, top): pass
    def forward(self, bottom, top): sum(range(1000))
    def backward(self, top, propagate_down, bottom): pass
"""
SCRIPT = """
import threading
import caffe
begun = threading.Event()
%s
def run():
    while True:
        %s
        begun.set()
threading.Thread(target=run, daemon=True).start()
begun.wait()
"""
FORWARD = SCRIPT % ('net = caffe.Net("net.prototxt", caffe.TRAIN)', "net.forward()")
STEP = SCRIPT % ('solver = caffe.get_solver("solver.prototxt")', "solver.step(1)")


# 2000: multiplies matrices, for long, in buffers of a library that frees them when the process ends.
@pytest.mark.parametrize("size", [100, 2000])
@pytest.mark.parametrize("script", [FORWARD, STEP], ids=["forward", "step"])
@pytest.mark.parametrize("layer", ["", PYTHON_LAYER], ids=["plain", "python-layer"])
def test_a_thread_that_computes(script, layer, size, tmp_path):
    (tmp_path / "net.prototxt").write_text(NET % {"layer": layer, "size": size})
    (tmp_path / "same.py").write_text(LAYER)
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1000000 '
                                              'snapshot_after_train: false')
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    for _ in range(3):
        done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, check=False, text=True,
                              capture_output=True)
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
        assert "terminate called" not in done.stderr and "Fatal" not in done.stderr, done.stderr[-2000:]

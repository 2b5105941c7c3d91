"""Finds the built package for the interpreter that it was built for; must be imported before caffe."""
import importlib
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve()
PACKAGE = BUILD / "python"
sys.path.insert(0, str(PACKAGE))


def _import_quietly():
    """Both settings are read once, when the libraries are loaded; programs that tests start later are not affected."""
    settings = {"GLOG_minloglevel": "2", "OMP_WAIT_POLICY": "passive"}  # small nets, other load
    missing = [name for name in settings if name not in os.environ]
    os.environ.update({name: settings[name] for name in missing})
    importlib.import_module("caffe")
    for name in missing:
        del os.environ[name]


_import_quietly()

SIMPLE = """
name: 'simple'
force_backward: true
layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 5 dim: 2 dim: 6 dim: 7 } } }
layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 5 } } }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
        convolution_param { num_output: 11 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }
layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'relu' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'relu' top: 'ip'
        inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
"""

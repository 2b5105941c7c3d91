"""Layers as functions, for nets written in Python; the sub-packages have layers written in Python.

    from caffe import layers as L
    top = L.Convolution(bottom, num_output=20, kernel_size=5)      # see caffe.net_spec

    layer { type: "Python" python_param { module: "caffe.layers.detectnet.mean_ap" layer: "mAP" } }
"""
from typing import Any

from .. import net_spec


def __getattr__(name: str) -> Any:
    return getattr(net_spec.layers, name)

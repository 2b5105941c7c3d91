"""Cortado's Python package, with pycaffe's names.

    import caffe
    net = caffe.Net("deploy.prototxt", caffe.TEST, weights="net.caffemodel")
    net.blobs["data"].data[...] = image
    scores = net.forward()["prob"]

Exceptions: caffe.Error (a RuntimeError) and its subclasses InvalidArgument (a ValueError),
Unsupported (a NotImplementedError), IoError (an OSError), DeviceError, InternalError. Every message
says where, what, and what to do. The import reads no files and starts no threads.
"""
from ._checkout import add_compiled_modules, check_packages
from ._waiting import brief_waits

check_packages()
add_compiled_modules(__path__)  # before the modules that need them

# pylint: disable=wrong-import-position
with brief_waits():
    from . import _caffe  # loads OpenMP
from . import coord_map, display, draw, io, summary
from ._caffe import (NCCL, Blob, BlobVec, DeviceError, Error, ImageInput, InternalError, InvalidArgument, IoError, Layer, Timer,
                     Unsupported, __version__, has_nccl, init_log, layer_type_list, load_plugin, log, max_decoded_mb,
                     set_device, set_devices, set_max_decoded_mb,
                     set_mode_cpu, set_mode_gpu, set_multiprocess, set_random_seed, set_solver_count, set_solver_rank,
                     solver_count, solver_rank, solver_type_list)
from .classifier import Classifier
from .detector import Detector
from . import layers
from .net_spec import NetSpec, params, to_proto
from .proto.caffe_pb2 import TEST, TRAIN
from .deployment import deploy_net, model_info
from .fitting import Fit, fit
from .net_files import read_net
from .pycaffe import Net
from .single_layer import LayerBase, LayerParameter, create_layer
from .solver import Solver, get_solver, train
from .trained_folder import ModelFolder
from .solver import *  # noqa: F403  (SGDSolver, AdamSolver ...: one class per type)

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("add_compiled_modules", "brief_waits", "check_packages")]

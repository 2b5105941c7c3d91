"""Definitions of nets and solvers for training on arrays."""
import os
from collections.abc import Mapping

from .. import _caffe
from .._caffe import InvalidArgument
from .._overrides import assignments
from ..proto import caffe_pb2

# Fields that choose the nets of a solver and its tests. fit() has its own nets and tests.
_FIELDS_OF_NETS = ("net", "net_param", "train_net", "train_net_param", "test_net", "test_net_param", "test_iter", "test_interval",
                   "test_initialization", "test_state", "metric", "metric_falls", "early_stopping", "early_stopping_delta")
DEFAULT_SOLVER = {"type": "Adam", "base_lr": 0.001, "momentum": 0.9, "lr_policy": "fixed"}


def read_solver(solver):
    """A caffe_pb2.SolverParameter without nets, from a prototxt's name, a SolverParameter or a dict of
    fields; None selects Adam with a rate of 0.001."""
    if solver is None:
        solver = DEFAULT_SOLVER
    if isinstance(solver, Mapping):
        given = solver if "lr_policy" in solver else {"lr_policy": "fixed", **solver}
        source, changes = caffe_pb2.SolverParameter(), assignments(given, {}, ())
    else:
        source, changes = solver, []
    param = caffe_pb2.SolverParameter.FromString(_caffe._read_solver(source, changes))
    if param.ema_decay:
        raise InvalidArgument(f"fit: the solver has ema_decay {param.ema_decay:g}, and predictions would be those of the weights before "
                              "they are averaged; leave it out, or train with caffe.train()")
    for name in _FIELDS_OF_NETS:
        param.ClearField(name)
    if isinstance(source, (str, bytes, os.PathLike)) and not param.HasField("snapshot_prefix"):
        param.snapshot_prefix = os.path.splitext(os.fsdecode(source))[0]
    return param


def set_batch(definition, batch):
    """Sets the number of records of all tops of Input layers to `batch`, in each phase."""
    for layer in definition.layer:
        if layer.type == "Input":
            for shape in layer.input_param.shape:
                if shape.dim:
                    shape.dim[0] = batch


def batch_of(definition):
    """The batch size of the first Input layer. Raises InvalidArgument if there is none."""
    for layer in definition.layer:
        for shape in layer.input_param.shape if layer.type == "Input" else ():
            if shape.dim:
                return shape.dim[0]
    readers = [f"{layer.name!r} ({layer.type})" for layer in definition.layer if not layer.bottom]
    raise InvalidArgument("fit: the net has no Input layer that arrays could be given to"
                          + (f"; it reads {', '.join(readers[:3])} itself" if readers else "")
                          + ": replace its data layers by layers of type Input, or train it with caffe.train()")


def for_prediction(net, inputs):
    """The definition for inference from `inputs`, made from a net of phase TEST: layers that need other
    inputs are removed, and the input of a softmax loss becomes probabilities."""
    if any(layer.type.endswith("Loss") for layer in net.definition.layer):
        return caffe_pb2.NetParameter.FromString(_caffe._deploy_net(net, list(inputs)))
    definition = caffe_pb2.NetParameter()
    definition.CopyFrom(net.definition)
    del definition.layer[:]
    missing = set(net.inputs) - set(inputs)
    for layer in net.definition.layer:
        if layer.type == "Input":
            kept = [i for i, top in enumerate(layer.top) if top not in missing]
            if not kept:
                continue
            shapes = layer.input_param.shape
            own = definition.layer.add()
            own.CopyFrom(layer)
            own.top[:] = [layer.top[i] for i in kept]
            del own.input_param.shape[:]
            own.input_param.shape.extend(shapes[i if len(shapes) > 1 else 0] for i in kept)
        elif missing.intersection(layer.bottom):
            missing.update(layer.top)
        else:
            definition.layer.add().CopyFrom(layer)
    return definition

"""A training net as a list of plain steps that another framework can build; needs neither torch nor compiled modules.

    net = definition.training_net("models/vgg16/train_val.prototxt", batch=8)   # data replaced by Input layers
    steps = definition.steps(net)                                               # TorchNet is built from these

A step is a dictionary of JSON values: `kind`, `name` (the layer's), `inputs` and `output` (names of values; each is
written once), `weights` (keys such as "conv1.0", in the order of the PyTorch module's weight and bias), `in_place`
(the input's memory may be overwritten), `release` (values that nothing reads later), and options of its kind.
BatchNorm and the Scale after it are one step.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.proto import caffe_pb2  # noqa: E402
from google.protobuf import text_format  # noqa: E402

SOURCES = ("Data", "DummyData", "ImageData", "Input")
# Kinds whose backward pass reads inputs only, so the next step may overwrite their output.
OUTPUT_NOT_SAVED = ("convolution", "batch_norm", "inner_product", "sum", "concat")
CAN_OVERWRITE = ("relu", "clip", "sum")


def training_net(path, batch):
    """The net of the TRAIN phase with an Input layer for each blob of its data layer: images, labels."""
    net = text_format.Parse(pathlib.Path(path).read_text(encoding="utf-8"), caffe_pb2.NetParameter())
    layers = [layer for layer in net.layer if _is_in_training(layer)]
    sources = [layer for layer in layers if layer.type in SOURCES]
    names = [top for layer in sources for top in layer.top]
    if len(names) != 2:
        raise ValueError(f"{path}: the data layers make {names}; a benchmark needs images and labels")
    inputs = [caffe_pb2.LayerParameter(name=name, type="Input", top=[name]) for name in names]
    for layer, shape in zip(inputs, ([batch, *_image_shape(sources[0])], [batch])):
        layer.input_param.shape.add(dim=shape)
    del net.layer[:]
    net.layer.extend(inputs + [layer for layer in layers if layer.type not in SOURCES])
    return net


def without_dropout(net):
    """A copy without randomness, so that two frameworks can compute the same result."""
    copy = caffe_pb2.NetParameter.FromString(net.SerializeToString())
    for layer in copy.layer:
        if layer.type == "Dropout":
            layer.dropout_param.dropout_ratio = 0
    return copy


def _is_in_training(layer):
    def meets(rule):
        return not rule.HasField("phase") or rule.phase == caffe_pb2.TRAIN

    return (not layer.include or any(map(meets, layer.include))) and not any(map(meets, layer.exclude))


def _image_shape(source):
    for options in (source.dummy_data_param, source.input_param):
        if options.shape:
            return list(options.shape[0].dim[1:])
    side = source.transform_param.crop_size
    if not side:
        raise ValueError(f"layer {source.name}: neither a shape nor crop_size says how large the images are")
    return [3, side, side]


def _pair(options, name, default):
    """Extents along height and width: `name`_h and `name`_w, or `name` given once, twice or not at all."""
    if options.HasField(f"{name}_h") or options.HasField(f"{name}_w"):
        return [getattr(options, f"{name}_h"), getattr(options, f"{name}_w")]
    square = getattr(options, "kernel_size" if name == "kernel" else name)
    values = list(square) if not isinstance(square, int) else [square] if options.HasField(
        "kernel_size" if name == "kernel" else name) else []
    return (values * 2)[:2] if values else [default, default]


def _convolution(layer):
    options = layer.convolution_param
    dilation = (list(options.dilation) * 2)[:2] or [1, 1]
    return {"kind": "convolution", "stride": _pair(options, "stride", 1), "pad": _pair(options, "pad", 0),
            "dilation": dilation, "group": options.group,
            "weights": [f"{layer.name}.{i}" for i in range(1 + options.bias_term)]}


def _inner_product(layer):
    options = layer.inner_product_param
    _require(layer, options.axis == 1 and not options.transpose, "axis 1 without transpose")
    return {"kind": "inner_product", "weights": [f"{layer.name}.{i}" for i in range(1 + options.bias_term)]}


def _pooling(layer):
    options = layer.pooling_param
    _require(layer, options.pool in (options.MAX, options.AVE) and len(layer.top) == 1, "MAX or AVE with one top")
    kind = "max_pool" if options.pool == options.MAX else "average_pool"
    if options.global_pooling:
        return {"kind": "global_" + kind}
    return {"kind": kind, "kernel": _pair(options, "kernel", 0), "stride": _pair(options, "stride", 1),
            "pad": _pair(options, "pad", 0), "rounds_up": options.round_mode == options.CEIL}


def _lrn(layer):
    options = layer.lrn_param
    _require(layer, options.norm_region == options.ACROSS_CHANNELS, "norm_region ACROSS_CHANNELS")
    return {"kind": "lrn", "size": options.local_size, "alpha": options.alpha, "beta": options.beta, "k": options.k}


def _batch_norm(layer):
    """BVLC's layer has no scale; NVCaffe's has scale and shift in its blobs 3 and 4."""
    options = layer.batch_norm_param
    _require(layer, not options.use_global_stats, "statistics of the batch")
    has_scale = options.scale_bias or options.HasField("scale_filler") or options.HasField("bias_filler")
    return {"kind": "batch_norm", "eps": max(options.eps, 1e-5) if has_scale else options.eps,
            "weights": [f"{layer.name}.{i}" for i in (3, 4)] if has_scale else []}


def _eltwise(layer):
    options = layer.eltwise_param
    _require(layer, options.operation == options.SUM and all(c == 1 for c in options.coeff), "SUM with coefficients 1")
    return {"kind": "sum"}


def _concat(layer):
    options = layer.concat_param
    return {"kind": "concat", "axis": options.concat_dim if options.HasField("concat_dim") else options.axis}


def _loss(layer):
    options = layer.loss_param
    is_mean = options.normalization in (options.VALID, options.BATCH_SIZE) and not options.HasField("normalize")
    _require(layer, is_mean and not options.HasField("ignore_label") and not options.label_smoothing,
             "a plain mean over all labels")
    return {"kind": "loss", "factor": layer.loss_weight[0] if layer.loss_weight else 1.0}


KINDS = {
    "BatchNorm": _batch_norm,
    "Clip": lambda layer: {"kind": "clip", "low": layer.clip_param.min, "high": layer.clip_param.max},
    "Concat": _concat,
    "Convolution": _convolution,
    "ConvolutionDepthwise": _convolution,
    "DepthwiseConvolution": _convolution,
    "Dropout": lambda layer: {"kind": "dropout", "ratio": layer.dropout_param.dropout_ratio},
    "Eltwise": _eltwise,
    "Flatten": lambda layer: {"kind": "flatten"},
    "InnerProduct": _inner_product,
    "LRN": _lrn,
    "Pooling": _pooling,
    "ReLU": lambda layer: {"kind": "relu", "slope": layer.relu_param.negative_slope},
    "ReLU6": lambda layer: {"kind": "clip", "low": 0.0, "high": 6.0},
    "Softmax": lambda layer: {"kind": "softmax", "axis": layer.softmax_param.axis},
    "SoftmaxWithLoss": _loss,
}
IGNORED = ("Accuracy", "Input", "Silence")


def _require(layer, holds, what):
    if not holds:
        raise ValueError(f"layer {layer.name}: of type {layer.type} only {what} can be compared")


def steps(net):
    """The net's steps, in order."""
    result = _merge_scales(list(_numbered(net)))
    readers = _readers(result)
    made_by = {step["output"]: step for step in result}
    for step in result:
        _allow_overwriting(step, made_by, readers)
    for i, step in enumerate(result):
        last = [name for name in dict.fromkeys(step["inputs"]) if readers[name][-1] == i]
        step["release"] = last if step["output"] in readers or step["kind"] == "loss" else [*last, step["output"]]
    return result


def weight_shapes(net):
    """The shape of each array that the steps name, by its key ("conv1.0")."""
    shapes, blobs = {}, {}
    for layer in net.layer:
        if layer.type == "Input":
            blobs.update((top, list(shape.dim)) for top, shape in zip(layer.top, layer.input_param.shape))
            continue
        if layer.type in IGNORED or not layer.bottom or layer.bottom[0] not in blobs:
            continue
        shape = blobs[layer.bottom[0]]
        shapes.update(_shapes_of_weights(layer, shape))
        blobs.update((top, _shape_after(layer, shape, [blobs[bottom] for bottom in layer.bottom])) for top in layer.top)
    return shapes


def _shapes_of_weights(layer, shape):
    options = layer.convolution_param
    if layer.type in ("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution"):
        group = options.group if layer.type == "Convolution" else options.num_output
        weights = [options.num_output, shape[1] // group, *_pair(options, "kernel", 0)]
        bias_term = options.bias_term
    elif layer.type == "InnerProduct":
        count = 1
        for extent in shape[1:]:
            count *= extent
        weights, bias_term = [layer.inner_product_param.num_output, count], layer.inner_product_param.bias_term
    elif layer.type == "Scale":
        return {f"{layer.name}.{i}": [shape[1]] for i in (0, 1)}
    elif layer.type == "BatchNorm":
        return {key: [shape[1]] for key in _batch_norm(layer)["weights"]}
    else:
        return {}
    return {f"{layer.name}.0": weights, **({f"{layer.name}.1": weights[:1]} if bias_term else {})}


def _shape_after(layer, shape, inputs):
    if layer.type in ("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution"):
        options = layer.convolution_param
        dilation = (list(options.dilation) * 2)[:2] or [1, 1]
        windows = zip(shape[2:], _pair(options, "kernel", 0), _pair(options, "stride", 1), _pair(options, "pad", 0), dilation)
        return [shape[0], options.num_output,
                *((extent + 2 * pad - dilated * (kernel - 1) - 1) // stride + 1 for extent, kernel, stride, pad, dilated in windows)]
    if layer.type == "InnerProduct":
        return [shape[0], layer.inner_product_param.num_output]
    if layer.type == "Pooling":
        step = _pooling(layer)
        if step["kind"].startswith("global_"):
            return [*shape[:2], 1, 1]
        return [*shape[:2], *(_pooled(*window, step["rounds_up"])
                              for window in zip(shape[2:], step["kernel"], step["stride"], step["pad"]))]
    if layer.type == "Concat":
        axis = _concat(layer)["axis"]
        return [*shape[:axis], sum(one[axis] for one in inputs), *shape[axis + 1:]]
    if layer.type == "Flatten":
        count = 1
        for extent in shape[1:]:
            count *= extent
        return [shape[0], count]
    return shape


def _pooled(extent, kernel, stride, pad, rounds_up):
    """The last window must start before the padding's end."""
    rest = extent + 2 * pad - kernel
    outputs = (rest + (stride - 1 if rounds_up else 0)) // stride + 1
    return outputs - 1 if pad and (outputs - 1) * stride >= extent + pad else outputs


def _numbered(net):
    """One step per layer; a blob that is overwritten in place gets a new name."""
    latest, written = {}, {}
    for layer in net.layer:
        if layer.type == "Split":
            latest.update((top, latest[layer.bottom[0]]) for top in layer.top)
        elif layer.type == "Input":
            latest.update((top, top) for top in layer.top)
            written.update((top, 1) for top in layer.top)
        elif layer.type == "Scale":
            yield _finish(layer, {"kind": "scale"}, latest, written)
        elif layer.type in KINDS:
            yield _finish(layer, KINDS[layer.type](layer), latest, written)
        elif layer.type not in IGNORED:
            raise ValueError(f"layer {layer.name}: type {layer.type} has no counterpart; those known: "
                             f"{', '.join(sorted(KINDS))}")


def _finish(layer, step, latest, written):
    top = layer.top[0]
    step = {"name": layer.name, "weights": [], **step, "inputs": [latest[bottom] for bottom in layer.bottom]}
    written[top] = written.get(top, 0) + 1
    step["output"] = latest[top] = top if written[top] == 1 else f"{top}#{written[top]}"
    if step["kind"] == "scale":
        _require(layer, len(layer.bottom) == 1 and layer.scale_param.bias_term, "one bottom and bias_term: true")
        step["weights"] = [f"{layer.name}.0", f"{layer.name}.1"]
    return step


def _readers(all_steps):
    """Indices of the steps that read each value."""
    readers = {}
    for i, step in enumerate(all_steps):
        for name in step["inputs"]:
            readers.setdefault(name, []).append(i)
    return readers


def _merge_scales(all_steps):
    readers, merged = _readers(all_steps), []
    norms = {step["output"]: step for step in all_steps if step["kind"] == "batch_norm" and not step["weights"]}
    for step in all_steps:
        if step["kind"] != "scale":
            merged.append(step)
            continue
        norm = norms.get(step["inputs"][0])
        if norm is None or len(readers[norm["output"]]) != 1:
            raise ValueError(f"layer {step['name']}: a Scale that is not alone behind a BatchNorm has no counterpart")
        norm["weights"], norm["output"] = step["weights"], step["output"]
    return merged


def _allow_overwriting(step, made_by, readers):
    """Allows PyTorch's in-place form if nothing else reads the input and no backward pass needs it."""
    def is_free(name):
        return len(readers[name]) == 1 and made_by.get(name, {}).get("kind") in OUTPUT_NOT_SAVED

    step["in_place"] = False
    if step["kind"] not in CAN_OVERWRITE:
        return
    step["inputs"].sort(key=lambda name: not is_free(name))
    step["in_place"] = is_free(step["inputs"][0])

"""Arrays with which a net and a model are compared: the caller's, else random ones that resemble real inputs.

The layer that reads an input determines its values: positions, regions of the image, beginnings of sequences. Other inputs get
values from -1 to 1: a picture if they have the shape of an image, else noise.
"""
import numpy as np

from .._caffe import InvalidArgument

_SAME_ELEMENTS = {"Split", "Reshape", "Flatten", "Dropout", "DropPath"}
_PICTURE = 16  # shortest side of a picture, in pixels

_DRAWN = {}  # (layer type, bottom) -> function(generator, net, LayerParameter, shape)


def _draws(*bottoms):
    def register(function):
        _DRAWN.update(dict.fromkeys(bottoms, function))
        return function
    return register


def inputs_of(net, report, given):
    """Arrays (float32) by input of the report. Raises InvalidArgument if a given array is not for an input of the model, or has the
    wrong shape."""
    given = dict(given or {})
    unknown = set(given) - set(report.inputs)
    if unknown:
        raise InvalidArgument(f"the model has no input {', '.join(sorted(unknown))}; its inputs: {', '.join(report.inputs)}")
    readers, generator = _readers(net), np.random.default_rng(1)
    return {name: _given(name, given[name], shape) if name in given
            else _drawn(generator, net, readers.get(name), shape).reshape(shape).astype(np.float32)
            for name, shape in report.inputs.items()}


def _readers(net):
    """(function, LayerParameter, shape) for each input whose reader needs special values."""
    source, readers = {}, {}
    for layer in net.layers:
        param = layer.layer_param
        if layer.type in _SAME_ELEMENTS:
            source.update(dict.fromkeys(param.top, source.get(param.bottom[0], param.bottom[0])))
        last = len(param.bottom) - 1
        for k, blob in enumerate(param.bottom):
            draw = _DRAWN.get((layer.type, k)) or (_DRAWN.get((layer.type, -1)) if k == last else None)
            if draw is not None:
                readers.setdefault(source.get(blob, blob), (draw, param, tuple(net.blobs[blob].shape)))
    return readers


def _drawn(generator, net, reader, shape):
    if reader is not None:
        draw, param, bottom = reader
        return draw(generator, net, param, bottom)
    if len(shape) == 4 and shape[1] in (1, 3, 4) and min(shape[2:]) >= _PICTURE:
        return _picture(generator, shape)
    return generator.uniform(-1, 1, shape)


def _picture(generator, shape):
    """Noise at several scales: areas, edges and grain."""
    items, channels, height, width = shape
    picture = np.zeros(shape)
    for size in (1, 4, 16):
        grid = generator.uniform(-1, 1, (items, channels, -(-height // size), -(-width // size)))
        picture += grid.repeat(size, 2).repeat(size, 3)[:, :, :height, :width] / 3
    return picture


@_draws(("Embed", 0))
def _words(generator, _net, param, shape):
    return generator.integers(0, param.embed_param.input_dim, shape)


@_draws(("BatchReindex", 1))
def _items(generator, net, param, shape):
    return generator.integers(0, net.blobs[param.bottom[0]].shape[0], shape)


@_draws(("LSTM", 1), ("RNN", 1), ("GRU", 1), ("LSTMUnit", 2))
def _continued(generator, _net, _param, shape):
    """1, but 0 where a sequence begins: at the first step, and rarely later. Shape: steps, items."""
    marks = (generator.uniform(0, 1, shape) > 0.2).astype(np.float32)
    marks[0] = 0
    return marks


@_draws(("Attention", 3), ("MultiHeadAttention", 1), ("MultiHeadAttention", 2))
def _seen(generator, _net, _param, shape):
    """A mask that hides a few rows; a context, which has three axes, is noise."""
    return generator.uniform(0, 1, shape) > 0.2 if len(shape) == 2 else generator.uniform(-1, 1, shape)


@_draws(("Filter", -1))
def _selector(generator, _net, _param, shape):
    return generator.integers(0, 2, shape)


@_draws(("ROIPooling", 1), ("ROIAlign", 1), ("PSROIPooling", 1))
def _regions(generator, net, param, shape):
    """Rows (item, xmin, ymin, xmax, ymax) in pixels of the image."""
    items, _, height, width = net.blobs[param.bottom[0]].shape
    options = next(getattr(param, name) for name in ("roi_pooling_param", "roi_align_param", "psroi_pooling_param")
                   if param.HasField(name))
    size = np.array([width, height]) / options.spatial_scale
    first = generator.uniform(0, 0.5, (shape[0], 2))
    last = first + generator.uniform(0.2, 0.4, first.shape)
    item = generator.integers(0, items, (shape[0], 1))
    return np.concatenate([item, first * size, last * size], 1)


@_draws(("Proposal", 2))
def _image_sizes(_generator, net, param, shape):
    """Rows (height, width, scale), or with two scales, for images whose scale is 1."""
    height, width = (extent * param.proposal_param.feat_stride for extent in net.blobs[param.bottom[0]].shape[2:])
    return np.tile([height, width, *[1] * (int(np.prod(shape[1:])) - 2)], (shape[0], 1))


@_draws(("Upsample", 1))
def _places(generator, net, param, shape):
    """A mask like that of max pooling: for each window a pixel within it, in each plane."""
    height, width = net.blobs[param.top[0]].shape[2:]
    rows, columns = np.indices(shape[2:])
    rows, columns = (np.minimum(generator.integers(0, step, shape) + places * step, extent - 1)
                     for places, step, extent in ((rows, max(height // shape[2], 1), height),
                                                  (columns, max(width // shape[3], 1), width)))
    return rows * width + columns


def _given(name, array, shape):
    try:
        array = np.asarray(array, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the array for input '{name}' is not of numbers: {error}") from None
    if array.shape != tuple(shape):
        raise InvalidArgument(f"the array for input '{name}' has shape {array.shape}; it must be {tuple(shape)}")
    return array

"""Conversion of blobs and datums to arrays and back, and preprocessing, loading, resizing and cropping
of images."""
import numpy as np

from . import _packages
from ._caffe import InvalidArgument, IoError
from .proto import caffe_pb2


# ---------------------------------------------------------------------------------------------------------------------
# Messages.

def blobproto_to_array(blob, return_diff=False):
    """The values (or gradients) of a BlobProto as an array of its shape; supports the old 4-D fields."""
    if return_diff:
        values = blob.double_diff or blob.diff
    else:
        values = blob.double_data or blob.data
    legacy = any(blob.HasField(field) for field in ("num", "channels", "height", "width"))
    shape = (blob.num, blob.channels, blob.height, blob.width) if legacy else tuple(blob.shape.dim)
    array = np.array(values)
    if array.size != int(np.prod(shape)):
        raise InvalidArgument(f"blobproto_to_array: {array.size} numbers for shape {shape}")
    return array.reshape(shape)


def array_to_blobproto(arr, diff=None):
    """An array of any number of axes, and its gradient of the same shape, as a BlobProto."""
    arr = np.asarray(arr)
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(arr.shape)
    blob.data.extend(arr.astype(float).flat)
    if diff is not None:
        diff = np.asarray(diff)
        if diff.shape != arr.shape:
            raise InvalidArgument(f"array_to_blobproto: diff has shape {diff.shape}, the array {arr.shape}")
        blob.diff.extend(diff.astype(float).flat)
    return blob


def arraylist_to_blobprotovector_str(arraylist):
    """A list of arrays as the bytes of a BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend([array_to_blobproto(array) for array in arraylist])
    return vector.SerializeToString()


arraylist_to_blobprotovecor_str = arraylist_to_blobprotovector_str  # NVCaffe's spelling


def blobprotovector_str_to_arraylist(text):
    """The arrays of a BlobProtoVector's bytes."""
    vector = caffe_pb2.BlobProtoVector()
    vector.ParseFromString(text)
    return [blobproto_to_array(blob) for blob in vector.blobs]


def array_to_datum(arr, label=None):
    """An array (channels, height, width) as a Datum: uint8 as bytes, other types as float_data."""
    arr = np.asarray(arr)
    if arr.ndim != 3:
        raise InvalidArgument(f"array_to_datum: the array has shape {arr.shape}; a Datum has 3 axes (C, H, W)")
    datum = caffe_pb2.Datum()
    datum.channels, datum.height, datum.width = arr.shape
    if arr.dtype == np.uint8:
        datum.data = arr.tobytes()
    else:
        datum.float_data.extend(arr.astype(float).flat)
    if label is not None:
        datum.label = label
    return datum


def datum_to_array(datum):
    """A Datum without an encoded image as an array (channels, height, width) of uint8, or of float for
    float_data."""
    if datum.encoded:
        raise InvalidArgument("datum_to_array: the datum holds an encoded image; decode datum.data first")
    shape = (datum.channels, datum.height, datum.width)
    array = (np.frombuffer(datum.data, dtype=np.uint8).copy() if len(datum.data) else
             np.array(datum.float_data, dtype=float))
    if array.size != int(np.prod(shape)):
        raise InvalidArgument(f"datum_to_array: {array.size} numbers for shape {shape}")
    return array.reshape(shape)


# ---------------------------------------------------------------------------------------------------------------------
# Preprocessing of images to a net's input.

class Transformer:
    """Preprocesses images to values of input blobs, and back.

    inputs: {input name: shape (N, C, H, W)}. preprocess applies in this order: conversion to float32,
    resize to (H, W), transpose, channel swap, raw_scale (multiply), mean (subtract), input_scale
    (multiply). Steps that were not set are skipped.
    """

    def __init__(self, inputs):
        self.inputs = inputs
        self.transpose, self.channel_swap, self.raw_scale, self.mean, self.input_scale = {}, {}, {}, {}, {}

    def _check(self, in_):
        if in_ not in self.inputs:
            raise InvalidArgument(f"{in_} is not one of the net inputs: {list(self.inputs)}")

    def preprocess(self, in_, data):
        """An image (H, W, C) as float32 (C, H, W) for the input; the class describes the order of
        steps."""
        self._check(in_)
        image = np.asarray(data).astype(np.float32, copy=False)
        wanted = tuple(self.inputs[in_][2:])
        if image.shape[:2] != wanted:
            image = resize_image(image, wanted)
        if self.transpose.get(in_) is not None:
            image = image.transpose(self.transpose[in_])
        if self.channel_swap.get(in_) is not None:
            image = image[self.channel_swap[in_], :, :]
        if self.raw_scale.get(in_) is not None:
            image = image * np.float32(self.raw_scale[in_])
        if self.mean.get(in_) is not None:
            image = image - self.mean[in_]
        if self.input_scale.get(in_) is not None:
            image = image * np.float32(self.input_scale[in_])
        return image

    def deprocess(self, in_, data):
        """The inverse of preprocess, except for the size: an input's values as an image."""
        self._check(in_)
        image = np.array(data, copy=True).squeeze()
        if self.input_scale.get(in_) is not None:
            image = image / self.input_scale[in_]
        if self.mean.get(in_) is not None:
            image = image + self.mean[in_]
        if self.raw_scale.get(in_) is not None:
            image = image / self.raw_scale[in_]
        if self.channel_swap.get(in_) is not None:
            image = image[np.argsort(self.channel_swap[in_]), :, :]
        if self.transpose.get(in_) is not None:
            image = image.transpose(np.argsort(self.transpose[in_]))
        return image

    def set_transpose(self, in_, order):
        """order: the image's axis for each of the input's; (2, 0, 1) for images (H, W, C)."""
        self._check(in_)
        axes = len(self.inputs[in_]) - 1
        if len(order) != axes:
            raise InvalidArgument(f"Transpose order {tuple(order)} needs one number for each of the {axes} axes of "
                                  f"{in_}'s items")
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_, order):
        """order: the image's channel for each of the input's; (2, 1, 0) between RGB and BGR."""
        self._check(in_)
        channels = self.inputs[in_][1]
        if len(order) != channels:
            raise InvalidArgument(f"Channel swap {tuple(order)} needs one number for each of the {channels} channels")
        self.channel_swap[in_] = list(order)

    def set_raw_scale(self, in_, scale):
        """Factor before the mean: 255 maps load_image's [0, 1] to the range of most models."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_, mean):
        """The value to subtract: one number per channel, or an array (C, H, W) of the input's size."""
        self._check(in_)
        mean = np.asarray(mean, dtype=np.float32)
        shape = tuple(self.inputs[in_][1:])
        if mean.ndim == 1:
            if mean.shape[0] not in (1, shape[0]):
                raise InvalidArgument(f"Mean channels incompatible with input: {mean.shape[0]} for {shape[0]}")
            mean = mean[:, np.newaxis, np.newaxis]
        else:
            if mean.ndim == 2:
                mean = mean[np.newaxis, :, :]
            if mean.ndim != 3:
                raise InvalidArgument(f"Mean shape invalid: {mean.shape}; give (C,) or (C, H, W)")
            if mean.shape != shape:
                raise InvalidArgument(f"Mean shape incompatible with input shape: {mean.shape} for {shape}")
        self.mean[in_] = mean

    def set_input_scale(self, in_, scale):
        """Factor applied after the mean."""
        self._check(in_)
        self.input_scale[in_] = scale


# ---------------------------------------------------------------------------------------------------------------------
# Images.

def load_image(filename, color=True):
    """An image file as float32 in [0, 1]: (H, W, 3), RGB, or (H, W, 1) with color=False. Alpha is
    dropped."""
    images = _packages.need("PIL.Image", "load_image")
    try:
        with images.open(filename) as image:
            image.load()
    except OSError as error:
        raise IoError(f"{filename}: {error}") from None
    if image.mode in ("I", "I;16", "F"):  # 16 bits per pixel
        pixels = np.asarray(image, dtype=np.float32) / np.float32(65535 if image.mode != "F" else 1)
    elif color or image.mode not in ("L", "1", "LA"):
        pixels = np.asarray(image.convert("RGB"), dtype=np.float32) / np.float32(255)
    else:
        pixels = np.asarray(image.convert("L"), dtype=np.float32) / np.float32(255)
    if pixels.ndim == 3 and not color:
        pixels = pixels @ np.float32([0.2125, 0.7154, 0.0721])  # luminance of linear RGB
    if pixels.ndim == 2:
        pixels = pixels[:, :, np.newaxis]
        if color:
            pixels = np.tile(pixels, (1, 1, 3))
    return pixels


def resize_image(im, new_dims, interp_order=1):
    """An image (H, W, C) resized to new_dims (height, width), float32, C unchanged.

    interp_order: 0 nearest, 1 linear; higher spline orders need SciPy. With 1 or 3 channels pixel
    centres are mapped to pixel centres, and the outside of the image has its smallest value, as in
    Caffe, which darkens the rim of enlarged images. With other numbers of channels, as in Caffe, the
    centres of the corner pixels stay in place.
    """
    im = np.asarray(im, dtype=np.float32)
    if im.ndim != 3:
        raise InvalidArgument(f"resize_image: the image has shape {im.shape}; it must be (H, W, C)")
    height, width = (int(extent) for extent in new_dims)
    if min(height, width, *im.shape) < 1:
        raise InvalidArgument(f"resize_image: from {im.shape[:2]} to {(height, width)}; extents must be at least 1")
    is_picture = im.shape[2] in (1, 3)
    if interp_order not in (0, 1):
        return _spline(im, (height, width), interp_order, is_picture)
    centres = _centres_to_centres if is_picture else _corners_to_corners
    low = im.min()
    rows = _interpolation(centres(im.shape[0], height), im.shape[0], interp_order)
    columns = _interpolation(centres(im.shape[1], width), im.shape[1], interp_order)
    return (np.einsum("ih,hwc,jw->ijc", rows, im - low, columns, optimize=True) + low).astype(np.float32)


def _centres_to_centres(old, new):
    return (np.arange(new) + 0.5) * old / new - 0.5


def _corners_to_corners(old, new):
    return np.arange(new) * (old - 1) / max(new - 1, 1)


def _interpolation(centre, old, order):
    """Matrix (new, old) of weights; rows lack the weight that falls outside the image."""
    weights = np.zeros((len(centre), old), np.float32)
    if order == 0:
        weights[np.arange(len(centre)), np.clip(np.rint(centre).astype(int), 0, old - 1)] = 1
        return weights
    below = np.floor(centre).astype(int)
    for offset, share in ((0, 1 - (centre - below)), (1, centre - below)):
        index = below + offset
        inside = (index >= 0) & (index < old)
        weights[np.nonzero(inside)[0], index[inside]] += share[inside]
    return weights


def _spline(im, new_dims, interp_order, is_picture):
    zoom = _packages.need("scipy.ndimage", f"resize_image with interp_order {interp_order}, unlike 0 and 1,").zoom
    factors = (new_dims[0] / im.shape[0], new_dims[1] / im.shape[1], 1)
    if not is_picture:
        return zoom(im, factors, order=interp_order).astype(np.float32)
    low, high = im.min(), im.max()
    resized = zoom(im - low, factors, order=interp_order, mode="grid-constant", grid_mode=True) + low
    return np.clip(resized, low, high).astype(np.float32)  # splines overshoot


def oversample(images, crop_dims):
    """Ten crops of each image (H, W, C): four corners and centre, then their mirror images.

    crop_dims: (height, width). Returns float32 (10 * len(images), height, width, C).
    """
    images = list(images)
    if not images:
        raise InvalidArgument("oversample: no images given")
    height, width = images[0].shape[:2]
    crop_height, crop_width = (int(extent) for extent in crop_dims)
    if crop_height > height or crop_width > width:
        raise InvalidArgument(f"oversample: crops of {(crop_height, crop_width)} from images of {(height, width)}")
    places = [(y, x) for y in (0, height - crop_height) for x in (0, width - crop_width)]
    # Caffe rounds the corner of the centre crop, not the centre of the image.
    places.append((int(height / 2.0 - crop_height / 2.0), int(width / 2.0 - crop_width / 2.0)))
    crops = np.empty((10 * len(images), crop_height, crop_width, images[0].shape[-1]), np.float32)
    for i, image in enumerate(images):
        for k, (y, x) in enumerate(places):
            crop = image[y:y + crop_height, x:x + crop_width]
            crops[10 * i + k] = crop
            crops[10 * i + 5 + k] = crop[:, ::-1]
    return crops

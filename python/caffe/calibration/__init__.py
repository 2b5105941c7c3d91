"""Measures the ranges of a net's blobs on real data, for 8-bit inference.

    import caffe
    from caffe.calibration import calibrate

    net = caffe.Net("train_val.prototxt", caffe.TEST, weights="net.caffemodel")
    calibrate(net, iterations=20).save("net.calibration.json")

From the command line: caffe calibrate, or python -m caffe.calibration.
"""
import hashlib
import json
import os
from dataclasses import dataclass, field

import numpy as np

from .._caffe import InvalidArgument, IoError
from .._counted import counted
from ..proto import caffe_pb2
from .clipping import METHODS
from .histogram import Histogram

__all__ = ["Calibration", "FEWEST_IMAGES", "METHODS", "calibrate"]

FORMAT = "cortado calibration 1"
FEWEST_IMAGES = 32
MOST = 1e38  # limit for the numbers of a range


@dataclass
class Calibration:
    """net: its name. method: the clipping method. images: number of different images seen. ranges:
    lowest and highest value by blob, always including 0; values outside are clipped. reads: number
    of images read, counting repeats; not stored in files."""
    net: str
    method: str
    images: int
    ranges: dict = field(default_factory=dict)
    reads: int = field(default=0, compare=False)

    def describe_images(self):
        """For example "10 images, read 200 times in all"."""
        return f"{counted(self.images, 'image')}" + (f", read {self.reads} times in all" if self.reads > self.images else "")

    def save(self, file):
        """Writes a JSON file."""
        partial = f"{os.fspath(file)}.partial"
        with open(partial, "w", encoding="utf-8") as stream:
            json.dump({"format": FORMAT, "net": self.net, "method": self.method, "images": self.images, "ranges": self.ranges},
                      stream, indent=1)
            stream.write("\n")
        os.replace(partial, file)

    @classmethod
    def load(cls, file):
        """Raises IoError if the file cannot be read, InvalidArgument if it is not a calibration."""
        file = os.fspath(file)
        try:
            with open(file, encoding="utf-8") as stream:
                values = json.load(stream)
        except OSError as error:
            raise IoError(f"{file}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"{file}: is not a calibration file: {error}") from None
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise InvalidArgument(f"{file}: is not a calibration file, or of another version; its format should be {FORMAT!r} "
                                  "(caffe calibrate)")
        ranges = values.get("ranges")
        if not isinstance(ranges, dict) or not all(_is_range(one) for one in ranges.values()):
            raise InvalidArgument(f"{file}: each of its ranges should be two numbers, with 0 between them")
        images = values.get("images", 0)
        if not isinstance(images, int):
            raise InvalidArgument(f"{file}: its images should be a number of images, and are {images!r}")
        return cls(str(values.get("net", "")), str(values.get("method", "")), images,
                   {blob: tuple(map(float, one)) for blob, one in ranges.items()})


def _is_range(value):
    if not isinstance(value, list) or len(value) != 2 or not all(type(number) in (int, float) for number in value):
        return False
    return -MOST < value[0] <= 0 <= value[1] < MOST


def calibrate(net, iterations=10, method="entropy", percentile=99.99, progress=None, feed=None):
    """Runs a net on its data and measures the ranges of its blobs.

    net: a caffe.Net of phase TEST whose data layer provides real data, preprocessed as in inference.
    iterations: number of batches. method: "min-max", "percentile" (all but the largest values) or
    "entropy". percentile: percentage of values that are not clipped. progress: called with the number
    of batches done and `iterations`. feed: called with the net before each batch, for nets whose
    inputs the caller fills.

    Returns a Calibration. It has no range for blobs that are all zero or hold values of 1e38 or more.
    Raises InvalidArgument for fewer than FEWEST_IMAGES images (repeats count), for a net of phase
    TRAIN and for values that are not finite.
    """
    if method not in METHODS:
        raise InvalidArgument(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
    if not 0 < percentile <= 100:
        raise InvalidArgument(f"percentile is {percentile}; it must be above 0 and at most 100")
    if net.phase != caffe_pb2.TEST:
        raise InvalidArgument("the net has phase TRAIN; make it with caffe.TEST")
    if net.inputs and feed is None:
        raise InvalidArgument(f"nobody fills the input '{net.inputs[0]}': give a net with a data layer, such as train_val.prototxt, "
                              "or a feed")
    histograms, images, reads = {}, set(), 0
    for iteration in range(iterations):
        if feed is not None:
            feed(net)
        net.forward()
        batch = _images(net)
        images.update(batch)
        reads += len(batch)
        for name, blob in net.blobs.items():
            try:
                histograms.setdefault(name, Histogram()).add(blob.data)
            except ValueError as error:
                raise InvalidArgument(f"blob '{name}' {error}; look at it with caffe test, and at the net's weights") from None
        if progress is not None:
            progress(iteration + 1, iterations)
    if reads < FEWEST_IMAGES:
        raise InvalidArgument(f"{reads} images are too few to tell ranges: run more iterations, for {FEWEST_IMAGES} images at "
                              "least; some hundreds are usual")
    ranges = {name: _range(histogram, METHODS[method](histogram, percentile)) for name, histogram in histograms.items()
              if histogram.limit > 0 and -MOST < histogram.lowest and histogram.highest < MOST}
    return Calibration(net.name, method, len(images), ranges, reads)


def _images(net):
    """Digests of the batch's images, to recognize repeats when the data starts again from the beginning."""
    first = next(iter(net.blobs.values())).data
    images = first if first.ndim else [first]
    return [hashlib.blake2b(np.ascontiguousarray(image), digest_size=16).digest() for image in images]


def _range(histogram, size):
    return max(min(histogram.lowest, 0.0), -size), min(max(histogram.highest, 0.0), size)

"""A data layer written in Python: points near a line, new ones in each pass."""
import json

import caffe
import numpy as np


class LineDataLayer(caffe.Layer):
    """Tops: x (batch, inputs) and y (batch, 1), y = slopes . x + offset + noise.

    param_str: JSON with batch, slopes (a list), offset, noise (standard deviation), seed.
    """

    def setup(self, bottom, top):
        options = json.loads(self.param_str)
        self.batch, self.offset, self.noise = options["batch"], options["offset"], options["noise"]
        self.slopes = np.array(options["slopes"], np.float32)
        self.random = np.random.default_rng(options["seed"])

    def reshape(self, bottom, top):
        top[0].reshape(self.batch, len(self.slopes))
        top[1].reshape(self.batch, 1)

    def forward(self, bottom, top):
        top[0].data[...] = self.random.standard_normal(top[0].shape)
        noise = self.noise * self.random.standard_normal(top[1].shape)
        top[1].data[...] = (top[0].data @ self.slopes)[:, None] + self.offset + noise

    def backward(self, top, propagate_down, bottom):
        pass  # it has no bottoms

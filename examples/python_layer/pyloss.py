"""A loss written in Python: half the squared distance, per item."""
import caffe
import numpy as np


class EuclideanLossLayer(caffe.Layer):
    """Bottoms: predictions and targets, of equal shapes (N, ...). Top: sum((a - b)^2) / 2N, like type EuclideanLoss."""

    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise ValueError(f"EuclideanLossLayer reads predictions and targets: 2 bottoms, not {len(bottom)}")

    def reshape(self, bottom, top):
        if bottom[0].count != bottom[1].count:
            raise ValueError(f"EuclideanLossLayer: predictions have shape {bottom[0].shape}, targets {bottom[1].shape}; "
                             "they must be equal")
        top[0].reshape()  # a scalar

    def forward(self, bottom, top):
        self.distance = bottom[0].data - bottom[1].data.reshape(bottom[0].data.shape)
        top[0].data[...] = np.sum(self.distance ** 2) / len(self.distance) / 2

    def backward(self, top, propagate_down, bottom):
        # The top's diff holds the loss weight.
        gradient = top[0].diff * self.distance / len(self.distance)
        for blob, sign, wanted in zip(bottom, (1, -1), propagate_down):
            if wanted:
                blob.diff[...] = sign * gradient.reshape(blob.diff.shape)

"""AdaSecant against NumPy: the paper's formulas, written down once more."""
import numpy as np
import pytest
from google.protobuf import text_format

import caffe
from caffe.proto import caffe_pb2

STEPS, RATE, DELTA = 60, 0.3, 1e-4

NET = """
  name: "bowl"
  layer { name: "target" type: "Input" top: "target" input_param { shape { dim: 1 dim: 8 } } }
  layer { name: "w" type: "Parameter" top: "w" parameter_param { shape { dim: 1 dim: 8 } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "w" bottom: "target" top: "loss" }
"""


class AdaSecant:
    """Gulcehre et al. 2017, algorithm 1, without the norm of the block. Averages have names of what they average: a is the
    change of the gradient g, d the step."""

    def __init__(self, rate, delta):
        self.rate, self.delta, self.tau = rate, delta, None

    def step(self, g):
        if self.tau is None:
            self.tau, self.last_g, self.d = np.full(g.shape, 2.2), g, -self.rate * np.sqrt(self.delta) * np.sign(g)
            self.mean = {"g": g, "gg": g ** 2, "d": self.d, "dd": self.d ** 2}
            self.mean.update({name: np.zeros(g.shape) for name in ("a", "aa", "ad", "noise", "correlation")})
            return self.d
        a, d, mean = g - self.last_g, self.d, self.mean
        grown = (1 - mean["d"] ** 2 / (mean["dd"] + 1e-30)) * self.tau + 1
        self.tau = np.clip(np.where(self._is_outlier("g", g) | self._is_outlier("a", a), 2.2, grown), 1.5, 1e8)
        new = {"noise": a * (g - mean["g"]), "correlation": (g - mean["g"]) * (self.last_g - mean["g"]), "g": g, "gg": g ** 2,
               "d": d, "dd": d ** 2, "a": a, "aa": a ** 2, "ad": a * d}
        self.mean = mean = {name: (1 - 1 / self.tau) * mean[name] + value / self.tau for name, value in new.items()}
        is_sure = mean["correlation"] > 1e-30
        gamma = np.where(is_sure, np.clip(mean["noise"] / np.where(is_sure, mean["correlation"], 1), 0, 1.8), 1.8)
        less_noise = (g + gamma * mean["g"]) / (1 + gamma)
        square = mean["aa"] + 1e-30
        step = np.sqrt(mean["dd"] / square) - (mean["ad"] - mean["a"] * mean["d"]) / square
        self.last_g, self.d = g, -self.rate * np.maximum(step, 0) * less_noise
        return self.d

    def _is_outlier(self, name, value):
        variance = self.mean[2 * name] - self.mean[name] ** 2
        return (value - self.mean[name]) ** 2 > 4 * np.maximum(variance, 0)


@pytest.mark.parametrize("noise", [0.1, 0.5, 3.0])
def test_the_papers_formulas(noise):
    draw = np.random.default_rng(5)
    definition = caffe_pb2.SolverParameter()
    text_format.Parse(f"type: 'AdaSecant' base_lr: {RATE} delta: {DELTA} lr_policy: 'fixed' max_iter: {STEPS} "
                      f"snapshot_after_train: false net_param {{ {NET} }}", definition)
    solver, reference = caffe.get_solver(definition), AdaSecant(RATE, DELTA)
    weights = np.zeros((1, 8))
    for _ in range(STEPS):
        target = (np.array([1, -1, 0.1, -2, 0.5, 1, 3, -0.2]) + noise * draw.normal(size=(1, 8))).astype(np.float32)
        solver.net.blobs["target"].data[...] = target
        solver.step(1)
        weights = weights + reference.step(weights - target)
        found = solver.net.params["w"][0].data
        np.testing.assert_allclose(found, weights, rtol=1e-4, atol=1e-5)
        weights = found.astype(float)  # so that rounding does not add up

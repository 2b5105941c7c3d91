"""Normalization."""
import numpy as np

from .registry import reads


@reads("BatchNormalization")
def batch_normalization(node):
    scale, shift, mean, variance = (node.weights(k, "statistics") for k in range(1, 5))
    plain = np.all(scale == 1) and np.all(shift == 0)
    between = node.outputs[0] if plain else node.scratch("normalised")
    node.require(not node.get("training_mode", 0), "statistics of the batch")
    node.layer("BatchNorm", tops=[between], blobs=[mean, variance, np.ones(1)],
               batch_norm_param={"eps": node.get("epsilon", 1e-5), "use_global_stats": True})
    if not plain:
        node.layer("Scale", bottoms=[between], blobs=[scale, shift], scale_param={"bias_term": True})


@reads("LayerNormalization")
def layer_normalization(node):
    scale = node.weights(1, "factors")
    shift = node.weights(2, "terms") if node.has(2) else np.zeros_like(scale)
    axis = node.axis(node.get("axis", -1))
    shape = node.shape()[axis:]
    node.layer("LayerNorm", blobs=[np.broadcast_to(scale, shape), np.broadcast_to(shift, shape)],
               layer_norm_param={"axis": axis, "eps": node.get("epsilon", 1e-5)})


@reads("RMSNormalization")
def rms_normalization(node):
    axis = node.axis(node.get("axis", -1))
    node.layer("RMSNorm", blobs=[np.broadcast_to(node.weights(1, "factors"), node.shape()[axis:])],
               rms_norm_param={"axis": axis, "eps": node.get("epsilon", 1e-5)})


@reads("GroupNormalization")
def group_normalization(node):
    node.layer("GroupNorm", blobs=[node.weights(1, "factors"), node.weights(2, "terms")],
               group_norm_param={"num_groups": node.get("num_groups"), "eps": node.get("epsilon", 1e-5)})


@reads("InstanceNormalization")
def instance_normalization(node):
    node.layer("InstanceNorm", blobs=[node.weights(1, "factors"), node.weights(2, "terms")],
               group_norm_param={"eps": node.get("epsilon", 1e-5)})


@reads("LRN")
def lrn(node):
    node.layer("LRN", lrn_param={"local_size": node.get("size"), "alpha": node.get("alpha", 1e-4),
                                 "beta": node.get("beta", 0.75), "k": node.get("bias", 1.0)})

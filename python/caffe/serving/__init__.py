"""Answers requests over HTTP, for `caffe serve`.

The protocol is the Open Inference Protocol, version 2 (github.com/kserve/open-inference-protocol), with the binary
tensors and the classification of Triton's extensions. `model` holds a net, `batcher` collects requests into batches,
`tensors` reads and writes the protocol's messages, `app` has the addresses.
"""
from .batcher import Batcher, QueueFull
from .model import Model

__all__ = ["Batcher", "Model", "QueueFull"]

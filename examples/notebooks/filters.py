# %% [markdown]
# # What a net sees: classification, blobs and filters
#
# A small net is trained for a few seconds on rendered digits; then it is looked into: its answer, the blobs on
# the way, its filters, and what of the image the answer hangs on. With CaffeNet the same cells work, given its
# weights and photographs.

# %%
import os
import sys

import matplotlib.pyplot as plt
import numpy as np

import caffe
from google.protobuf import text_format

# Jupyter starts in the notebook's folder; paths are relative to the root of the repository.
while not os.path.isdir("scripts") and os.getcwd() != "/":
    os.chdir("..")
sys.path.insert(0, "scripts")
import make_digits

definition = caffe.proto.caffe_pb2.NetParameter()
with open("examples/mnist/lenet_train_test.prototxt") as file:
    text_format.Parse(file.read(), definition)
# The database's layers go, arrays come in their place.
definition = caffe.summary.with_inputs(definition, {"data": [100, 1, 28, 28], "label": [100]})
with open("net.prototxt", "w") as file:
    file.write(str(definition))
with open("solver.prototxt", "w") as file:
    file.write('net: "net.prototxt" base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" random_seed: 1')

images, labels = make_digits.make(1, 4000)
inputs = images[:, np.newaxis].astype(np.float32) / 256
solver = caffe.get_solver("solver.prototxt")
for begin in [*range(0, 4000, 100)] * 4:
    solver.net.blobs["data"].data[...] = inputs[begin:begin + 100]
    solver.net.blobs["label"].data[...] = labels[begin:begin + 100]
    solver.step(1)
solver.net.save("digits.caffemodel")
print(f"loss of the last batch: {solver.loss:.2f}")
assert solver.loss < 0.5

# %% [markdown]
# ## The answer
#
# `lenet.prototxt` is the same net for use: an input, and probabilities.

# %%
net = caffe.Net("examples/mnist/lenet.prototxt", caffe.TEST, weights="digits.caffemodel")
net.blobs["data"].reshape(1, 1, 28, 28)
(image,), (label,) = make_digits.make(5, 1)
probabilities = net.forward(data=image[None, None] / 256)["prob"][0].copy()
figure, (left, right) = plt.subplots(1, 2, figsize=(6, 2))
left.imshow(image, cmap="gray")
left.axis("off")
right.bar(range(10), probabilities)
right.set_xticks(range(10))
print(f"a {label}, seen as {probabilities.argmax()}")
assert probabilities.argmax() == label

# %% [markdown]
# ## The blobs on the way, and the parameters

# %%
for name, blob in net.blobs.items():
    print(f"{name:6} {tuple(blob.shape)}")
for name, blobs in net.params.items():
    print(f"{name:6} weights {tuple(blobs[0].shape)}, biases {tuple(blobs[1].shape)}")

# %%
def tiles(data, columns=10):
    """Images (n, h, w) in one picture, each stretched to [0, 1]."""
    low, high = data.min(axis=(1, 2), keepdims=True), data.max(axis=(1, 2), keepdims=True)
    data = np.pad((data - low) / np.maximum(high - low, 1e-9), ((0, -len(data) % columns), (1, 1), (1, 1)))
    return np.vstack([np.hstack(row) for row in data.reshape(-1, columns, *data.shape[1:])])


for data, title in ((net.params["conv1"][0].data[:, 0], "filters of conv1"), (net.blobs["conv1"].data[0], "conv1"),
                    (net.blobs["pool2"].data[0], "pool2")):
    plt.figure(figsize=(6, 6 * -(-len(data) // 10) / 10 + 0.3))
    plt.imshow(tiles(data), cmap="gray")
    plt.title(title)
    plt.axis("off")

# %% [markdown]
# ## What the answer hangs on
#
# A grey patch wanders over the image; where the probability of the right answer falls, something mattered. All
# places make one batch.

# %%
places = [(y, x) for y in range(0, 24, 2) for x in range(0, 24, 2)]
covered = np.tile(image.astype(np.float32) / 256, (len(places), 1, 1, 1))
for patch, (y, x) in zip(covered[:, 0], places):
    patch[y:y + 6, x:x + 6] = 0.5
scores = net.forward_all(data=covered)["prob"][:, label].reshape(12, 12)
plt.figure(figsize=(4, 2))
plt.subplot(121).imshow(image, cmap="gray")
plt.subplot(122).imshow(scores, vmin=0, vmax=1)
assert scores.min() < probabilities[label]

# %% [markdown]
# # LeNet, from its definition to its mistakes
#
# A net is written as calls, its solver as a few fields, and the loop around `step` is ours. The digits are
# rendered by `scripts/make_digits.py`, so that nothing has to be downloaded.

# %%
import os
import sys

import matplotlib.pyplot as plt
import numpy as np

import caffe
from caffe import layers as L, params as P

# Jupyter starts in the notebook's folder; paths are relative to the root of the repository.
while not os.path.isdir("scripts") and os.getcwd() != "/":
    os.chdir("..")
sys.path.insert(0, "scripts")
import make_digits

train_images, train_labels = make_digits.make(1, 4000)
test_images, test_labels = make_digits.make(2, 1000)
print(train_images.shape, train_images.dtype, "labels", np.bincount(train_labels))

# %%
plt.figure(figsize=(8, 1))
plt.imshow(np.hstack(train_images[:12]), cmap="gray")
plt.title(" ".join(map(str, train_labels[:12])))
plt.axis("off");

# %% [markdown]
# ## The net
#
# `MemoryData` takes its batches from arrays. Everything else is LeNet.

# %%
def lenet(batch_size):
    n = caffe.NetSpec()
    n.data, n.label = L.MemoryData(ntop=2, memory_data_param=dict(
        batch_size=batch_size, channels=1, height=28, width=28))
    weights = dict(weight_filler=dict(type="xavier"))
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, **weights)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(n.pool1, kernel_size=5, num_output=50, **weights)
    n.pool2 = L.Pooling(n.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.ip1 = L.InnerProduct(n.pool2, num_output=500, **weights)
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(n.relu1, num_output=10, **weights)
    n.accuracy = L.Accuracy(n.ip2, n.label, include=dict(phase=caffe.TEST))
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    return n.to_proto()


with open("lenet.prototxt", "w") as file:
    file.write(str(lenet(batch_size=100)))
with open("solver.prototxt", "w") as file:
    file.write("""
        train_net: "lenet.prototxt" test_net: "lenet.prototxt"
        test_iter: 10 test_interval: 1000 test_initialization: false
        base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75
        max_iter: 200 random_seed: 1 snapshot_after_train: false
    """)

solver = caffe.get_solver("solver.prototxt")
solver.test_nets[0].share_with(solver.net)


def as_input(images):
    return np.ascontiguousarray(images[:, np.newaxis], np.float32) / 256


solver.net.set_input_arrays(as_input(train_images), train_labels.astype(np.float32))
solver.test_nets[0].set_input_arrays(as_input(test_images), test_labels.astype(np.float32))
print(caffe.summary.table(solver.net))

# %% [markdown]
# ## The loop

# %%
losses, accuracies = [], {}
for iteration in range(200):
    solver.step(1)
    losses.append(float(solver.net.blobs["loss"].data))
    if iteration % 20 == 19:
        net = solver.test_nets[0]
        accuracies[iteration + 1] = np.mean([float(net.forward()["accuracy"]) for _ in range(10)])

figure, left = plt.subplots(figsize=(6, 3))
left.plot(losses)
left.set(xlabel="iteration", ylabel="train loss")
right = left.twinx()
right.plot(list(accuracies), list(accuracies.values()), "r.-")
right.set_ylabel("test accuracy", color="r")
print(f"test accuracy {accuracies[200]:.2f}")
assert accuracies[200] > 0.85

# %% [markdown]
# ## What it gets wrong

# %%
net = solver.test_nets[0]
guesses = np.concatenate([net.forward(blobs=["ip2"])["ip2"].argmax(axis=1) for _ in range(10)])
wrong = np.flatnonzero(guesses != test_labels)[:12]
plt.figure(figsize=(8, 1))
plt.imshow(np.hstack(test_images[wrong]), cmap="gray")
plt.title("  ".join(f"{test_labels[i]} as {guesses[i]}" for i in wrong), fontsize=8)
plt.axis("off")
assert np.mean(guesses == test_labels) > 0.85

# %% [markdown]
# # Net surgery: weights are arrays
#
# Filters written by hand, and a classifier that is turned into a net for images of any size. The scripts of
# `examples/net_surgery` do the same from the command line.

# %%
import os
import sys

import matplotlib.pyplot as plt
import numpy as np

import caffe

# Jupyter starts in the notebook's folder; paths are relative to the root of the repository.
while not os.path.isdir("scripts") and os.getcwd() != "/":
    os.chdir("..")
sys.path[:0] = ["scripts", "examples/net_surgery"]
import make_digits
from edit_weights import blur, edge
from fully_convolutional import convolutional, resize_input, transplant

# %% [markdown]
# ## Filters by hand
#
# `data` of a parameter is a view of the net's own memory: writing there is all that it takes.

# %%
net = caffe.Net("examples/net_surgery/conv.prototxt", caffe.TEST)
weights, bias = net.params["conv"]
weights.data[:, 0] = [blur(), edge(), edge().T]

digits, _ = make_digits.make(3, 9)
picture = np.zeros((100, 100), np.float32)
picture[8:92, 8:92] = np.vstack([np.hstack(digits[row:row + 3]) for row in (0, 3, 6)]) / 256
result = net.forward(data=picture[None, None])["conv"][0]
figure, axes = plt.subplots(1, 4, figsize=(8, 2))
for axis, data, title in zip(axes, [picture, *result], ["data", "blur", "edges across", "edges down"]):
    axis.imshow(data, cmap="gray")
    axis.set_title(title)
    axis.axis("off")

# %% [markdown]
# A bias moves a whole channel, and a factor scales it:

# %%
before = result[0].copy()
bias.data[0] = 1
weights.data[0] *= 2
after = net.forward()["conv"][0, 0]
print("doubled, and 1 more:", np.allclose(after, 2 * before + 1, atol=1e-5))
assert np.allclose(after, 2 * before + 1, atol=1e-5)

# %% [markdown]
# ## From a classifier to a map of answers
#
# An inner product over a C x H x W blob is a convolution with a window of H x W and the same numbers as weights.

# %%
caffe.set_random_seed(1)
classifier = caffe.Net("examples/mnist/lenet.prototxt", caffe.TEST)
for name, blobs in classifier.params.items():
    print(f"{name:5} {tuple(blobs[0].shape)}")
definition = convolutional(classifier)
resize_input(definition, 100, 100)
everywhere = caffe.Net(definition, caffe.TEST)
transplant(classifier, everywhere)
for name, blobs in everywhere.params.items():
    print(f"{name:9} {tuple(blobs[0].shape)}")

# %% [markdown]
# One pass over the picture gives an answer for each 28 x 28 window, every four pixels: the same numbers as from
# the classifier, window by window.

# %%
answers = everywhere.forward(data=picture[None, None])["prob"][0]
print("answers:", answers.shape)
windows = np.stack([picture[None, y:y + 28, x:x + 28] for y in range(0, 73, 4) for x in range(0, 73, 4)])
one_by_one = classifier.forward_all(data=windows)["prob"].T.reshape(answers.shape)
print("equal:", np.allclose(answers, one_by_one, atol=1e-5))
assert np.allclose(answers, one_by_one, atol=1e-5)

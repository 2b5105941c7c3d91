"""LeNet (LeCun et al. 1998, as Caffe's MNIST example simplifies it), for benchmarks; to train it see examples/mnist."""
from caffe.zoo.common import Head, benchmark


def lenet(model, data):
    x = model.pool("pool1", model.conv("conv1", data, 20, 5), "MAX", 2, 2)
    x = model.pool("pool2", model.conv("conv2", x, 50, 5), "MAX", 2, 2)
    x = model.relu("relu1", model.inner_product("ip1", x, 500))
    return [Head(model.inner_product("ip2", x, 10))]


def files():
    yield "benchmarks/nets/lenet.prototxt", benchmark("LeNet", lenet, (1, 28, 28), 64), ""

"""Layers without a net."""
import caffe
import numpy as np
import pytest
from caffe.proto import caffe_pb2


def inner_product():
    message = caffe_pb2.LayerParameter(name="ip", type="InnerProduct", bottom=["x"], top=["y"])
    message.inner_product_param.num_output = 2
    message.inner_product_param.weight_filler.type = "xavier"
    return message


def test_parameters_go_to_and_fro():
    param = caffe.LayerParameter(inner_product())
    assert param.to_python() == inner_product() and param.to_python() is not param.to_python()
    param.from_python(caffe_pb2.LayerParameter(name="other"))
    assert param.to_python().name == "other" and caffe.LayerParameter().to_python().name == ""
    assert caffe.LayerParameter("type: 'Convolution'").to_python().type == "Convolution"
    with pytest.raises(caffe.InvalidArgument, match="LayerParameter: 1:1 .*typ"):
        caffe.LayerParameter("typ: 'Convolution'")


def test_forward_and_backward():
    layer = caffe.create_layer(caffe.LayerParameter(inner_product()))
    bottom, top = [caffe.Blob(4, 3)], [caffe.Blob()]
    with pytest.raises(caffe.InvalidArgument, match="call SetUp"):
        layer.Forward(bottom, top)
    assert isinstance(layer, caffe.LayerBase) and layer.type == "InnerProduct" and len(layer.blobs) == 0
    layer.SetUp(bottom, top)
    assert top[0].shape == (4, 2) and [blob.shape for blob in layer.blobs] == [(2, 3), (2,)]
    bottom[0].data[...] = np.arange(12).reshape(4, 3)
    assert layer.Forward(bottom, top) == 0
    assert top[0].data == pytest.approx(bottom[0].data @ layer.blobs[0].data.T, rel=1e-5, abs=1e-5)
    top[0].diff[...] = 1
    layer.Backward(top, [True], bottom)
    assert bottom[0].diff == pytest.approx(np.tile(layer.blobs[0].data.sum(0), (4, 1)), rel=1e-5)
    assert layer.blobs[1].diff == pytest.approx([4, 4])
    bottom[0].reshape(6, 3)
    layer.Forward(bottom, top)
    assert top[0].shape == (6, 2)


def test_a_loss_and_a_mistake():
    layer = caffe.create_layer(caffe_pb2.LayerParameter(name="loss", type="EuclideanLoss"))
    bottom, top = [caffe.Blob(2, 3), caffe.Blob(2, 3)], [caffe.Blob()]
    bottom[0].data[...] = 2
    layer.SetUp(bottom, top)
    assert layer.Forward(bottom, top) == 6 and top[0].data == 6
    layer.Backward(top, [False, True], bottom)
    assert (bottom[0].diff == 0).all() and bottom[1].diff.shape == (2, 3)
    with pytest.raises(caffe.InvalidArgument, match="takes 2 bottom"):
        layer.SetUp(bottom[:1], top)


def test_devices():
    caffe.set_devices([0])
    for wrong in ([], [-1], [0, 1]):
        with pytest.raises(caffe.Error):
            caffe.set_devices(wrong)

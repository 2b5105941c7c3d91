"""Blobs: shapes, views that write through, lifetimes."""
import gc

import caffe
import numpy as np
import pytest

from built_package import SIMPLE


def test_shape_and_legacy_extents(simple):
    blob = simple.blobs["data"]
    assert list(blob.shape) == [5, 2, 6, 7] and blob.shape[1] == 2 and blob.count == 420
    assert (blob.num, blob.channels, blob.height, blob.width) == (5, 2, 6, 7)
    label = simple.blobs["label"]
    assert (label.num, label.channels, label.height, label.width) == (5, 1, 1, 1)
    assert repr(blob) == "<caffe.Blob 5x2x6x7 float>"
    with pytest.raises(AttributeError):
        blob.shape = (1, 2)
    blob.reshape(1, 2, 3, 4, 5)
    with pytest.raises(caffe.InvalidArgument, match="up to 4 axes"):
        blob.num


def test_arrays_are_float32_views_that_write_through(simple):
    data = simple.blobs["data"].data
    assert data.dtype == np.float32 and data.flags.writeable and data.flags.c_contiguous
    data[0, 1, 2, 3] = 7
    assert simple.blobs["data"].data[0, 1, 2, 3] == 7
    simple.blobs["data"].data = 2
    assert (data == 2).all()
    simple.blobs["data"].diff[...] = 3
    assert simple.blobs["data"].diff.sum() == 3 * data.size and (data == 2).all()


def test_views_taken_before_a_run_show_its_results(simple):
    held = {name: blob.data for name, blob in simple.blobs.items()}
    diffs = {name: blob.diff for name, blob in simple.blobs.items()}
    held["data"][...] *= 2
    simple.forward()
    simple.backward()
    fresh = caffe.Net(simple.definition, caffe.TRAIN)
    fresh.share_with(simple)
    fresh.blobs["data"].data[...] = held["data"]
    fresh.blobs["label"].data[...] = held["label"]
    fresh.forward()
    fresh.backward()
    for name, blob in fresh.blobs.items():
        np.testing.assert_allclose(held[name], blob.data, rtol=1e-5, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(diffs[name], blob.diff, rtol=1e-5, atol=1e-6, err_msg=name)
        assert np.abs(held[name]).sum() > 0


def test_a_view_of_an_inner_blob_can_be_written_between_layers(simple):
    simple.forward()
    conv = simple.blobs["conv"].data  # stored channels-last
    conv[...] = -1
    assert (simple.forward(start="relu", end="relu")["relu"] == 0).all()
    conv[:, 3] = 5
    relu = simple.forward(start="relu", end="relu")["relu"]
    assert (relu[:, 3] == 5).all() and relu.sum() == 5 * 5 * 6 * 7


def test_a_changed_blob_reaches_every_reader(write):
    text = SIMPLE.split("layer { name: 'ip'")[0] + "".join(
        f"layer {{ name: 'flat{i}' type: 'Flatten' bottom: 'conv' top: 'flat{i}' }}" for i in range(2))
    net = caffe.Net(write(text), caffe.TEST)
    net.forward()
    net.blobs["conv"].data[...] = 3
    for name in ("flat1", "flat0"):
        assert (net.forward(start=name, end=name)[name] == 3).all()


def test_a_held_view_does_not_undo_what_a_sharing_net_wrote(simple):
    other = caffe.Net(simple.definition, caffe.TRAIN)
    other.share_with(simple)
    view = other.params["ip"][0].data
    simple.params["ip"][0].data[...] = 4
    other.forward()
    assert (view == 4).all() and (simple.params["ip"][0].data == 4).all()


def test_views_outlive_the_net(simple, write):
    weights, conv = simple.params["conv"][0].data, simple.blobs["conv"].data
    blob = simple.blobs["ip"]
    expected = weights.copy()
    del simple
    gc.collect()
    assert (weights == expected).all() and conv.shape == (5, 11, 6, 7)
    assert blob.data.shape == (5, 4)


def test_scalar_and_empty_blobs(simple):
    loss = simple.forward()["loss"]
    assert loss.shape == () and float(loss) > 0
    blob = simple.blobs["data"]
    blob.reshape(0, 3)
    assert blob.data.shape == (0, 3) and blob.count == 0


def test_reshape_keeps_values_of_the_same_count(simple):
    blob = simple.blobs["data"]
    before = blob.data.copy()
    blob.reshape(5, 84)
    assert (blob.data == before.reshape(5, 84)).all()
    blob.reshape((2, 3))
    assert blob.data.shape == (2, 3) and (blob.data == 0).all()
    for bad in [(-1, 2), ("a",), (2.5,), (1 << 40,)]:
        with pytest.raises((caffe.InvalidArgument, TypeError)):
            blob.reshape(*bad)
    assert blob.shape == (2, 3)


def test_parameter_vectors(simple):
    params = simple.params["conv"]
    assert len(params) == 2 and [tuple(p.shape) for p in params] == [(11, 2, 3, 3), (11,)]
    assert params[-1].shape == (11,) and len(params[:1]) == 1
    for _ in range(20):  # the slice's elements outlive it
        assert [p.shape for p in params[:]] == [p.shape for p in params]
    with pytest.raises(IndexError, match="blob 2"):
        params[2]


def test_dlpack_shares_memory(simple):
    blob = simple.blobs["data"]
    shared = np.from_dlpack(blob)
    blob.data[0, 0, 0, 0] = 42
    assert shared[0, 0, 0, 0] == 42

    class Tensor:  # as in a library without __array__
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    values = np.full((5, 2, 6, 7), 3, np.float32)
    simple.forward(data=Tensor(values), label=np.zeros(5))
    assert (blob.data == 3).all()
    assert np.asarray(blob).shape == (5, 2, 6, 7) and np.asarray(blob, np.float64).dtype == np.float64

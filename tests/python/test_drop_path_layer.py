"""DropPath zeroes whole items in training and does nothing in testing."""
import caffe
import numpy as np
import pytest

ITEMS = 2000


def drop_path(ratio):
    return f"layer {{ name: 'l' type: 'DropPath' bottom: 'x0' top: 'y' drop_path_param {{ drop_ratio: {ratio} }} }}"


@pytest.fixture(name="net_of")
def make_net(write):
    """net_of(ratio, phase): a net with the layer and a bottom of ITEMS items, after forward."""
    def make(ratio, phase=caffe.TRAIN, dtype="FLOAT", seed=5):
        caffe.set_random_seed(seed)
        net = caffe.Net(write(f"default_forward_type: {dtype} default_backward_type: {dtype} force_backward: true layer {{ name: 'x0' "
                              f"type: 'Input' top: 'x0' input_param {{ shape {{ dim: {ITEMS} dim: 2 dim: 3 }} }} }} {drop_path(ratio)}"), phase)
        net.blobs["x0"].data[...] = np.random.default_rng(2).integers(1, 9, (ITEMS, 2, 3))
        net.forward()
        return net
    return make


def factors(net, blob="data"):
    """The number by which each item was multiplied."""
    x, y = net.blobs["x0"], net.blobs["y"]
    part = y.data / x.data if blob == "data" else x.diff / y.diff
    items = part.reshape(ITEMS, -1)
    assert (items == items[:, :1]).all()
    return items[:, 0]


@pytest.mark.parametrize("dtype", ["FLOAT", "DOUBLE", "BFLOAT16", "FLOAT16"])
def test_items_are_0_or_scaled_in_training(net_of, dtype):
    kept = factors(net_of(0.5, dtype=dtype))
    assert set(kept) == {0, 2}
    assert abs(kept.mean() - 1) < 0.1  # of 2,000 items, all runs with this seed keep the same ones


def test_the_ratio_is_that_of_dropped_items(net_of):
    kept = factors(net_of(0.2))
    assert kept.max() == pytest.approx(1.25) and abs((kept == 0).mean() - 0.2) < 0.04


def test_gradients_pass_through_kept_items_alone(net_of):
    net = net_of(0.5)
    net.blobs["y"].diff[...] = np.random.default_rng(3).integers(1, 9, (ITEMS, 2, 3))
    kept = factors(net)
    net.backward()
    assert (factors(net, "diff") == kept).all()


def test_each_pass_drops_other_items(net_of):
    net = net_of(0.5)
    first = factors(net)
    net.forward()
    assert (factors(net) != first).any()
    assert (factors(net_of(0.5)) == first).all() and (factors(net_of(0.5, seed=6)) != first).any()


def test_nothing_happens_in_testing_or_without_a_ratio(net_of):
    assert (factors(net_of(0.5, caffe.TEST)) == 1).all()
    assert (factors(net_of(0)) == 1).all()


@pytest.mark.parametrize("ratio", ["1", "-0.1", "2", "nan"])
def test_a_ratio_is_a_probability_below_1(run_layer, ratio):
    with pytest.raises(caffe.InvalidArgument, match=f"drop_ratio is {ratio}; it must be at least 0 and less than 1"):
        run_layer(drop_path(ratio), np.ones((2, 3)))


def test_a_scalar_has_no_items(run_layer):
    with pytest.raises(caffe.InvalidArgument, match="the bottom is a scalar; it must have items"):
        run_layer(drop_path(0.5), np.ones(()))

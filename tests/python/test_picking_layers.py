"""Compares layers that pick elements by indices, or put them, with NumPy."""
import caffe
import numpy as np
import pytest

from test_broadcast_layers import gradients


def draw(*shape):
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape)


def gather(axis=None):
    options = "" if axis is None else f"gather_param {{ axis: {axis} }}"
    return f"layer {{ name: 'l' type: 'Gather' bottom: 'x0' bottom: 'x1' top: 'y' {options} }}"


@pytest.mark.parametrize("shape, axis, indices", [
    ((5,), 0, [4, 0, -1, -5]), ((5, 3), None, [[1, 1], [-2, 0]]), ((2, 5, 3), 1, [4, 4, 0]), ((2, 3, 5), -1, [[0], [-1]]),
    ((2, 5), 1, 3), ((2, 5, 0), 1, [1]), ((4, 2), 0, [])])
def test_indices_pick_along_an_axis(run_layer, write, shape, axis, indices):
    x, indices = draw(*shape), np.array(indices, float)
    want = np.take(x, indices.astype(int), axis or 0)
    y = run_layer(gather(axis), x, indices)["y"]
    assert y.shape == want.shape and np.allclose(y, want)
    dy, dx = draw(*want.shape), np.zeros_like(x)
    np.add.at(np.moveaxis(dx, axis or 0, 0), indices.astype(int).ravel(),
              np.moveaxis(dy.reshape(*x.shape[:(axis or 0) % x.ndim], -1, *x.shape[(axis or 0) % x.ndim + 1:]) if x.size and indices.size
                          else np.zeros((*x.shape[:(axis or 0) % x.ndim], indices.size, *x.shape[(axis or 0) % x.ndim + 1:])),
                          axis or 0, 0))
    found = gradients(write, gather(axis), [x, indices], dy)
    assert np.allclose(found[0], dx, rtol=1e-6)


@pytest.mark.parametrize("index, message", [
    (5, "index 5 at position 1 of the indices must be a whole number in -5..4, because the axis has 5 elements"),
    (-6, "index -6 at position 1"), (1.5, "index 1.5 at position 1"), (np.nan, "index nan at position 1"), (1e30, "index 1e\\+30 at"),
])
def test_an_index_that_names_nothing_is_refused(run_layer, index, message):
    for layer in (gather(), "layer { name: 'l' type: 'Scatter' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"):
        with pytest.raises(caffe.InvalidArgument, match=message):
            run_layer(layer, np.zeros(5), np.array([0, index]), *([np.zeros(2)] if "Scatter" in layer else []))


def test_an_axis_without_elements_is_refused(run_layer):
    with pytest.raises(caffe.InvalidArgument, match="axis 0 of bottom 0 .* has no elements, but bottom 1 has 2 indices"):
        run_layer(gather(), np.zeros((0, 3)), np.zeros(2))


def scatter(axis, add):
    return (f"layer {{ name: 'l' type: 'Scatter' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' "
            f"scatter_param {{ axis: {axis} add: {str(add).lower()} }} }}")


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("shape, count, axis", [((6,), 4, 0), ((4, 5), 7, -1), ((5, 2, 3), 3, 0), ((2, 5, 3), 8, 1), ((2, 5), 0, 1)])
def test_updates_go_to_the_places_of_indices(run_layer, write, shape, count, axis, add):
    x, shape_of_updates = draw(*shape), list(shape)
    shape_of_updates[axis] = count
    updates = draw(*shape_of_updates)
    indices = np.random.default_rng(5).integers(-shape[axis], shape[axis], shape_of_updates)
    want, dy = x.copy(), draw(*shape)
    dx, dupdates, owners = dy.copy(), np.zeros_like(updates), {}
    for at in np.ndindex(*shape_of_updates):
        place = list(at)
        place[axis] = indices[at] % shape[axis]
        place = tuple(place)
        want[place] = updates[at] + (want[place] if add else 0)
        dupdates[at] = dy[place]
        if not add:
            dx[place] = 0
            if place in owners:
                dupdates[owners[place]] = 0
            owners[place] = at
    assert np.allclose(run_layer(scatter(axis, add), x, indices, updates)["y"], want, rtol=1e-6)
    found = gradients(write, scatter(axis, add), [x, indices.astype(float), updates], dy)
    assert np.allclose(found[0], dx, rtol=1e-6) and np.allclose(found[2], dupdates, rtol=1e-6)


@pytest.mark.parametrize("shapes, message", [
    ([(5, 2), (3, 2), (2, 2)], "the indices and the updates have shapes 3x2 and 2x2"),
    ([(5, 2), (3, 1), (3, 1)], "the data and the indices have shapes 5x2 and 3x1; they must be equal except along axis 0"),
    ([(5, 2), (3,), (3,)], "the data and the indices have shapes 5x2 and 3"),
])
def test_updates_that_do_not_fit_are_refused(run_layer, shapes, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(scatter(0, False), *map(np.zeros, shapes))


def top_k(options, tops="top: 'y' top: 'places'"):
    return f"layer {{ name: 'l' type: 'TopK' bottom: 'x0' {tops} top_k_param {{ {options} }} }}"


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("shape, axis, k", [((7,), 0, 3), ((3, 9), -1, 9), ((3, 6, 2), 1, 2), ((5, 4), 0, 1)])
def test_the_most_extreme_numbers_in_order(run_layer, write, shape, axis, k, largest):
    x = np.random.default_rng(1).integers(0, 4, shape).astype(float)  # with ties
    x.ravel()[::5] = np.nan
    # NumPy puts NaN last, and a stable sort keeps equal numbers in order.
    key = np.where(np.isnan(x), np.inf, x)
    order = np.argsort(-key if largest else key, axis, kind="stable").take(range(k), axis)
    options = f"k: {k} axis: {axis} largest: {str(largest).lower()}"
    out = run_layer(top_k(options), x)
    assert (out["places"] == order).all()
    assert np.array_equal(out["y"], np.take_along_axis(x, order, axis), equal_nan=True)
    assert np.array_equal(run_layer(top_k(options, "top: 'y'"), x)["y"], out["y"], equal_nan=True)
    dy, dx = draw(*order.shape), np.zeros_like(x)
    np.put_along_axis(dx, order, dy, axis)
    for tops in ("top: 'y' top: 'places'", "top: 'y'"):
        assert np.allclose(gradients(write, top_k(options, tops), [x], dy)[0], dx, rtol=1e-6)


@pytest.mark.parametrize("options, message", [
    ("k: 0", "k is 0; it must be at least 1"), ("k: 5", "k is 5, but axis 1 of shape 2x4 has 4 elements"), ("axis: 2", "axis 2"),
])
def test_a_wrong_k_is_refused(run_layer, options, message):
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(top_k(options), np.zeros((2, 4)))

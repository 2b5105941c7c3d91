"""Compares layers that broadcast their bottoms with NumPy."""
import caffe
import numpy as np
import pytest

OPERATIONS = {"ADD": np.add, "SUBTRACT": np.subtract, "MULTIPLY": np.multiply, "DIVIDE": np.divide, "MAXIMUM": np.maximum,
              "MINIMUM": np.minimum, "POWER": np.power}
SHAPES = [((2, 3), (2, 3)), ((2, 3, 4), (4,)), ((3, 1), (2, 3, 4)), ((2, 1, 4, 1), (3, 1, 5)), ((2, 3), (1,)), ((1, 1), (5,)),
          ((2, 3, 4, 5), (2, 3, 1, 1)), ((2, 0, 3), (1, 3))]


def draw(shape, low=0.5, high=2):
    return np.random.default_rng(len(shape)).uniform(low, high, shape)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_two_bottoms_are_combined(run_layer, operation, shapes):
    a, b = map(draw, shapes)
    y = run_layer(f"layer {{ name: 'l' type: 'Binary' bottom: 'x0' bottom: 'x1' top: 'y' binary_param {{ operation: {operation} }} }}",
                  a, b)["y"]
    want = OPERATIONS[operation](a, b)
    assert y.shape == want.shape
    assert np.allclose(y, want, rtol=1e-6, atol=1e-6)


def gradients(write, layer, inputs, dy):
    """Gradients of the inputs x0, x1, ... for the gradient dy of the top y."""
    text = "force_backward: true default_forward_type: DOUBLE default_backward_type: DOUBLE\n"
    for i, x in enumerate(inputs):
        dims = " ".join(f"dim: {extent}" for extent in x.shape)
        text += f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ {dims} }} }} }}\n"
    net = caffe.Net(write(text + layer), caffe.TRAIN)
    for i, x in enumerate(inputs):
        net.blobs[f"x{i}"].data[...] = x
    net.forward()
    net.blobs["y"].diff[...] = dy
    net.backward()
    return [net.blobs[f"x{i}"].diff.copy() for i in range(len(inputs))]


def binary_gradients(write, operation, a, b, dy):
    layer = f"layer {{ name: 'l' type: 'Binary' bottom: 'x0' bottom: 'x1' top: 'y' binary_param {{ operation: {operation} }} }}"
    return gradients(write, layer, [np.array(a, float), np.array(b, float)], dy)


def test_the_first_of_equal_numbers_gets_the_gradient(write):
    for operation in ("MAXIMUM", "MINIMUM"):
        da, db = binary_gradients(write, operation, [1, 2, np.nan, 4], [1, 2, 3, np.nan], [1, 2, 3, 4])
        assert da.tolist() == [1, 2, 3, 0] and db.tolist() == [0, 0, 0, 4]


def test_not_a_number_wins(run_layer):
    for operation in ("MAXIMUM", "MINIMUM"):
        y = run_layer(f"layer {{ name: 'l' type: 'Binary' bottom: 'x0' bottom: 'x1' top: 'y' binary_param {{ operation: {operation} }} }}",
                      np.array([np.nan, 1, 2]), np.array([1, np.nan, 2]))["y"]
        assert np.isnan(y).tolist() == [True, True, False]


def test_powers_at_zero_have_finite_gradients(write):
    da, db = binary_gradients(write, "POWER", [0, 0, 2], [2, 0, 0], [1, 1, 1])
    assert da.tolist() == [0, 0, 0]
    assert np.allclose(db, [0, 0, np.log(2)])


def test_negative_powers_of_zero_have_infinite_gradients(write):
    _, db = binary_gradients(write, "POWER", [0, 0], [-1, 1], [1, 1])
    assert db.tolist() == [-np.inf, 0]


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3), (2, 3)), ((4,), (2, 3, 1), (3, 4)), ((2, 3, 4), (1,), (3, 1))], ids=str)
def test_a_condition_chooses(run_layer, write, shapes):
    condition, a, b = (draw(shape, -1, 1) for shape in shapes)
    condition = np.where(condition > 0, condition, 0)
    layer = "layer { name: 'l' type: 'Where' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"
    want = np.where(condition != 0, a, b)
    assert np.allclose(run_layer(layer, condition, a, b)["y"], want)
    dy = draw(want.shape)
    dc, da, db = gradients(write, layer, [condition, a, b], dy)
    assert not dc.any()

    def reduced(whole, shape):
        whole = whole.sum(tuple(range(whole.ndim - len(shape))))
        return whole.sum(tuple(i for i, extent in enumerate(shape) if extent == 1), keepdims=True)

    assert np.allclose(da, reduced(np.where(condition != 0, dy, 0), a.shape), rtol=1e-6)
    assert np.allclose(db, reduced(np.where(condition != 0, 0, dy), b.shape), rtol=1e-6)


LAYERS_THAT_CHOOSE = ["type: 'Where'", "type: 'Expression' expression_param { expr: 'where(x, y, z)' }"]


@pytest.mark.parametrize("layer", LAYERS_THAT_CHOOSE)
@pytest.mark.parametrize("shape", [(2, 3), (1, 1)])
def test_a_condition_is_not_rounded(write, layer, shape):
    """1e-10 is 0 in float16."""
    text = "precision: FP16 force_backward: true\n"
    for i, dims in enumerate([(2, 3), shape, shape]):
        text += f"layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' input_param {{ shape {{ dim: {dims[0]} dim: {dims[1]} }} }} }}\n"
    net = caffe.Net(write(text + f"layer {{ name: 'l' {layer} bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }}"), caffe.TRAIN)
    for i, value in enumerate([1e-10, 2, 3]):
        net.blobs[f"x{i}"].data[...] = value
    net.forward()
    assert (net.blobs["y"].data == 2).all() and net.blobs["y"].dtype == "float16"
    net.blobs["y"].diff[...] = 1
    net.backward()
    assert net.blobs["x1"].diff.sum() == 6 and not net.blobs["x2"].diff.any()


@pytest.mark.parametrize("shapes, message", [
    ([(2, 3), (2, 4)], "the bottoms have shapes 2x3 and 2x4; counted from the last axis, axis 1 has extents 3 and 4"),
    ([(3, 1, 5), (2, 5)], None),
    ([(3, 2, 5), (3, 5)], "axis 2 has extents 2 and 3, which must be equal, or one of them 1"),
    ([(2, 1) * 5, (1, 2) * 5], "repeated along 10 axes in turn; at most 8 are possible"),
])
def test_shapes_that_do_not_fit_are_refused(run_layer, shapes, message):
    layer = "layer { name: 'l' type: 'Binary' bottom: 'x0' bottom: 'x1' top: 'y' }"
    if message is None:
        run_layer(layer, *map(np.zeros, shapes))
        return
    with pytest.raises(caffe.InvalidArgument, match=message):
        run_layer(layer, *map(np.zeros, shapes))


@pytest.mark.parametrize("kind, digits", [("FP16", 10), ("BF16", 7)])
def test_cast_rounds_to_a_type(run_layer, kind, digits):
    x = np.array([1 + 2.0 ** -digits, 1 + 2.0 ** -(digits + 2), -3, 1 / 3, 65504 if kind == "FP16" else 2.0 ** 100])
    y = run_layer(f"layer {{ name: 'l' type: 'Cast' bottom: 'x0' top: 'y' cast_param {{ type: {kind} }} }}", x)["y"]
    assert y[0] == x[0] and y[1] == 1 and y[2] == -3 and y[4] == x[4]
    assert abs(y[3] - 1 / 3) <= 2.0 ** -(digits + 2) and y[3] != np.float32(1 / 3)


def test_cast_stores_its_top_in_the_type(write):
    text = "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 3 } } }\n"
    for kind, stored in (("FP16", "float16"), ("BF16", "bfloat16"), ("FP32", "float"), ("FP64", "double")):
        net = caffe.Net(write(text + f"layer {{ name: 'l' type: 'Cast' bottom: 'x' top: 'y' cast_param {{ type: {kind} }} }}"), caffe.TEST)
        assert net.blobs["y"].dtype == stored, kind


def test_cast_to_bytes_is_refused(run_layer):
    with pytest.raises(caffe.InvalidArgument, match="type is INT8, which is not a type of numbers; use FP32, FP16, BF16 or FP64"):
        run_layer("layer { name: 'l' type: 'Cast' bottom: 'x0' top: 'y' cast_param { type: INT8 } }", np.zeros(3))


def test_cast_passes_the_gradient(write):
    layer = "layer { name: 'l' type: 'Cast' bottom: 'x0' top: 'y' cast_param { type: BF16 } }"
    assert gradients(write, layer, [np.array([1.003, 2])], [0.5, 3])[0].tolist() == [0.5, 3]

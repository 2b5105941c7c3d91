"""ONNX models become nets that compute the same."""
import caffe
import caffe.onnx
import nets
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

DEPLOY = ["cifar10_resnet20", "squeezenet", "mobilenet_v2", "bvlc_googlenet"]


def _model(nodes, shape, weights=(), opset=17):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(array), name) for name, array in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _node(kind, inputs, outputs="y", **attributes):
    name = f"n_{kind}" if outputs == "y" else f"n_{kind}_{outputs}"
    return helper.make_node(kind, inputs.split(), outputs.split(), name, **attributes)


def _draw(*shape):
    return np.random.default_rng(4).uniform(-1, 1, shape).astype(np.float32)


def _kinds(result):
    return [layer.type for layer in result.net.layers][1:]


@pytest.mark.parametrize("name", DEPLOY)
def test_export_import_export_is_a_fixed_point(name):
    net = nets.draw_weights(caffe.Net(str(nets.ROOT / "models" / name / "deploy.prototxt"), caffe.TEST))
    for layer in net.layers:
        if layer.type == "Convolution":
            layer.blobs[0].data[...] *= 0.3
    first = caffe.onnx.export(net).model
    again = caffe.onnx.export(caffe.onnx.import_model(first).net).model
    assert [node.op_type for node in again.graph.node] == [node.op_type for node in first.graph.node]
    weights = [sorted(tensor.raw_data for tensor in model.graph.initializer) for model in (first, again)]
    assert len(weights[0]) == len(weights[1])


def _two_convolutions(groups=1):
    """A model in which both convolutions read and pad the input."""
    return _model([_node("Conv", "x v", "a", pads=[1, 1, 1, 1]), _node("Conv", "x w b", "c", group=groups), _node("Relu", "a", "r"),
                   _node("GlobalAveragePool", "r", "p"), _node("GlobalAveragePool", "c", "q"), _node("Concat", "p q", axis=1)],
                  (1, 3, 9, 9), [("v", _draw(4, 3, 3, 3)), ("w", _draw(6, 3 // groups, 2, 2)), ("b", _draw(6))])


@pytest.mark.parametrize("name, mean, deviation", [
    ("torchvision", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ("0..1", (0, 0, 0), (1, 1, 1)), ("-1..1", (0.5,) * 3, (0.5,) * 3)])
def test_preprocessing_goes_into_the_filters(name, mean, deviation):
    model = _two_convolutions()
    plain, pixels = caffe.onnx.import_model(model).net, caffe.onnx.import_model(model, preprocessing=name)
    image = np.random.default_rng(1).integers(0, 256, (9, 9, 3)).astype(np.float32)  # red, green, blue
    expected = plain.forward(x=((image / 255 - mean) / deviation).transpose(2, 0, 1)[None])["y"].copy()
    known = list(pixels.definition.model_info.mean_value)
    found = pixels.net.forward(x=(image[:, :, ::-1] - known).transpose(2, 0, 1)[None])["y"]
    assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()
    assert pixels.definition.model_info.resize.height == 10


def test_preprocessing_that_cannot_go_there_is_refused():
    with pytest.raises(caffe.Unsupported, match=r"layer '.*' \(Convolution\): the input must be read by convolutions without groups"):
        caffe.onnx.import_model(_two_convolutions(3), preprocessing="torchvision")
    with pytest.raises(caffe.Unsupported, match=r"layer '.*' \(ReLU\)"):
        caffe.onnx.import_model(_model([_node("Relu", "x")], (1, 3, 4, 4)), preprocessing="0..1")
    with pytest.raises(caffe.Unsupported, match="one input of Nx3xHxW"):
        caffe.onnx.import_model(_model([_node("Relu", "x")], (1, 4, 4, 4)), preprocessing="0..1")
    with pytest.raises(caffe.InvalidArgument, match="must be one of torchvision"):
        caffe.onnx.import_model(_two_convolutions(), preprocessing="caffe")


_SIXTHS = [("a", np.float32(3)), ("b", np.float32(0)), ("c", np.float32(6)), ("d", np.float32(1 / 6))]

# Nodes, the input's shape, weights, the resulting layers.
CASES = {
    "clip to 6": ([_node("Clip", "x a b")], (2, 3), [("a", np.float32(0)), ("b", np.float32(6))], ["ReLU6"]),
    "swish": ([_node("Sigmoid", "x", "s"), _node("Mul", "x s")], (2, 3), [], ["SiLU"]),
    "hard swish of old opsets": ([_node("HardSigmoid", "x", "s", alpha=1 / 6, beta=0.5), _node("Mul", "x s")], (2, 3), [],
                                 ["HardSwish"]),
    "hard swish of Paddle": ([_node("Add", "x a", "s"), _node("Clip", "s b c", "t"), _node("Mul", "x t", "u"), _node("Div", "u c")],
                             (2, 3), _SIXTHS, ["HardSwish"]),
    "hard swish by a product": ([_node("Add", "a x", "s"), _node("Clip", "s b c", "t"), _node("Mul", "t x", "u"),
                                 _node("Mul", "d u")], (2, 3), _SIXTHS, ["HardSwish"]),
    "hard swish of old PyTorch": ([_node("Add", "x a", "s"), _node("Clip", "s b c", "t"), _node("Div", "t c", "u"),
                                   _node("Mul", "x u")], (2, 3), _SIXTHS, ["HardSwish"]),
    "hard swish by a sixth of the gate": ([_node("Add", "x a", "s"), _node("Clip", "s b c", "t"), _node("Mul", "t d", "u"),
                                           _node("Mul", "u x")], (2, 3), _SIXTHS, ["HardSwish"]),
    "hard sigmoid in parts": ([_node("Add", "x a", "s"), _node("Clip", "s b c", "t"), _node("Div", "t c")], (2, 3), _SIXTHS,
                              ["HardSigmoid"]),
    "nearly hard swish: no sixth": ([_node("Add", "x a", "s"), _node("Clip", "s b c", "t"), _node("Mul", "x t", "u"),
                                     _node("Mul", "u a")], (2, 3), _SIXTHS, ["Power", "ReLU6", "Eltwise", "Power"]),
    "nearly hard swish: another factor": ([_node("Exp", "x", "e"), _node("Add", "x a", "s"), _node("Clip", "s b c", "t"),
                                           _node("Div", "t c", "u"), _node("Mul", "e u")], (2, 3), _SIXTHS,
                                          ["Exp", "HardSigmoid", "Eltwise"]),
    "nearly hard swish: six over it": ([_node("Add", "x a", "s"), _node("Clip", "s b c", "t"), _node("Add", "t d", "v"),
                                        _node("Div", "c v")], (2, 3), _SIXTHS, ["Power", "ReLU6", "Power", "Power", "Power"]),
    "gelu by erf": ([_node("Div", "x a", "d"), _node("Erf", "d", "e"), _node("Add", "e b", "f"), _node("Mul", "x f", "g"),
                     _node("Mul", "g c")], (2, 3),
                    [("a", np.float32(np.sqrt(2))), ("b", np.float32(1)), ("c", np.float32(0.5))], ["Power", "GELU"]),
    "normalisation with its scale": ([_node("BatchNormalization", "x s b m v")], (2, 3, 4, 4),
                                     [("s", _draw(3)), ("b", _draw(3)), ("m", _draw(3)), ("v", np.abs(_draw(3)) + 1)],
                                     ["BatchNorm", "Scale"]),
    "factor and term": ([_node("Mul", "x s", "z"), _node("Add", "z b")], (2, 3, 4, 4),
                        [("s", _draw(3, 1, 1)), ("b", _draw(1, 3, 1, 1))], ["Scale"]),
    "number minus tensor": ([_node("Sub", "a x")], (2, 3), [("a", np.float32(2))], ["Power"]),
    "constant minus tensor": ([_node("Sub", "a x")], (2, 3, 4), [("a", _draw(3, 1))], ["Power", "Bias"]),
    "constant of each item minus tensor": ([_node("Sub", "a x")], (2, 3), [("a", _draw(2, 3))], ["Power", "Parameter", "Eltwise"]),
    "constant over tensor": ([_node("Exp", "x", "e"), _node("Div", "a e")], (2, 3, 4), [("a", _draw(3, 1))], ["Exp", "Power", "Scale"]),
    "number over tensor": ([_node("Add", "x c", "z"), _node("Div", "a z")], (2, 3), [("a", np.float32(2)), ("c", np.float32(3))],
                           ["Power", "Power", "Power"]),
    "difference": ([_node("Exp", "x", "e"), _node("Sub", "x e")], (2, 3), [], ["Exp", "Eltwise"]),
    "quotient": ([_node("Exp", "x", "e"), _node("Div", "x e")], (2, 3), [], ["Exp", "Binary"]),
    "squeeze and excitation": ([_node("GlobalAveragePool", "x", "p"), _node("Mul", "x p")], (2, 3, 4, 4), [],
                               ["Pooling", "Reshape", "Scale"]),
    "numbers along a middle axis": ([_node("Exp", "x", "e"), _node("Slice", "e a b c", "s"), _node("Sub", "x s")], (2, 3, 4),
                                    [("a", np.array([0])), ("b", np.array([1])), ("c", np.array([1]))],
                                    ["Exp", "Slice", "Silence", "Binary"]),
    "a constant larger than the tensor": ([_node("Mul", "c x")], (2, 1), [("c", _draw(2, 3))], ["Parameter", "Reshape", "Scale"]),
    "a sum over the middle": ([_node("ReduceMean", "x", axes=[1])], (2, 3, 4), [], ["Permute", "Reduction", "Reshape"]),
    "rows by index": ([_node("Cast", "x", "i", to=TensorProto.INT64), _node("Gather", "w i")], (4, 2), [("w", _draw(5, 3))],
                      ["Embed"]),
    "items by index": ([_node("Cast", "x", "i", to=TensorProto.INT64), _node("Exp", "x", "e"), _node("Gather", "e i")], (4,), [],
                       ["Exp", "BatchReindex"]),
    "the largest": ([_node("ArgMax", "x", "i", axis=1, keepdims=0), _node("Cast", "i", to=TensorProto.FLOAT)], (2, 3, 4), [],
                    ["ArgMax", "Reshape", "Split"]),
    "the largest values": ([_node("TopK", "x k", "y i", axis=1)], (2, 5), [("k", np.array([2]))], ["TopK"]),
    "places of the smallest": ([_node("TopK", "x k", "v i", axis=1, largest=0), _node("Cast", "i", to=TensorProto.FLOAT)], (2, 5),
                               [("k", np.array([2]))], ["TopK", "Silence", "Split"]),
    "columns by index": ([_node("Cast", "x", "i", to=TensorProto.INT64), _node("Gather", "w i", axis=1)], (4,), [("w", _draw(3, 5))],
                         ["Parameter", "Gather"]),
    "places in any order": ([_node("Gather", "x i", axis=1)], (2, 4, 3), [("i", np.array([[3, 0], [-1, 1]]))], ["Parameter", "Gather"]),
    "what a mask leaves": ([_node("Where", "c x b")], (2, 3), [("c", np.array([[True, False, True]])), ("b", np.float32(-7))],
                           ["Parameter", "Parameter", "Where"]),
    "updates": ([_node("ScatterElements", "x i u", axis=1)], (2, 4), [("i", np.array([[3], [0]])), ("u", _draw(2, 1))],
                ["Parameter", "Parameter", "Scatter"]),
    "updates that add up": ([_node("ScatterElements", "x i u", axis=1, reduction="add")], (2, 4),
                            [("i", np.array([[3, 3], [0, -1]])), ("u", _draw(2, 2))], ["Parameter", "Parameter", "Scatter"]),
    "a constant of each item": ([_node("Mul", "x c")], (2, 3, 4), [("c", _draw(2, 1, 4))], ["Parameter", "Eltwise"]),
    "a constant along two axes": ([_node("Sub", "x c")], (2, 3, 4, 5), [("c", _draw(3, 1, 5))], ["Parameter", "Binary"]),
    "tensors along axes in turn": ([_node("ReduceMean", "x", "m", axes=[1]), _node("ReduceMean", "x", "n", axes=[2]), _node("Mul", "m n")],
                                   (2, 3, 4), [], ["Permute", "Reduction", "Reshape", "Reduction", "Reshape", "Binary"]),
    "the least of three": ([_node("Exp", "x", "e"), _node("Min", "x e c")], (2, 3), [("c", _draw(3))], ["Exp", "Parameter", "Binary", "Binary"]),
    "powers of tensors": ([_node("Exp", "x", "e"), _node("Pow", "e x")], (2, 3), [], ["Exp", "Binary"]),
    "powers of a number": ([_node("Pow", "c x")], (2, 3), [("c", np.float32(3))], ["Parameter", "Binary"]),
    "rounding": ([_node("Cast", "x", "h", to=TensorProto.FLOAT16), _node("Cast", "h", to=TensorProto.FLOAT)], (2, 3), [], ["Cast", "Split"]),
    "mean of pixels": ([_node("ReduceMean", "x", axes=[2, 3], keepdims=0)], (2, 3, 4, 5), [], ["Pooling", "Reshape"]),
    "product with weights": ([_node("MatMul", "x w", "z"), _node("Add", "z b")], (2, 5, 3), [("w", _draw(3, 4)), ("b", _draw(4))],
                             ["InnerProduct"]),
    "product from the left": ([_node("MatMul", "w x")], (2, 5, 3), [("w", _draw(4, 5))], ["Permute", "InnerProduct", "Permute"]),
    "broadcast product": ([_node("Relu", "x", "u"), _node("Reshape", "x s", "v"), _node("Transpose", "v", "w", perm=[0, 2, 1]), _node("MatMul", "u w")],
                          (1, 3, 4, 4), [("s", np.array([3, 4, 4]))], ["ReLU", "Reshape", "Permute", "MatMul"]),
    "average that leaves padding out": ([_node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])],
                                        (1, 2, 7, 7), [], ["Pooling", "Scale"]),
    "average that counts padding": ([_node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
                                           count_include_pad=1)], (1, 2, 7, 7), [], ["Pooling"]),
    "ceil mode": ([_node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)], (1, 2, 8, 8), [], ["Pooling"]),
    "same padding": ([_node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")], (1, 2, 8, 8), [],
                     ["Pooling"]),
    "a part": ([_node("Slice", "x a b c")], (2, 8, 3), [("a", np.array([2])), ("b", np.array([5])), ("c", np.array([1]))],
               ["Slice", "Silence"]),
    "backwards": ([_node("Slice", "x a b c d")], (2, 8), [("a", np.array([-1])), ("b", np.array([-99])), ("c", np.array([1])),
                                                          ("d", np.array([-1]))], ["Reverse"]),
    "one place": ([_node("Gather", "x i", axis=1)], (2, 4, 3), [("i", np.int64(2))], ["Slice", "Silence", "Reshape"]),
    "a constant part": ([_node("Concat", "x c", axis=1)], (2, 4), [("c", _draw(2, 3))], ["Parameter", "Concat"]),
    "shape computed in the model": ([_node("Shape", "x", "s"), _node("Gather", "s i", "n"), _node("Concat", "n m", "t", axis=0),
                                     _node("Reshape", "x t")], (2, 3, 4), [("i", np.array([0])), ("m", np.array([-1]))],
                                    ["Flatten"]),
    "each channel": ([_node("InstanceNormalization", "x s b", epsilon=0.01)], (2, 4, 5, 3), [("s", _draw(4)), ("b", _draw(4) + 1)],
                     ["InstanceNorm"]),
    "pixels from channels": ([_node("DepthToSpace", "x", blocksize=2, mode="CRD")], (2, 12, 2, 3), [], ["PixelShuffle"]),
    "pixels from blocks of channels": ([_node("DepthToSpace", "x", blocksize=2)], (2, 12, 2, 3), [], ["Reorg"]),
    "bigger pixels": ([_node("Resize", "x  s", mode="nearest", coordinate_transformation_mode="asymmetric",
                             nearest_mode="floor")], (1, 2, 3, 4), [("s", np.float32([1, 1, 2, 2]))], ["Upsample"]),
}
CASES["bigger pixels"][0][0].input[:] = ["x", "", "s"]


def _pad(extents, *shape, **attributes):
    return [_node("Pad", "x p", **attributes)], shape, [("p", np.array(extents))]


def _einsum(equation, shape, other):
    return [_node("Einsum", "x o", equation=equation)], shape, [("o", _draw(*other))]


_PLACES = ["Parameter", "Gather"]
CASES.update({
    "no padding": (*_pad([0, 0, 0, 0], 2, 3), ["Split"]),
    "padding by a number": ([_node("Pad", "x p v")], (2, 3, 4), [("p", np.array([0, 0, 1, 2, 0, 3])), ("v", np.float32(7))],
                            ["Parameter", "Concat", "Parameter", "Parameter", "Concat"]),
    "padding that cuts off": (*_pad([0, -1, 0, -1], 2, 5), _PLACES),
    "mirrored padding": (*_pad([0, 2, 0, 3], 2, 4, mode="reflect"), _PLACES),
    "repeated edges": (*_pad([1, 0, 0, 3], 2, 4, mode="edge"), _PLACES * 2),
    "padding before an average of another value": ([_node("Pad", "x p v", "q"), _node("AveragePool", "q", kernel_shape=[2, 2])], (1, 2, 4, 4), [
        ("p", np.array([0, 0, 1, 1, 0, 0, 1, 1])), ("v", np.float32(1))], ["Parameter", "Parameter", "Concat", "Parameter", "Parameter", "Concat", "Pooling"]),
    "every second": ([_node("Slice", "x a b c d")], (2, 8), [("a", np.array([1])), ("b", np.array([8])), ("c", np.array([1])),
                                                            ("d", np.array([2]))], _PLACES),
    "every second from the end": ([_node("Slice", "x a b c d")], (2, 8), [
        ("a", np.array([6])), ("b", np.array([1])), ("c", np.array([1])), ("d", np.array([-2]))], _PLACES),
    "repeats along several axes": ([_node("Tile", "x r")], (2, 1, 3), [("r", np.array([1, 4, 2]))], ["Tile", "Tile"]),
    "expanded": ([_node("Expand", "x s")], (3, 1), [("s", np.array([2, 1, 4]))], ["Reshape", "Tile", "Tile"]),
    "expanded to its own shape": ([_node("Expand", "x s")], (3, 4), [("s", np.array([1, 4]))], ["Split"]),
    "sums by einsum": (*_einsum("bij,kj->bki", (2, 3, 4), (5, 4)), ["Reshape", "Parameter", "Permute", "Reshape", "MatMul", "Reshape", "Permute"]),
    "attention's scores": (*_einsum("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
                           ["Permute", "Reshape", "Parameter", "Permute", "Reshape", "MatMul", "Reshape"]),
    "outer product": (*_einsum("i,j->ij", (3,), (4,)), ["Reshape", "Parameter", "Reshape", "MatMul", "Reshape"]),
})


# Nodes and weights whose constants or shapes must not stand in the way of another batch, or of training.
_ITEMS = {
    "largest of rows": ([_node("ReduceMax", "x", axes=[-1], keepdims=0)], []),
    "sums of columns": ([_node("ReduceSum", "x a", keepdims=1)], [("a", np.array([1]))]),
    "one place": ([_node("Gather", "x i", axis=1)], [("i", np.int64(2))]),
    "scores": ([_node("Einsum", "x x", equation="bij,bkj->bik")], []),
    "product with weights": ([_node("Einsum", "x o", equation="bij,jk->kbi")], [("o", _draw(4, 6))]),
    "every second": ([_node("Slice", "x a b c d")], [(name, np.array([value])) for name, value in zip("abcd", (0, 4, 2, 2))]),
    "mirrored": ([_node("Pad", "x p", mode="reflect")], [("p", np.array([0, 0, 1, 0, 0, 2]))]),
}


@pytest.mark.parametrize("case", _ITEMS)
def test_another_batch(case):
    nodes, weights = _ITEMS[case]
    net = caffe.onnx.import_model(_model(nodes, (2, 3, 4), weights)).net
    x = _draw(5, 3, 4)
    net.blobs["x"].reshape(5, 3, 4)
    y = net.forward(x=x)["y"].copy()
    axis = list(y.shape).index(5)
    net.blobs["x"].reshape(2, 3, 4)
    assert np.array_equal(net.forward(x=x[1:3])["y"], y.take([1, 2], axis))
    assert all(param.lr_mult == 0 for layer in net.definition.layer if layer.type == "Parameter" for param in layer.param)
    assert all(len(layer.param) == 1 for layer in net.definition.layer if layer.type == "Parameter")


# Padding that is not part of the pooling that follows, and an x that is multiplied twice.
_APART = {
    "crops": [_node("Pad", "x p", "q"), _node("AveragePool", "q", kernel_shape=[2, 2])],
    "ceil mode": [_node("Pad", "x r", "q"), _node("AveragePool", "q", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)],
    "same size": [_node("Pad", "x r", "q"), _node("AveragePool", "q", kernel_shape=[3, 3], auto_pad="SAME_UPPER")],
    "wide": [_node("Pad", "x w", "q"), _node("AveragePool", "q", kernel_shape=[2, 2])],
    "x twice": [_node("Mul", "x c", "s"), _node("Erf", "s", "e"), _node("Add", "e o", "t"), _node("Mul", "t x", "u"), _node("Mul", "u x", "v"),
                _node("Mul", "v h")],
    "whole numbers": [_node("Mul", "x ten", "s"), _node("Cast", "s", "i", to=TensorProto.INT64), _node("Cast", "i", to=TensorProto.FLOAT)],
    "flags": [_node("Relu", "x", "s"), _node("Cast", "s", "i", to=TensorProto.BOOL), _node("Cast", "i", to=TensorProto.FLOAT)],
}


@pytest.mark.parametrize("case", _APART)
def test_patterns_that_only_look_alike(case):
    weights = [("p", np.array([0, 0, -1, -1, 0, 0, 0, 0])), ("r", np.array([0, 0, 1, 1, 0, 0, 1, 1])), ("w", np.array([0, 0, 2, 2, 0, 0, 0, 0])),
               ("c", np.float32(np.sqrt(0.5))), ("o", np.float32(1)), ("h", np.float32(0.5)), ("ten", np.float32(10))]
    used = {name for node in _APART[case] for name in node.input}
    result = caffe.onnx.import_model(_model(_APART[case], (1, 2, 5, 5), [weight for weight in weights if weight[0] in used]))
    assert max(result.differences.values()) <= 1e-5


_SIZES = {"nearest": "Gather", "linear": "Interp"}


@pytest.mark.parametrize("size", [(6, 8), (5, 9), (2, 3), (7, 4)])
@pytest.mark.parametrize("mode, centres, rounding", [
    *(("linear", centres, "floor") for centres in ("half_pixel", "pytorch_half_pixel", "align_corners")),
    *(("nearest", "half_pixel", rounding) for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
    ("nearest", "asymmetric", "floor"), ("nearest", "asymmetric", "round_prefer_floor"), ("nearest", "align_corners", "round_prefer_ceil")])
def test_resizing(mode, centres, rounding, size):
    node = _node("Resize", "x r s t", mode=mode, coordinate_transformation_mode=centres, nearest_mode=rounding)
    node.input[1:3] = ["", ""]
    result = caffe.onnx.import_model(_model([node], (1, 2, 3, 4), [("t", np.array([1, 2, *size]))]))
    assert _SIZES[mode] in _kinds(result) or _kinds(result) == ["Upsample"]
    assert max(result.differences.values()) <= 1e-6


def test_padding_of_given_axes():
    node = _node("Pad", "x p v a")
    node.input[2] = ""
    result = caffe.onnx.import_model(_model([node], (2, 3, 4), [("p", np.array([1, 0])), ("a", np.array([-2]))], opset=18))
    assert _kinds(result) == ["Parameter", "Concat"] and not any(result.differences.values())


@pytest.mark.parametrize("case", CASES)
def test_what_nodes_become(case):
    nodes, shape, weights, kinds = CASES[case]
    result = caffe.onnx.import_model(_model(nodes, shape, weights))
    assert max(result.differences.values()) <= 1e-5
    assert _kinds(result) == kinds


def test_groups_of_channels():
    model = _model([_node("GroupNormalization", "x s b", num_groups=2, epsilon=0.01)], (2, 4, 5),
                   [("s", _draw(4)), ("b", _draw(4) + 1)], opset=21)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 4, 5)))
    result = caffe.onnx.import_model(model)
    assert max(result.differences.values()) <= 1e-5 and _kinds(result) == ["GroupNorm"]


def _of_bool(*nodes):
    """Nodes whose result is boolean, and a Cast to float."""
    *before, last = nodes
    last.output[:] = ["flag"]
    return [*before, last, _node("Cast", "flag", to=TensorProto.FLOAT)]


_TWO = [_node("Relu", "x", "r")]
# Nodes, weights.
FORMULAS = {
    **{kind: ([_node(kind, "x")], []) for kind in ("Sin", "Cos", "Tan", "Sinh", "Cosh", "Sign", "Floor", "Ceil", "Round", "Softsign", "Selu",
                                                   "Celu", "ThresholdedRelu", "Shrink", "Erf")},
    "Celu of 0.3": ([_node("Celu", "x", alpha=0.3)], []),
    "Selu of others": ([_node("Selu", "x", alpha=1.5, gamma=0.5)], []),
    "Shrink of others": ([_node("Shrink", "x", lambd=0.2, bias=-0.1)], []),
    "erf of a scaled number": ([_node("Mul", "x c", "s"), _node("Erf", "s", "e"), _node("Add", "e c")], [("c", np.float32(np.sqrt(0.5)))]),
    "GELU by tanh": ([_node("Gelu", "x", approximate="tanh")], []),
    "equal": (_of_bool(*_TWO, _node("Equal", "x r")), []),
    "not equal": (_of_bool(*_TWO, _node("Equal", "x r", "e"), _node("Not", "e")), []),
    "less": (_of_bool(*_TWO, _node("Less", "x r")), []),
    "less or equal a number": (_of_bool(_node("LessOrEqual", "x c")), [("c", np.float32(-0.25))]),
    "a number that is greater or equal": (_of_bool(_node("GreaterOrEqual", "c x")), [("c", np.float32([[0.25]]))]),
    "greater than each column": (_of_bool(_node("Greater", "x c")), [("c", _draw(5))]),
    "less than no number": (_of_bool(_node("Less", "x c")), [("c", np.float32(np.inf))]),
    "or, xor": (_of_bool(_node("Less", "x c", "l"), _node("Greater", "x d", "g"), _node("Or", "l g", "o"), _node("Xor", "o l")),
                [("c", np.float32(-0.3)), ("d", np.float32(0.3))]),
    "no numbers": (_of_bool(_node("Log", "x", "l"), _node("IsNaN", "l")), []),
    "largest": ([_node("ReduceMax", "x", axes=[0, -1])], []),
    "smallest of all": ([_node("ReduceMin", "x", keepdims=0)], []),
    "norm": ([_node("ReduceL2", "x", axes=[1], keepdims=0)], []),
    "logarithm of sums": ([_node("ReduceLogSumExp", "x", axes=[1])], []),
    "unit vectors": ([_node("LpNormalization", "x", axis=1)], []),
    "shares": ([_node("LpNormalization", "x", axis=-2, p=1)], []),
}


@pytest.mark.parametrize("case", FORMULAS)
def test_operators_without_a_layer_become_formulas(case):
    nodes, weights = FORMULAS[case]
    opset = 20 if case == "GELU by tanh" else 17
    result = caffe.onnx.import_model(_model(nodes, (3, 4, 5), weights, opset))
    assert "Expression" in _kinds(result)
    assert max(result.differences.values()) <= 1e-5


def test_a_root_mean_square():
    model = _model([_node("RMSNormalization", "x s", axis=1, epsilon=0.1)], (3, 4, 5), [("s", _draw(4, 5))], opset=23)
    assert _kinds(caffe.onnx.import_model(model)) == ["RMSNorm"]


# Nodes, the input's shape, weights, the error's text.
REFUSED = {
    "an operator without a layer": ([_node("Atan", "x")], (2, 3), [], r"node 'n_Atan' \(Atan\): there is no layer for Atan"),
    "weights that are computed": ([_node("Exp", "x", "w"), _node("Gemm", "x w", transB=1)], (3, 3), [], "weights are not constant"),
    "a vector from the left": ([_node("MatMul", "w x")], (3, 3), [("w", _draw(3))], r"factors of shapes \(3,\) and \(3, 3\)"),
    "padding behind only": ([_node("Conv", "x w", pads=[0, 0, 2, 2])], (1, 2, 8, 8), [("w", _draw(3, 2, 3, 3))],
                            "padding of 0 before and 2 behind"),
    "cubic resizing": ([_node("Resize", "x s", mode="cubic")], (1, 2, 3, 4), [("s", np.float32([1, 1, 2, 2]))],
                       "resizing by mode cubic, half_pixel"),
    "updates that multiply": ([_node("ScatterElements", "x i u", reduction="mul")], (2, 3), [("i", np.array([[1, 1, 0]])),
                                                                                            ("u", _draw(1, 3))], "a reduction by mul"),
    "updates of fewer columns": ([_node("ScatterElements", "x i u")], (2, 3), [("i", np.array([[1]])), ("u", _draw(1, 1))],
                                 r"indices of shape \(1, 1\) for data of shape \(2, 3\), which differ along other axes than 0"),
}
REFUSED["cubic resizing"][0][0].input[:] = ["x", "", "s"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    nodes, shape, weights, text = REFUSED[case]
    with pytest.raises(caffe.Unsupported, match=text):
        caffe.onnx.import_model(_model(nodes, shape, weights))


def test_a_model_of_16_bits():
    graph = helper.make_graph([_node("Conv", "x w", "c", pads=[1, 1, 1, 1]), _node("Relu", "c")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT16, (1, 3, 8, 8))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT16, (1, 4, 8, 8))],
                              [numpy_helper.from_array(_draw(4, 3, 3, 3).astype(np.float16), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    result = caffe.onnx.import_model(model, tolerance=2e-3)
    assert _kinds(result) == ["Convolution", "ReLU"]


def test_a_shape_that_is_missing():
    model = _model([_node("Relu", "x")], ("N", 3))
    with pytest.raises(caffe.InvalidArgument, match=r"input 'x' has no fixed shape \(Nx3\): N \(axis 0\) is missing; give all "
                                                    r"extents: --shape x=<N>,3, or shapes="):
        caffe.onnx.import_model(model)
    with pytest.raises(caffe.InvalidArgument, match=r"N \(axis 0\), \? \(axis 2\) are missing; .* --shape x=<N>,3,<\?>"):
        caffe.onnx.import_model(_model([_node("Relu", "x")], ("N", 3, None)))
    for wrong in ((0, 3), (-2, 3), (1 << 40, 3)):
        with pytest.raises(caffe.InvalidArgument, match="would have shape .*; extents are at least 1, and it may have"):
            caffe.onnx.import_model(model, shapes={"x": wrong})
    with pytest.raises(caffe.InvalidArgument, match=r"has shape Nx3, which \(2, 4\) does not fit"):
        caffe.onnx.import_model(model, shapes={"x": (2, 4)})
    assert caffe.onnx.import_model(model, shapes={"x": (2, 3)}).net.blobs["x"].shape == (2, 3)
    with pytest.raises(caffe.InvalidArgument, match="the model has no input z; its inputs: x"):
        caffe.onnx.import_model(model, shapes={"x": (2, 3), "z": (1,)})


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "text.onnx").write_text("nothing")
    for name, kind, text in (("absent.onnx", caffe.IoError, "absent.onnx"), ("text.onnx", caffe.InvalidArgument, "not an ONNX model")):
        with pytest.raises(kind, match=text):
            caffe.onnx.import_model(tmp_path / name)


def test_weights_outside_of_the_models_folder(tmp_path):
    (tmp_path / "secret").write_bytes(_draw(3, 4).tobytes())
    (tmp_path / "models").mkdir()
    model = _model([_node("MatMul", "x w")], (2, 3), [("w", _draw(3, 4))])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    (tmp_path / "models" / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(caffe.Error):
        caffe.onnx.import_model(tmp_path / "models" / "net.onnx")


def test_a_net_that_differs_is_not_written(tmp_path, monkeypatch):
    from caffe.onnx.nodes import registry
    monkeypatch.setitem(registry._READERS, "Relu", lambda node: node.layer("AbsVal"))
    with pytest.raises(caffe.onnx.Mismatch, match="the net's outputs differ from onnxruntime's by more than 0.0001 .* y: 3 of 6"):
        caffe.onnx.import_model(_model([_node("Relu", "x")], (2, 3)), tmp_path / "a.prototxt", tmp_path / "a.caffemodel")
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path):
    onnx.save(_model([_node("Gemm", "x w b", transB=1)], ("N", 3), [("w", _draw(4, 3)), ("b", _draw(4))]), tmp_path / "m.onnx")

    def run(*arguments):
        return nets.run_module("import", tmp_path / "m.onnx", "-o", tmp_path / "m.prototxt", *arguments)

    done = run("--shape", "x=2,3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("output y 2x4, largest difference ")
    net = caffe.Net(str(tmp_path / "m.prototxt"), caffe.TEST, weights=str(tmp_path / "m.caffemodel"))
    np.testing.assert_array_equal(net.params["n_Gemm"][0].data, _draw(4, 3))
    assert "has no fixed shape (Nx3)" in run().stderr
    assert "--shape x: give an input and its extents" in run("--shape", "x").stderr

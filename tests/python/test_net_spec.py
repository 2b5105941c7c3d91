"""NetSpec: from calls to the resulting NetParameter."""
import copy
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from google.protobuf import text_format

from caffe import net_spec
from caffe.net_spec import NetSpec, layers as L, params as P, to_proto
from caffe.proto import caffe_pb2

from built_package import PACKAGE


def parse(text):
    return text_format.Parse(text, caffe_pb2.NetParameter())


def lenet():
    n = NetSpec()
    n.data, n.label = L.DummyData(shape=[dict(dim=[8, 1, 28, 28]), dict(dim=[8])], ntop=2)
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=dict(type="xavier"))
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.ip1 = L.InnerProduct(n.pool1, num_output=10)
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.loss = L.SoftmaxWithLoss(n.relu1, n.label)
    return n


class Without:
    """A field descriptor from a protobuf version whose descriptors lack some attributes."""

    def __init__(self, field, *lacking, **more):
        self._field, self._lacking = field, lacking
        vars(self).update(more)

    def __getattr__(self, name):
        if name in self._lacking:
            raise AttributeError(name)
        return getattr(self._field, name)


@pytest.mark.parametrize("name, repeated", [("bottom", True), ("name", False)])
def test_descriptors_of_old_and_new_protobuf(name, repeated):
    field = caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name[name]
    new = Without(field, "label", "LABEL_REPEATED", is_repeated=repeated)
    old = Without(field, "is_repeated", label=3 if repeated else 1, LABEL_REPEATED=3)
    assert net_spec.is_repeated(field) == net_spec.is_repeated(new) == net_spec.is_repeated(old) == repeated


def test_a_net_is_what_was_called():
    assert lenet().to_proto() == parse("""
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 8 dim: 1 dim: 28 dim: 28 } shape { dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" inner_product_param { num_output: 10 } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" }
""")


def test_text_of_a_net_reads_back():
    net = lenet().to_proto()
    assert parse(str(net)) == net


def test_layers_without_tops():
    n = NetSpec()
    n.data = L.DummyData(shape=dict(dim=[3]))
    n.silence = L.Silence(n.data, ntop=0)
    assert [(layer.name, layer.type, list(layer.top)) for layer in n.to_proto().layer] == [
        ("data", "DummyData", ["data"]), ("silence", "Silence", [])]


def test_names_count_by_type_without_a_spec():
    data = L.DummyData(shape=dict(dim=[3, 4]))
    one = L.InnerProduct(data, num_output=2)
    net = to_proto(L.EuclideanLoss(one, L.InnerProduct(data, num_output=2)), L.Silence(one, ntop=0))
    assert [layer.name for layer in net.layer] == [
        "DummyData1", "InnerProduct1", "InnerProduct2", "EuclideanLoss1", "Silence1"]
    assert list(net.layer[3].bottom) == ["InnerProduct1", "InnerProduct2"]


def test_all_tops_of_one_call_share_a_layer():
    assert len(to_proto(*L.Slice(L.Input(), ntop=3)).layer) == 2


def test_layers_come_after_what_they_read():
    n = NetSpec()
    late = L.Input(shape=dict(dim=[1]))
    n.relu = L.ReLU(late)
    n.late = late
    assert [layer.name for layer in n.to_proto().layer] == ["late", "relu"]


def test_depth_is_not_limited_by_the_stack_of_python():
    n = NetSpec()
    top = L.Input(shape=dict(dim=[1]))
    for _ in range(sys.getrecursionlimit() + 10):
        top = L.ReLU(top)
    n.out = top
    assert len(n.to_proto().layer) == sys.getrecursionlimit() + 11


def test_an_in_place_layer_has_a_name_of_its_own():
    n = NetSpec()
    n.x = L.Input(shape=dict(dim=[1]))
    n.y = L.ReLU(L.Dropout(n.x, in_place=True), in_place=True)
    assert [(layer.name, layer.top[0]) for layer in n.to_proto().layer] == [
        ("x", "x"), ("Dropout1", "x"), ("y", "x")]


def test_in_place_needs_a_bottom_for_each_top():
    with pytest.raises(TypeError, match="Eltwise in place.* 2 bottoms"):
        L.Eltwise(L.Input(), L.Input(), in_place=True)


def test_name_can_differ_from_the_top():
    n = NetSpec()
    n["conv/1"] = L.Input(name="first", shape=dict(dim=[1]))
    layer = n.to_proto().layer[0]
    assert (layer.name, list(layer.top)) == ("first", ["conv/1"])


@pytest.mark.parametrize("call, field, text", [
    # The type's own message comes first ...
    (L.Accuracy(L.Input(), top_k=5), "accuracy_param", "top_k: 5"),
    (L.HDF5Data(source="x"), "hdf5_data_param", 'source: "x"'),
    (L.Normalize(L.Input(), across_spatial=False), "norm_param", "across_spatial: false"),
    (L.BatchNorm(L.Input(), scale_bias=True), "batch_norm_param", "scale_bias: true"),
    (L.Python(module="m", layer="l", param_str="p"), "python_param", 'module: "m" layer: "l" param_str: "p"'),
    # ... even if another type's message has that name in the layer ...
    (L.DetectionOutput(L.Input(), nms_param=dict(top_k=3)), "detection_output_param", "nms_param { top_k: 3 }"),
    # ... then the layer's fields.
    (L.Data(transform_param=dict(mirror=True)), "transform_param", "mirror: true"),
    (L.Deconvolution(L.Input(), convolution_param=dict(num_output=2)), "convolution_param", "num_output: 2"),
    # An empty dict is a message that is present.
    (L.ReLU(L.Input(), relu_param={}), "relu_param", ""),
    # A message is used unchanged.
    (L.Input(shape=[caffe_pb2.BlobShape(dim=[1, 2])]), "input_param", "shape { dim: 1 dim: 2 }"),
])
def test_where_a_keyword_goes(call, field, text):
    layer = to_proto(call).layer[-1]
    assert [f.name for f, _ in layer.ListFields() if f.name.endswith("_param")] == [field]
    value = getattr(layer, field)
    assert value == text_format.Parse(text, type(value)())


def test_keywords_of_the_layer():
    x = L.Input()
    layer = to_proto(L.InnerProduct(x, param=[dict(lr_mult=1), dict(lr_mult=2, decay_mult=0)], loss_weight=0.5,
                                    include=dict(phase=caffe_pb2.TRAIN, not_stage="deploy"),
                                    propagate_down=[True])).layer[1]
    assert layer == text_format.Parse("""
name: "InnerProduct1" type: "InnerProduct" bottom: "Input1" top: "InnerProduct1" loss_weight: 0.5
param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
include { phase: TRAIN not_stage: "deploy" } propagate_down: true""", caffe_pb2.LayerParameter())


def test_every_message_of_options_belongs_to_a_type():
    names = net_spec.param_name_dict()
    assert names["Convolution"] == "convolution"
    assert names["MultiBoxLoss"] == "multibox_loss"
    assert names["Normalize"] == "norm"
    assert len(names) == sum(f.name.endswith("_param") for f in caffe_pb2.LayerParameter.DESCRIPTOR.fields)


def test_enums():
    assert P.Pooling.AVE == caffe_pb2.PoolingParameter.AVE
    assert P.Data.LMDB == caffe_pb2.DataParameter.LMDB
    with pytest.raises(AttributeError, match="PoollingParameter"):
        P.Poolling  # pylint: disable=pointless-statement
    with pytest.raises(AttributeError):
        P.Pooling.AVERAGE  # pylint: disable=pointless-statement


def test_whole_numbers_may_be_divided():
    """(3 - 1) / 2 is 1.0, which was 1 in Python 2; NumPy has its own float types."""
    net = to_proto(L.Convolution(L.Input(shape=dict(dim=[1, 8 / 2, np.float32(8), 8])), pad=(3 - 1) / 2, kernel_size=[6 / 2],
                                 num_output=np.float64(4)))
    options = net.layer[1].convolution_param
    assert (options.pad, options.kernel_size, options.num_output) == ([1], [3], 4)
    assert net.layer[0].input_param.shape[0].dim == [1, 4, 8, 8]


def test_errors_name_the_variable():
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 3, 8, 8]))
    n["conv4/3x3"] = L.Convolution(n.data, num_output=4, kernel_size=(4 - 1) / 2)
    with pytest.raises(TypeError, match=r"^layer 'conv4/3x3' \(Convolution\): kernel_size is 1.5; it must be a whole number"):
        n.to_proto()


@pytest.mark.parametrize("call, error, text", [
    (lambda: L.Silence((L.Input(), L.Input()), ntop=0), TypeError,
     r"^Silence input 0 is not a Top \(type is <class 'tuple'>\)$"),
    (lambda: to_proto(L.Convolution(L.Input(), kernel=3)), AttributeError,
     r"^layer 'Convolution1' \(Convolution\): no field 'kernel' in ConvolutionParameter nor LayerParameter$"),
    (lambda: to_proto(L.Deconvolution(L.Input(), num_output=3)), AttributeError, r"\(Deconvolution\): .*_param=dict"),
    (lambda: to_proto(L.Convolution(L.Input(), weight_filler=dict(kind="xavier"))), AttributeError,
     "weight_filler: FillerParameter has no field 'kind'"),
    (lambda: to_proto(L.Convolution(L.Input(), weight_filler="xavier")), TypeError,
     "weight_filler is 'xavier'; FillerParameter is set from a dict"),
    (lambda: to_proto(L.Convolution(L.Input(), num_output="many")), TypeError,
     r"^layer 'Convolution1' \(Convolution\): num_output is 'many'; it must be a whole number from 0 up$"),
    (lambda: to_proto(L.Convolution(L.Input(), pad=1.5)), TypeError, "pad is 1.5; it must be a whole number from 0 up"),
    (lambda: to_proto(L.Convolution(L.Input(), pad=[1, -1])), ValueError, "pad is -1; it must be a whole number from 0 up"),
    (lambda: to_proto(L.Convolution(L.Input(), weight_filler=dict(std="1"))), TypeError,
     "weight_filler.std is '1'; it must be a number"),
    (lambda: to_proto(L.Input(shape=dict(dim=[1, None]))), TypeError, "shape.dim is None; it must be a whole number"),
    (lambda: to_proto(L.Pooling(L.Input(), pool="MOST")), (TypeError, ValueError), "pool is 'MOST'; it must be one of MAX, AVE"),
    (lambda: to_proto(L.Data(source=3)), TypeError, "source is 3; it must be text"),
    (lambda: to_proto(L.Data(transform_param=P.Pooling(pool=1))), TypeError,
     "transform_param is a PoolingParameter; it must be a TransformationParameter, or a dict"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_spec_is_a_mapping_of_tops():
    n = lenet()
    assert n.keys() == ["data", "label", "conv1", "pool1", "ip1", "relu1", "loss"]
    assert n.vals()[2] is n.conv1 is n["conv1"]
    assert "pool1" in n and "pool2" not in n
    with pytest.raises(AttributeError, match="pool2"):
        n.pool2  # pylint: disable=pointless-statement
    del n["loss"]
    del n.relu1
    assert [layer.name for layer in n.to_proto().layer] == ["data", "conv1", "pool1", "ip1"]


def test_update_changes_a_layer():
    n = lenet()
    n.update("ip1", dict(num_output=7, name="classes"))
    n.conv1.update(dict(num_output=6))
    layers = {layer.name: layer for layer in n.to_proto().layer}
    assert layers["classes"].inner_product_param.num_output == 7
    assert layers["conv1"].convolution_param.num_output == 6


def test_a_copy_is_apart():
    n = lenet()
    other = copy.deepcopy(n)
    other.update("ip1", dict(num_output=7))
    assert n.to_proto().layer[3].inner_product_param.num_output == 10
    assert other.to_proto().layer[3].inner_product_param.num_output == 7


def test_a_blob_is_a_top():
    net = NetSpec()
    with pytest.raises(TypeError, match=r"^'data' is one name for 2 tops; give each its own, as in n.data, n.label = ...$"):
        net.data = L.Data(ntop=2)
    with pytest.raises(TypeError, match="^'conv/1' is 3; a blob is set to what a layer returns$"):
        net["conv/1"] = 3
    net.data, net.label = L.Data(ntop=2)
    net.silence = L.Silence(net.data, net.label, ntop=0)
    assert len(net.to_proto().layer) == 2


def test_verbose_prints_what_is_written(capsys):
    lenet().to_proto(verbose=True)
    assert capsys.readouterr().out.splitlines()[2] == "conv1 Convolution"


OPTIONS_OF_A_PLUGIN = """
import subprocess, sys
from caffe.proto import caffe_pb2
import vendor_pb2
from caffe import NetSpec, layers as L
net = NetSpec()
net.x = L.Input(shape=dict(dim=[1, 2]))
net.y = L.Vendor(net.x, vendor_param=dict(width=2.5))
print(net.to_proto())
try:
    L.Vendor(net.x, wendor_param=dict(width=2)).to_proto()
except AttributeError as error:
    print(error)
"""


def test_options_of_a_plugin(tmp_path):
    """An extension of LayerParameter, used by its name after its Python module is imported."""
    (tmp_path / "vendor.proto").write_text("""
syntax = "proto2";
import "caffe/proto/caffe.proto";
message VendorParameter { optional float width = 1; }
extend caffe.LayerParameter { optional VendorParameter vendor_param = 18999; }
""")
    root = pathlib.Path(__file__).resolve().parents[2]
    subprocess.run(["protoc", f"-I{root / 'proto'}", f"-I{tmp_path}", f"--python_out={tmp_path}", tmp_path / "vendor.proto"],
                   check=True)
    done = subprocess.run([sys.executable, "-c", OPTIONS_OF_A_PLUGIN], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{tmp_path}"})
    assert done.returncode == 0, done.stdout
    assert "[vendor_param] {" in done.stdout and "width: 2.5" in done.stdout
    assert "no field 'wendor_param' in LayerParameter" in done.stdout

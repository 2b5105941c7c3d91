"""caffe.model_libs, as the scripts that generate SSD's nets use it."""
import numpy as np
import pytest
from google.protobuf import text_format

import caffe
from built_package import ROOT
from caffe.model_libs import *  # noqa: F403  pylint: disable=wildcard-import,unused-wildcard-import

SSD_300 = dict(num_classes=21, from_layers=["conv4_3", "fc7", "conv6_2", "conv7_2", "conv8_2", "conv9_2"],
               min_sizes=[30, 60, 111, 162, 213, 264], max_sizes=[60, 111, 162, 213, 264, 315],
               aspect_ratios=[[2], [2, 3], [2, 3], [2, 3], [2], [2]], steps=[8, 16, 32, 64, 100, 300],
               normalizations=[20, -1, -1, -1, -1, -1], prior_variance=[0.1, 0.1, 0.2, 0.2], share_location=True, flip=True,
               clip=False, use_batchnorm=False, kernel_size=3, pad=1)


def add_extra_layers(net):
    """A function that each of these scripts defines itself."""
    bottom = list(net.keys())[-1]
    for stage, outputs, pad, stride in ((6, 256, 1, 2), (7, 128, 1, 2), (8, 128, 0, 1), (9, 128, 0, 1)):
        for name, count, kernel, own_pad, own_stride in ((f"conv{stage}_1", outputs, 1, 0, 1),
                                                         (f"conv{stage}_2", 2 * outputs, 3, pad, stride)):
            ConvBNLayer(net, bottom, name, False, True, count, kernel, own_pad, own_stride, lr_mult=1)
            bottom = name


def ssd(**head):
    net = caffe.NetSpec()
    net.data = L.Input(shape=dict(dim=[1, 3, 300, 300]))
    VGGNetBody(net, from_layer="data", fully_conv=True, reduced=True, dilated=True, dropout=False)
    add_extra_layers(net)
    return net, CreateMultiBoxHead(net, data_layer="data", **{**SSD_300, **head})


def layers_by_name(net):
    """Layers by name, without fields that do not affect the trained net, and without defaults."""
    found = {}
    for layer in net.layer:
        layer = type(layer).FromString(layer.SerializeToString())
        options = layer.convolution_param
        for field in ("weight_filler", "bias_filler"):
            options.ClearField(field)
        for field in ("pad", "stride", "dilation"):
            if list(getattr(options, field)) in ([1], [0]) and list(getattr(options, field)) != [int(field == "pad")]:
                options.ClearField(field)
        if not options.ByteSize():
            layer.ClearField("convolution_param")
        found[layer.name] = text_format.MessageToString(layer)
    return found


def test_generators_find_the_messages():
    names = {}
    exec("from caffe.model_libs import *", names)  # pylint: disable=exec-used
    assert names["caffe_pb2"].SolverParameter(base_lr=1).base_lr == 1 and {"L", "P"} <= names.keys()


def test_the_net_is_the_published_one():
    wanted = caffe_pb2.NetParameter()
    text_format.Parse((ROOT / "models/VGGNet/VOC0712/SSD_300x300/train.prototxt").read_text(), wanted)
    wanted = layers_by_name(wanted)
    made = layers_by_name(ssd()[0].to_proto())
    assert set(wanted) - set(made) == {"mbox_loss"}
    different = {name for name in wanted if name in made and wanted[name] != made[name]}
    assert different == {"data"}


def planned(net, write):
    """The net, built from its text."""
    return caffe.Net(write(str(net.to_proto())), caffe.TEST)


def test_a_small_detector_runs(write):
    net = caffe.NetSpec()
    net.data = L.Input(shape=dict(dim=[1, 3, 64, 64]))
    ConvBNLayer(net, "data", "conv1", use_bn=True, use_relu=True, num_output=8, kernel_size=[3, 5], pad=(1, 2), stride=4)
    heads = CreateMultiBoxHead(net, num_classes=3, from_layers=["conv1"], min_sizes=[[16, 24]], max_sizes=[[24, 32]],
                               aspect_ratios=[[2]], inter_layers=[4], use_objectness=True, share_location=False, prior_variance=[0.1])
    assert len(heads) == 4
    net.out = L.DetectionOutput(*heads[:3], detection_output_param=dict(num_classes=3, share_location=False, keep_top_k=5))
    made = planned(net, write)
    places, boxes = 16 * 16, 2 * (1 + 1 + 2)
    assert made.blobs["mbox_loc"].shape == (1, places * boxes * 4 * 3) and made.blobs["mbox_conf"].shape == (1, places * boxes * 3)
    assert made.blobs["mbox_objectness"].shape == (1, places * boxes * 2)
    assert made.blobs["mbox_priorbox"].shape == (1, 2, places * boxes * 4)
    assert made.forward()["out"].shape[-1] == 7


@pytest.mark.parametrize("body, options, blob, shape", [
    (VGGNetBody, {}, "fc7", (1, 4096)), (VGGNetBody, dict(need_fc=False), "conv5_3", (1, 512, 2, 2)),
    (VGGNetBody, dict(fully_conv=True, reduced=True, dilated=True, dilate_pool4=True), "fc7", (1, 1024, 4, 4)),
    (VGGNetBody, dict(need_fc=False, nopool=True), "conv4_4", (1, 512, 2, 2)),
    (ZFNetBody, dict(fully_conv=True, reduced=True, dilated=True), "fc7", (1, 1024, 3, 3)),
    (ZFNetBody, dict(fully_conv=True, reduced=True, need_fc8=True), "prob", (1, 1000, 2, 2)),
    (ResNet101Body, {}, "pool5", (1, 2048, 1, 1)),
    (ResNet101Body, dict(use_pool5=False, use_dilation_conv5=True), "res5c", (1, 2048, 2, 2)),
])
def test_bodies(body, options, blob, shape, write):
    net = caffe.NetSpec()
    net.data = L.Input(shape=dict(dim=[1, 3, 32, 32]))
    assert body(net, "data", **options) is net
    assert planned(net, write).blobs[blob].shape == shape


def test_the_names_of_resnet_are_those_of_its_weights():
    for body, last in ((ResNet101Body, ("res3b3", "res4b22")), (ResNet152Body, ("res3b7", "res4b35"))):
        net = caffe.NetSpec()
        net.data = L.Input(shape=dict(dim=[1, 3, 224, 224]))
        names = {layer.name for layer in body(net, "data").to_proto().layer}
        assert {"conv1", "bn_conv1", "scale_conv1", "res2a_branch1", "bn2a_branch2c", "scale5c_branch2a", *last} <= names


def test_frozen_layers_do_not_learn():
    net = caffe.NetSpec()
    net.data = L.Input(shape=dict(dim=[1, 3, 64, 64]))
    layers = {layer.name: layer for layer in VGGNetBody(net, "data", freeze_layers=["conv1_1"]).to_proto().layer}
    assert [param.lr_mult for param in layers["conv1_1"].param] == [0, 0]
    assert [param.lr_mult for param in layers["conv1_2"].param] == [1, 2]


def test_data():
    net = caffe.NetSpec()
    net.data, net.label = CreateAnnotatedDataLayer("folder", batch_size=4, train=True, output_label=True, label_map_file="map",
                                                   transform_param=dict(mirror=True), batch_sampler=[dict(max_trials=50)])
    layer = net.to_proto().layer[0]
    assert list(layer.top) == ["data", "label"] and layer.include[0].phase == caffe.TRAIN
    assert layer.data_param.source == "folder" and layer.annotated_data_param.batch_sampler[0].max_trials == 50
    net = caffe.NetSpec()
    net.data = CreateAnnotatedDataLayer("folder", train=False, output_label=False)
    assert list(net.to_proto().layer[0].top) == ["data"] and net.to_proto().layer[0].include[0].phase == caffe.TEST


def test_lists_of_another_length():
    with pytest.raises(ValueError, match="steps has 1 values; from_layers has 6"):
        ssd(steps=[8])
    with pytest.raises(ValueError, match="min_sizes has 0 values"):
        ssd(min_sizes=[])
    with pytest.raises(ValueError, match="num_classes is missing"):
        ssd(num_classes=None)


def test_small_things(tmp_path):
    assert UnpackVariable(3, 2) == [3, 3] and UnpackVariable([1, 2], 2) == [1, 2] and UnpackVariable([1], 2) == [[1], [1]]
    folder = tmp_path / "a" / "b"
    assert not check_if_exist(str(folder))
    make_if_not_exist(str(folder))
    make_if_not_exist(str(folder))
    assert check_if_exist(str(folder)) and np.isscalar(P.Loss.VALID)

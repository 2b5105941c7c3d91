"""Functions that the generators of SSD's nets import: `from caffe.model_libs import *`.

Names, keywords and layer names are those of Liu's fork (weiliu89/caffe, branch ssd), so that its
examples/ssd/*.py run and published weights fit. Nets are caffe.NetSpec; `from_layer` and
`out_layer` are names of blobs.

    net = caffe.NetSpec()
    net.data, net.label = CreateAnnotatedDataLayer("train_lmdb", batch_size=32, label_map_file="map.prototxt")
    VGGNetBody(net, "data", fully_conv=True, reduced=True, dilated=True, dropout=False)
    heads = CreateMultiBoxHead(net, from_layers=["fc7"], num_classes=21, min_sizes=[60], use_batchnorm=False)

InceptionV3Body and InceptionTower are missing, because no example uses them.
"""
import os

from .net_spec import layers as L
from .net_spec import params as P
from .proto import caffe_pb2
from .proto.caffe_pb2 import TEST, TRAIN

__all__ = ["L", "P", "caffe_pb2", "CreateAnnotatedDataLayer", "CreateMultiBoxHead", "ConvBNLayer", "ResBody",
           "ResNet101Body", "ResNet152Body", "UnpackVariable", "VGGNetBody", "ZFNetBody", "check_if_exist", "make_if_not_exist"]


def check_if_exist(path):
    """True if a file or folder exists."""
    return os.path.exists(path)


def make_if_not_exist(path):
    """Makes a folder and its parents."""
    os.makedirs(path, exist_ok=True)


def UnpackVariable(var, num):
    """A list of `num` values: `var` itself if it is such a list, else `num` times var."""
    return var if isinstance(var, list) and len(var) == num else [var] * num


def CreateAnnotatedDataLayer(source, batch_size=32, backend=P.Data.LMDB, output_label=True, train=True, label_map_file="",
                             anno_type=None, transform_param=None, batch_sampler=None):
    """The tops of an AnnotatedData layer: [data, label], or data alone. Without label_map_file that field
    stays empty."""
    annotated = {"batch_sampler": batch_sampler or [{}], "label_map_file": label_map_file, "anno_type": anno_type}
    return L.AnnotatedData(name="data", include=dict(phase=TRAIN if train else TEST), ntop=2 if output_label else 1,
                           annotated_data_param={key: value for key, value in annotated.items() if value},
                           data_param=dict(batch_size=batch_size, backend=backend, source=source),
                           transform_param=transform_param or {})


def _learned(lr_mult, has_bias=True):
    """Multipliers for weights and biases: biases learn twice as fast and without decay."""
    return [dict(lr_mult=lr_mult, decay_mult=1)] + [dict(lr_mult=2 * lr_mult, decay_mult=0)] * has_bias


def _window(name, value):
    """kernel_size=3, or kernel_h=1, kernel_w=3 for (1, 3)."""
    height, width = UnpackVariable(list(value) if isinstance(value, tuple) else value, 2)
    if height == width:
        return {name: height}
    stem = "kernel" if name == "kernel_size" else name
    return {f"{stem}_h": height, f"{stem}_w": width}


def ConvBNLayer(net, from_layer, out_layer, use_bn, use_relu, num_output, kernel_size, pad, stride, dilation=1, use_scale=True,
                lr_mult=1, conv_prefix="", conv_postfix="", bn_prefix="", bn_postfix="_bn", scale_prefix="", scale_postfix="_scale",
                bias_prefix="", bias_postfix="_bias", **bn_params):
    """A convolution; with use_bn also BatchNorm and Scale (or Bias); with use_relu also ReLU, in place.

    kernel_size, pad, stride: a number, or [height, width]. bn_params: eps,
    moving_average_fraction and use_global_stats of BatchNorm.
    """
    convolution = f"{conv_prefix}{out_layer}{conv_postfix}"
    filler = {"weight_filler": dict(type="gaussian", std=0.01), "bias_term": False} if use_bn else \
        {"weight_filler": dict(type="xavier"), "bias_filler": dict(type="constant", value=0)}
    net[convolution] = L.Convolution(net[from_layer], num_output=num_output, **_window("kernel_size", kernel_size),
                                     **_window("pad", pad), **_window("stride", stride), **filler,
                                     **({"dilation": dilation} if dilation > 1 else {}), param=_learned(lr_mult, not use_bn))
    if use_bn:
        _normalized(net, convolution, f"{bn_prefix}{out_layer}{bn_postfix}",
                    f"{scale_prefix}{out_layer}{scale_postfix}" if use_scale else "", f"{bias_prefix}{out_layer}{bias_postfix}",
                    lr_mult, bn_params)
    if use_relu:
        net[f"{convolution}_relu"] = L.ReLU(net[convolution], in_place=True)


def _normalized(net, blob, norm, scale, bias, lr_mult, bn_params):
    """BatchNorm, followed by Scale if it has a name, else by Bias."""
    options = {"eps": 0.001, "moving_average_fraction": 0.999, "use_global_stats": False, **bn_params}
    net[norm] = L.BatchNorm(net[blob], in_place=True, param=[dict(lr_mult=0, decay_mult=0)] * 3, **options)
    learned, zero = dict(lr_mult=lr_mult, decay_mult=0), dict(type="constant", value=0)
    if scale:
        net[scale] = L.Scale(net[blob], in_place=True, axis=1, bias_term=True, filler=dict(type="constant", value=1),
                             bias_filler=zero, param=[learned] * 2)
    else:
        net[bias] = L.Bias(net[blob], in_place=True, axis=1, filler=zero, param=[learned])


def ResBody(net, from_layer, block_name, out2a, out2b, out2c, stride, use_branch1, dilation=1, **bn_param):
    """A bottleneck block `res<block_name>` of three convolutions, in parallel with branch 1, a convolution
    or the identity."""
    names = dict(conv_prefix=f"res{block_name}_", conv_postfix="", bn_prefix=f"bn{block_name}_", bn_postfix="",
                 scale_prefix=f"scale{block_name}_", scale_postfix="")

    def layer(bottom, branch, use_relu, outputs, kernel, pad, step, spread=1):
        ConvBNLayer(net, bottom, branch, use_bn=True, use_relu=use_relu, num_output=outputs, kernel_size=kernel, pad=pad,
                    stride=step, dilation=spread, **names, **bn_param)
        return f"res{block_name}_{branch}"

    shortcut = layer(from_layer, "branch1", False, out2c, 1, 0, stride) if use_branch1 else from_layer
    bottom = layer(from_layer, "branch2a", True, out2a, 1, 0, stride)
    bottom = layer(bottom, "branch2b", True, out2b, 3, dilation, 1, dilation)
    bottom = layer(bottom, "branch2c", False, out2c, 1, 0, 1)
    name = f"res{block_name}"
    net[name] = L.Eltwise(net[shortcut], net[bottom])
    net[f"{name}_relu"] = L.ReLU(net[name], in_place=True)


def _resnet(net, from_layer, blocks3, blocks4, use_pool5, use_dilation_conv5, bn_param):
    """blocks3, blocks4: number of blocks after the first one of stages 3 and 4."""
    ConvBNLayer(net, from_layer, "conv1", use_bn=True, use_relu=True, num_output=64, kernel_size=7, pad=3, stride=2, conv_prefix="",
                conv_postfix="", bn_prefix="bn_", bn_postfix="", scale_prefix="scale_", scale_postfix="", **bn_param)
    net.pool1 = L.Pooling(net.conv1, pool=P.Pooling.MAX, kernel_size=3, stride=2)
    stages = ((64, 1, 1, ["2a", "2b", "2c"]), (128, 2, 1, ["3a", *(f"3b{k + 1}" for k in range(blocks3))]),
              (256, 2, 1, ["4a", *(f"4b{k + 1}" for k in range(blocks4))]),
              (512, *((1, 2) if use_dilation_conv5 else (2, 1)), ["5a", "5b", "5c"]))
    bottom = "pool1"
    for width, stride, dilation, names in stages:
        for k, name in enumerate(names):
            ResBody(net, bottom, name, width, width, 4 * width, stride if k == 0 else 1, k == 0, dilation, **bn_param)
            bottom = f"res{name}"
    if use_pool5:
        net.pool5 = L.Pooling(net[bottom], pool=P.Pooling.AVE, global_pooling=True)
    return net


def ResNet101Body(net, from_layer, use_pool5=True, use_dilation_conv5=False, **bn_param):
    """conv1 to res5c and pool5. use_dilation_conv5: stage 5 keeps the size of stage 4."""
    return _resnet(net, from_layer, 3, 22, use_pool5, use_dilation_conv5, bn_param)


def ResNet152Body(net, from_layer, use_pool5=True, use_dilation_conv5=False, **bn_param):
    """conv1 to res5c and pool5. use_dilation_conv5: stage 5 keeps the size of stage 4."""
    return _resnet(net, from_layer, 7, 35, use_pool5, use_dilation_conv5, bn_param)


class _Plain:
    """Convolutions and fully connected layers with ReLU, for nets without normalization. freeze: names of layers that do not learn."""

    def __init__(self, net, from_layer, freeze):
        self.net, self.bottom, self.freeze = net, from_layer, freeze

    def _filled(self, name):
        return dict(param=_learned(0 if name in self.freeze else 1), weight_filler=dict(type="xavier"),
                    bias_filler=dict(type="constant", value=0))

    def _put(self, name, layer, stem):
        self.net[name] = layer
        self.bottom = name.replace(stem, "relu", 1)
        self.net[self.bottom] = L.ReLU(self.net[name], in_place=True)

    def convolution(self, name, num_output, kernel_size=3, dilation=1, stem="conv", **options):
        """Pads to keep the size, apart from the stride."""
        pad = (kernel_size - 1) * dilation // 2
        if pad > 0:
            options["pad"] = pad
        if dilation > 1:
            options["dilation"] = dilation
        self._put(name, L.Convolution(self.net[self.bottom], num_output=num_output, kernel_size=kernel_size, **options,
                                      **self._filled(name)), stem)

    def product(self, name, num_output):
        self._put(name, L.InnerProduct(self.net[self.bottom], num_output=num_output, **self._filled(name)), "fc")

    def pool(self, name, **window):
        self.net[name] = L.Pooling(self.net[self.bottom], pool=P.Pooling.MAX, **window)
        self.bottom = name

    def drop(self, name):
        self.net[name] = L.Dropout(self.net[self.bottom], dropout_ratio=0.5, in_place=True)

    def classifier(self, kernel, dilation, fully_conv, width, dropout, need_fc8):
        """fc6, whose kernel is `kernel`, fc7, and fc8 with 1000 classes."""
        for name, size, spread in (("fc6", kernel, dilation), ("fc7", 1, 1)):
            if fully_conv:
                self.convolution(name, width, size, spread, stem="fc")
            else:
                self.product(name, 4096)
            if dropout:
                self.drop(name.replace("fc", "drop"))
        if need_fc8:
            kind = (lambda x, **options: L.Convolution(x, kernel_size=1, **options)) if fully_conv else L.InnerProduct
            self.net.fc8 = kind(self.net[self.bottom], num_output=1000, **self._filled("fc8"))
            self.net.prob = L.Softmax(self.net.fc8)


def VGGNetBody(net, from_layer, need_fc=True, fully_conv=False, reduced=False, dilated=False, nopool=False, dropout=True,
               freeze_layers=(), dilate_pool4=False):
    """VGG-16's conv1_1 to conv5_3 and, with need_fc, pool5, fc6 and fc7.

    fully_conv: fc6 and fc7 are convolutions. reduced: they have 1024 channels, and fc6 a kernel of 3, as
    in SSD. dilated: pool5 keeps the size, and fc6 is dilated; dilate_pool4: the same for pool4 and conv5.
    nopool: strided convolutions replace pooling.
    """
    plain = _Plain(net, from_layer, freeze_layers)
    for stage, (width, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for k in range(1, count + 1):
            plain.convolution(f"conv{stage}_{k}", width, dilation=2 if stage == 5 and dilate_pool4 else 1)
        if stage == 5 and not need_fc:
            break
        keeps_size = (stage == 5 and dilated) or (stage == 4 and dilate_pool4)
        if nopool:
            plain.convolution(f"conv{stage}_{count + 1}", width, stride=1 if keeps_size else 2)
        else:
            plain.pool(f"pool{stage}", **(dict(kernel_size=3, stride=1, pad=1) if keeps_size else dict(kernel_size=2, stride=2)))
    if need_fc:
        dilation = (2 if dilated else 1) * (2 if dilate_pool4 else 1) * (3 if reduced else 1)
        plain.classifier(3 if reduced else 7, dilation, fully_conv, 1024 if reduced else 4096, dropout, need_fc8=False)
    return net


def ZFNetBody(net, from_layer, need_fc=True, fully_conv=False, reduced=False, dilated=False, dropout=True, need_fc8=False,
              freeze_layers=()):
    """Zeiler and Fergus' conv1 to conv5 and, with need_fc, pool5, fc6 and fc7; keywords as in
    VGGNetBody."""
    plain = _Plain(net, from_layer, freeze_layers)
    for stage, (width, kernel) in enumerate(((96, 7), (256, 5)), 1):
        plain.convolution(f"conv{stage}", width, kernel, stride=2)
        net[f"norm{stage}"] = L.LRN(net[plain.bottom], local_size=3, alpha=0.00005, beta=0.75, norm_region=P.LRN.WITHIN_CHANNEL)
        plain.bottom = f"norm{stage}"
        plain.pool(f"pool{stage}", kernel_size=3, pad=1, stride=2)
    for stage, width in ((3, 384), (4, 384), (5, 256)):
        plain.convolution(f"conv{stage}", width)
    if need_fc:
        plain.pool("pool5", kernel_size=3, pad=1, stride=1 if dilated else 2)
        dilation = (2 if dilated else 1) * (3 if reduced else 1)
        plain.classifier(3 if reduced else 6, dilation, fully_conv, 1024 if reduced else 4096, dropout, need_fc8)
    return net


def CreateMultiBoxHead(net, data_layer="data", num_classes=None, from_layers=(), use_objectness=False, normalizations=(),
                       use_batchnorm=True, lr_mult=1, use_scale=True, min_sizes=(), max_sizes=(), prior_variance=(0.1,),
                       aspect_ratios=(), steps=(), img_height=0, img_width=0, share_location=True, flip=True, clip=True, offset=0.5,
                       inter_layers=(), kernel_size=1, pad=0, conf_postfix="", loc_postfix="", **bn_param):
    """Predicts boxes relative to the prior boxes at each position of some blobs: [mbox_loc, mbox_conf,
    mbox_priorbox(, mbox_objectness)].

    For each of from_layers: min_sizes, max_sizes, aspect_ratios (a number or a list), steps (pixels
    between two positions), normalizations (initial scale of Normalize; -1: none), inter_layers
    (channels of a 3x3 convolution before the prediction; 0: none). Raises ValueError if such a list
    has another length, or num_classes is missing.
    """
    lists = {"min_sizes": min_sizes, "max_sizes": max_sizes, "aspect_ratios": aspect_ratios, "steps": steps,
             "normalizations": normalizations, "inter_layers": inter_layers}
    for name, values in lists.items():
        if len(values) != len(from_layers) and (values or name == "min_sizes"):
            raise ValueError(f"{name} has {len(values)} values; from_layers has {len(from_layers)}")
    if not num_classes:
        raise ValueError("num_classes is missing; it counts the background as one")
    tops = {"loc": [], "conf": [], "priorbox": [], "objectness": []}
    for index, blob in enumerate(from_layers):
        own = {name: values[index] if values else None for name, values in lists.items()}
        blob = _normalized_source(net, blob, own["normalizations"])
        if own["inter_layers"]:
            ConvBNLayer(net, blob, f"{blob}_inter", use_batchnorm, True, own["inter_layers"], 3, 1, 1, use_scale=use_scale,
                        lr_mult=lr_mult, **bn_param)
            blob = f"{blob}_inter"
        prior, count = _prior(own, flip)
        boxes = {"loc": 4 * count * (1 if share_location else num_classes), "conf": num_classes * count}
        if use_objectness:
            boxes["objectness"] = 2 * count
        postfixes = {"loc": loc_postfix, "conf": conf_postfix}
        for kind, outputs in boxes.items():
            name = f"{blob}_mbox_{kind}{postfixes.get(kind, '')}"
            ConvBNLayer(net, blob, name, use_batchnorm, False, outputs, kernel_size, pad, 1, use_scale=use_scale, lr_mult=lr_mult,
                        **bn_param)
            net[f"{name}_perm"] = L.Permute(net[name], order=[0, 2, 3, 1])
            net[f"{name}_flat"] = L.Flatten(net[f"{name}_perm"], axis=1)
            tops[kind].append(net[f"{name}_flat"])
        if img_height and img_width:
            prior.update(img_h=img_height, img_w=img_width)
        name = f"{blob}_mbox_priorbox"
        net[name] = L.PriorBox(net[blob], net[data_layer], clip=clip, variance=list(prior_variance), offset=offset, **prior)
        tops["priorbox"].append(net[name])
    for kind, parts in tops.items():
        if parts:
            net[f"mbox_{kind}"] = L.Concat(*parts, axis=2 if kind == "priorbox" else 1)
    return [net[f"mbox_{kind}"] for kind, parts in tops.items() if parts]


def _normalized_source(net, blob, scale):
    if scale is None or scale == -1:
        return blob
    name = f"{blob}_norm"
    net[name] = L.Normalize(net[blob], scale_filler=dict(type="constant", value=scale), across_spatial=False, channel_shared=False)
    return name


def _as_list(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _prior(own, flip):
    """Options of PriorBox, and the number of boxes per position: one per min_size, one more with max_size, one or two per ratio."""
    least, most, ratios = (_as_list(own[name]) for name in ("min_sizes", "max_sizes", "aspect_ratios"))
    options = {"min_size": least, "max_size": most, "aspect_ratio": ratios, "flip": flip if ratios else None,
               "step": own["steps"] or None}
    count = len(least) * (1 + bool(most) + len(ratios) * (2 if flip else 1))
    return {name: value for name, value in options.items() if value not in (None, [])}, count

#!/usr/bin/env python3
"""Writes the prototxts of the larger models: repetitive text is better generated than typed.

  models/generate.py            writes models/*/{train_val,deploy}.prototxt and benchmarks/nets
  models/generate.py --check    exits with 1 when a committed file differs from what it would write

Architectures: LeNet (LeCun et al. 1998, as Caffe's MNIST example simplifies it), AlexNet (Krizhevsky
et al. 2012), GoogLeNet (Szegedy et al. 2015), ResNet-50 (He et al. 2016, with Caffe's BatchNorm
followed by Scale). Layers have the names that published weights use. Needs nothing but Python.
"""
import argparse
import pathlib
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Net:
    """Collects layers; each method adds some and returns the name of its top."""

    def __init__(self, name):
        self.lines = [f'name: "{name}"']

    def layer(self, name, kind, bottoms, tops, body=""):
        parts = [f'  name: "{name}"', f'  type: "{kind}"']
        parts += [f'  bottom: "{b}"' for b in bottoms]
        parts += [f'  top: "{t}"' for t in tops]
        parts += [f"  {line}" for line in body.strip().splitlines()]
        self.lines += ["layer {", *parts, "}"]
        return tops[0] if tops else None

    def text(self):
        return "\n".join(self.lines) + "\n"

    def conv(self, name, bottom, outputs, kernel, stride=1, pad=0, group=1, bias=True,
             weight='type: "xavier"', bias_value=0.2, params=True):
        fields = [f"num_output: {outputs}", f"kernel_size: {kernel}"]
        fields += [f"stride: {stride}"] if stride != 1 else []
        fields += [f"pad: {pad}"] if pad else []
        fields += [f"group: {group}"] if group != 1 else []
        fields += [f"weight_filler {{ {weight} }}"]
        fields += [f'bias_filler {{ type: "constant" value: {bias_value:g} }}'] if bias else ["bias_term: false"]
        return self.layer(name, "Convolution", [bottom], [name],
                          self.param_lines(bias, params) +
                          "convolution_param {\n" + "".join(f"  {f}\n" for f in fields) + "}")

    @staticmethod
    def param_lines(bias, params):
        if not params:
            return ""
        text = "param { lr_mult: 1 decay_mult: 1 }\n"
        return text + ("param { lr_mult: 2 decay_mult: 0 }\n" if bias else "")

    def relu(self, name, blob):
        return self.layer(name, "ReLU", [blob], [blob])

    def pool(self, name, bottom, kind, kernel, stride, pad=0):
        padding = f" pad: {pad}" if pad else ""
        return self.layer(name, "Pooling", [bottom], [name],
                          f"pooling_param {{ pool: {kind} kernel_size: {kernel} stride: {stride}{padding} }}")

    def global_pool(self, name, bottom):
        return self.layer(name, "Pooling", [bottom], [name], "pooling_param { pool: AVE global_pooling: true }")

    def lrn(self, name, bottom):
        return self.layer(name, "LRN", [bottom], [name],
                          "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")

    def dropout(self, name, blob, ratio):
        return self.layer(name, "Dropout", [blob], [blob], f"dropout_param {{ dropout_ratio: {ratio:g} }}")

    def inner_product(self, name, bottom, outputs, weight='type: "xavier"', bias_value=0.0):
        return self.layer(name, "InnerProduct", [bottom], [name], self.param_lines(True, True) +
                          f"""inner_product_param {{
  num_output: {outputs}
  weight_filler {{ {weight} }}
  bias_filler {{ type: "constant" value: {bias_value:g} }}
}}""")


# ---------------------------------------------------------------------------------------------
# Where data comes from and what is done with the scores. Each head is a classifier under training.

class Head(typing.NamedTuple):
    scores: str
    loss_layer: str = "loss"
    loss_top: str = "loss"
    loss_weight: float = 1
    accuracy: str = "accuracy"
    accuracy_top5: str = "accuracy_top5"


def imagenet_data(net, batch, test_batch, image):
    crop = image[-1]
    for phase, size, folder, mirror in (("TRAIN", batch, "train", "true"), ("TEST", test_batch, "val", "false")):
        net.layer("data", "Data", [], ["data", "label"], f"""include {{ phase: {phase} }}
transform_param {{
  mirror: {mirror}
  crop_size: {crop}
  mean_value: 104
  mean_value: 117
  mean_value: 123
}}
data_param {{
  source: "examples/imagenet/ilsvrc12_{folder}_lmdb"
  batch_size: {size}
  backend: LMDB
}}""")
    return "data"


def dimensions(*sizes):
    return " ".join(f"dim: {size}" for size in sizes)


def dummy_data(net, batch, _, image):
    net.layer("data", "DummyData", [], ["data", "label"], f"""dummy_data_param {{
  shape {{ {dimensions(batch, *image)} }}
  shape {{ dim: {batch} }}
  data_filler {{ type: "constant" value: 0.5 }}
  data_filler {{ type: "constant" value: 0 }}
}}""")
    return "data"


def deploy_data(net, batch, _, image):
    return net.layer("data", "Input", [], ["data"], f"input_param {{ shape {{ {dimensions(batch, *image)} }} }}")


def losses(net, heads):
    for head in heads:
        body = f"loss_weight: {head.loss_weight:g}" if head.loss_weight != 1 else ""
        net.layer(head.loss_layer, "SoftmaxWithLoss", [head.scores, "label"], [head.loss_top], body)


def losses_and_accuracy(net, heads):
    losses(net, heads)
    for head in heads:
        for top, k in ((head.accuracy, 1), (head.accuracy_top5, 5)):
            extra = f"accuracy_param {{ top_k: {k} }}" if k != 1 else ""
            net.layer(top, "Accuracy", [head.scores, "label"], [top], "include { phase: TEST }\n" + extra)


def probabilities(net, heads):
    net.layer("prob", "Softmax", [heads[-1].scores], ["prob"])


# ---------------------------------------------------------------------------------------------

def lenet(net, data):
    x = net.pool("pool1", net.conv("conv1", data, 20, 5, bias_value=0), "MAX", 2, 2)
    x = net.pool("pool2", net.conv("conv2", x, 50, 5, bias_value=0), "MAX", 2, 2)
    x = net.relu("relu1", net.inner_product("ip1", x, 500))
    return [Head(net.inner_product("ip2", x, 10))]


def alexnet(net, data):
    thin, wide = 'type: "gaussian" std: 0.01', 'type: "gaussian" std: 0.005'
    x = net.relu("relu1", net.conv("conv1", data, 96, 11, stride=4, weight=thin, bias_value=0))
    x = net.pool("pool1", net.lrn("norm1", x), "MAX", 3, 2)
    x = net.relu("relu2", net.conv("conv2", x, 256, 5, pad=2, group=2, weight=thin, bias_value=0.1))
    x = net.pool("pool2", net.lrn("norm2", x), "MAX", 3, 2)
    x = net.relu("relu3", net.conv("conv3", x, 384, 3, pad=1, weight=thin, bias_value=0))
    x = net.relu("relu4", net.conv("conv4", x, 384, 3, pad=1, group=2, weight=thin, bias_value=0.1))
    x = net.relu("relu5", net.conv("conv5", x, 256, 3, pad=1, group=2, weight=thin, bias_value=0.1))
    x = net.pool("pool5", x, "MAX", 3, 2)
    for i in (6, 7):
        x = net.relu(f"relu{i}", net.inner_product(f"fc{i}", x, 4096, wide, 0.1))
        x = net.dropout(f"drop{i}", x, 0.5)
    return [Head(net.inner_product("fc8", x, 1000, thin, 0))]


def inception(net, name, x, one, reduce3, three, reduce5, five, pooled):
    tag = f"inception_{name}"

    def conv(suffix, bottom, outputs, kernel, pad=0):
        top = net.conv(f"{tag}/{suffix}", bottom, outputs, kernel, pad=pad)
        return net.relu(f"{tag}/relu_{suffix}", top)

    parts = [conv("1x1", x, one, 1),
             conv("3x3", conv("3x3_reduce", x, reduce3, 1), three, 3, pad=1),
             conv("5x5", conv("5x5_reduce", x, reduce5, 1), five, 5, pad=2),
             conv("pool_proj", net.pool(f"{tag}/pool", x, "MAX", 3, 1, pad=1), pooled, 1)]
    return net.layer(f"{tag}/output", "Concat", parts, [f"{tag}/output"])


def googlenet_head(scores, number, weight):
    tag = f"loss{number}"
    loss = f"{tag}/loss" if number < 3 else f"{tag}/loss3"
    return Head(scores, loss, f"{tag}/loss{1 if number < 3 else 3}", weight, f"{tag}/top-1", f"{tag}/top-5")


def auxiliary_head(net, number, x):
    """A classifier half way up that helps gradients to reach the lower layers; training only."""
    tag = f"loss{number}"
    x = net.pool(f"{tag}/ave_pool", x, "AVE", 5, 3)
    x = net.relu(f"{tag}/relu_conv", net.conv(f"{tag}/conv", x, 128, 1))
    x = net.relu(f"{tag}/relu_fc", net.inner_product(f"{tag}/fc", x, 1024, bias_value=0.2))
    scores = net.inner_product(f"{tag}/classifier", net.dropout(f"{tag}/drop_fc", x, 0.7), 1000)
    return googlenet_head(scores, number, 0.3)


def googlenet(net, data, with_auxiliary=True):
    x = net.relu("conv1/relu_7x7", net.conv("conv1/7x7_s2", data, 64, 7, stride=2, pad=3))
    x = net.lrn("pool1/norm1", net.pool("pool1/3x3_s2", x, "MAX", 3, 2))
    x = net.relu("conv2/relu_3x3_reduce", net.conv("conv2/3x3_reduce", x, 64, 1))
    x = net.relu("conv2/relu_3x3", net.conv("conv2/3x3", x, 192, 3, pad=1))
    x = net.pool("pool2/3x3_s2", net.lrn("conv2/norm2", x), "MAX", 3, 2)
    x = inception(net, "3a", x, 64, 96, 128, 16, 32, 32)
    x = inception(net, "3b", x, 128, 128, 192, 32, 96, 64)
    x = net.pool("pool3/3x3_s2", x, "MAX", 3, 2)
    heads = []
    x = inception(net, "4a", x, 192, 96, 208, 16, 48, 64)
    if with_auxiliary:
        heads.append(auxiliary_head(net, 1, x))
    x = inception(net, "4b", x, 160, 112, 224, 24, 64, 64)
    x = inception(net, "4c", x, 128, 128, 256, 24, 64, 64)
    x = inception(net, "4d", x, 112, 144, 288, 32, 64, 64)
    if with_auxiliary:
        heads.append(auxiliary_head(net, 2, x))
    x = inception(net, "4e", x, 256, 160, 320, 32, 128, 128)
    x = net.pool("pool4/3x3_s2", x, "MAX", 3, 2)
    x = inception(net, "5a", x, 256, 160, 320, 32, 128, 128)
    x = inception(net, "5b", x, 384, 192, 384, 48, 128, 128)
    x = net.dropout("pool5/drop_7x7_s1", net.pool("pool5/7x7_s1", x, "AVE", 7, 1), 0.4)
    heads.append(googlenet_head(net.inner_product("loss3/classifier", x, 1000), 3, 1))
    return heads


def conv_norm(net, tag, bottom, outputs, kernel, stride=1, pad=0, relu=True):
    name = "conv1" if tag == "_conv1" else f"res{tag}"
    x = net.conv(name, bottom, outputs, kernel, stride, pad, bias=False, weight='type: "msra"')
    net.layer(f"bn{tag}", "BatchNorm", [x], [x])
    net.layer(f"scale{tag}", "Scale", [x], [x], "scale_param { bias_term: true }")
    return net.relu(f"{name}_relu", x) if relu else x


def resnet50(net, data):
    x = conv_norm(net, "_conv1", data, 64, 7, stride=2, pad=3)
    x = net.pool("pool1", x, "MAX", 3, 2)
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), start=2):
        for block in range(blocks):
            tag = f"{stage}{'abcdef'[block]}"
            stride = 2 if stage > 2 and block == 0 else 1
            shortcut = x
            if block == 0:
                shortcut = conv_norm(net, f"{tag}_branch1", x, 4 * width, 1, stride, relu=False)
            y = conv_norm(net, f"{tag}_branch2a", x, width, 1, stride)
            y = conv_norm(net, f"{tag}_branch2b", y, width, 3, pad=1)
            y = conv_norm(net, f"{tag}_branch2c", y, 4 * width, 1, relu=False)
            x = net.layer(f"res{tag}", "Eltwise", [shortcut, y], [f"res{tag}"])
            net.relu(f"res{tag}_relu", x)
    x = net.global_pool("pool5", x)
    return [Head(net.inner_product("fc1000", x, 1000, 'type: "msra"'))]


def build(name, body, data, finish, batch, test_batch, image, **options):
    net = Net(name)
    finish(net, body(net, data(net, batch, test_batch, image), **options))
    return net.text()


def files():
    """Path (relative to the repository) -> text."""
    models = (("bvlc_alexnet", "AlexNet", alexnet, (3, 227, 227), 256),
              ("bvlc_googlenet", "GoogLeNet", googlenet, (3, 224, 224), 32),
              ("resnet50", "ResNet-50", resnet50, (3, 224, 224), 32))
    for folder, name, body, image, batch in models:
        options = {"with_auxiliary": False} if body is googlenet else {}
        yield f"models/{folder}/train_val.prototxt", build(
            name, body, imagenet_data, losses_and_accuracy, batch, 50, image)
        yield f"models/{folder}/deploy.prototxt", build(
            name, body, deploy_data, probabilities, 10, 10, image, **options)
    benchmarks = (("lenet", "LeNet", lenet, (1, 28, 28), 64),
                  ("alexnet", "AlexNet", alexnet, (3, 227, 227), 32),
                  ("googlenet", "GoogLeNet", googlenet, (3, 224, 224), 16),
                  ("resnet50", "ResNet-50", resnet50, (3, 224, 224), 16))
    for file, name, body, image, batch in benchmarks:
        yield f"benchmarks/nets/{file}.prototxt", build(name, body, dummy_data, losses, batch, batch, image)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    check = parser.parse_args().check
    different = []
    for path, text in files():
        target = ROOT / path
        if check:
            if not target.exists() or target.read_text() != text:
                different.append(path)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for path in different:
        print(f"{path} differs; run models/generate.py", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

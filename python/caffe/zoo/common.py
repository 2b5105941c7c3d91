"""Shared by all families of nets: layers with their usual settings, data, heads, solvers."""
from __future__ import annotations

from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Tuple

from ..net_spec import NetSpec, Top, assign_proto, layers as L, params as P
from ..proto import caffe_pb2

TRAIN, TEST = dict(phase=caffe_pb2.TRAIN), dict(phase=caffe_pb2.TEST)
XAVIER, MSRA = dict(type="xavier"), dict(type="msra")
FLOAT16 = dict(default_forward_type=caffe_pb2.FLOAT16, default_backward_type=caffe_pb2.FLOAT16)
FLOAT16_MATH = dict(default_forward_math=caffe_pb2.FLOAT16, default_backward_math=caffe_pb2.FLOAT16)
FLOAT_MATH = dict(default_forward_math=caffe_pb2.FLOAT, default_backward_math=caffe_pb2.FLOAT)


def gaussian(std: float) -> dict:
    return dict(type="gaussian", std=std)


def constant(value: float) -> dict:
    return dict(type="constant", value=value)


class Head(NamedTuple):
    """A classifier during training: its scores, and the names of its loss and accuracies."""

    scores: Top
    loss_layer: str = "loss"
    loss_top: str = "loss"
    loss_weight: float = 1
    accuracy: str = "accuracy"
    accuracy_top5: Optional[str] = "accuracy_top5"


class Model:
    """A NetSpec with a method for each kind of layer; each method returns the new top.

    classes: number of classes. The layer of the scores has its name in the published weights if the
    number of classes is the same; otherwise another name, so that it does not load those weights.
    kept: moving-average factor of normalization statistics; None: the layers' default, 0.999, which is
    too slow for trainings of fewer than some thousand iterations.
    """

    def __init__(self, classes: int = 1000, kept: Optional[float] = None) -> None:
        self.spec = NetSpec()
        self.classes = classes
        self._statistics = {} if kept is None else dict(moving_average_fraction=kept)

    def scores_name(self, name: str, classes: int = 1000) -> str:
        """`name` if the number of classes is `classes`, else another name."""
        return name if self.classes == classes else f"{name}_{self.classes}_classes"

    def add(self, name: str, top: Any) -> Any:
        self.spec[name] = top
        return top

    def conv(self, name: str, bottom: Top, outputs: int, kernel: Any, stride: int = 1, pad: Any = 0, group: int = 1,
             dilation: int = 1, bias: Optional[float] = 0.0, weight: Optional[dict] = None, rate: float = 1,
             frozen: bool = False) -> Top:
        """bias: its initial value; None for a convolution without bias. rate: factor on lr_mult."""
        options = dict(num_output=outputs, weight_filler=weight or XAVIER)
        options.update(dict(kernel_h=kernel[0], kernel_w=kernel[1]) if isinstance(kernel, tuple) else
                       dict(kernel_size=kernel))
        options.update(dict(pad_h=pad[0], pad_w=pad[1]) if isinstance(pad, tuple) else dict(pad=pad) if pad else {})
        options.update({key: value for key, value in dict(stride=stride, group=group, dilation=dilation).items()
                        if value != 1})
        options.update(dict(bias_term=False) if bias is None else dict(bias_filler=constant(bias)))
        return self.add(name, L.Convolution(bottom, param=learning(bias is not None, 0 if frozen else rate), **options))

    def norm(self, name: str, bottom: Top, **options: Any) -> Top:
        """Normalization with learned scale and shift in one layer, in NVCaffe's form."""
        return self.add(name, L.BatchNorm(bottom, in_place=True, moving_average_fraction=0.9, eps=1e-4,
                                          scale_bias=True, **options))

    def norm_and_scale(self, norm: str, scale: str, bottom: Top) -> Top:
        """The same in BVLC's form: statistics in BatchNorm, scale and shift in Scale."""
        normalized = self.add(norm, L.BatchNorm(bottom, in_place=True, **self._statistics))
        return self.add(scale, L.Scale(normalized, in_place=True, bias_term=True))

    def relu(self, name: str, bottom: Top) -> Top:
        return self.add(name, L.ReLU(bottom, in_place=True))

    def pool(self, name: str, bottom: Top, kind: str, kernel: int, stride: int, pad: int = 0) -> Top:
        return self.add(name, L.Pooling(bottom, pool=getattr(P.Pooling, kind), kernel_size=kernel, stride=stride,
                                        **(dict(pad=pad) if pad else {})))

    def global_pool(self, name: str, bottom: Top) -> Top:
        return self.add(name, L.Pooling(bottom, pool=P.Pooling.AVE, global_pooling=True))

    def lrn(self, name: str, bottom: Top) -> Top:
        return self.add(name, L.LRN(bottom, local_size=5, alpha=0.0001, beta=0.75))

    def dropout(self, name: str, bottom: Top, ratio: float) -> Top:
        return self.add(name, L.Dropout(bottom, in_place=True, dropout_ratio=ratio))

    def inner_product(self, name: str, bottom: Top, outputs: int, bias: float = 0.0, weight: Optional[dict] = None,
                      rate: float = 1) -> Top:
        return self.add(name, L.InnerProduct(bottom, param=learning(True, rate), num_output=outputs,
                                             weight_filler=weight or XAVIER, bias_filler=constant(bias)))

    def concat(self, name: str, parts: Iterable[Top]) -> Top:
        return self.add(name, L.Concat(*parts))

    def add_up(self, name: str, one: Top, other: Top) -> Top:
        return self.add(name, L.Eltwise(one, other))


def learning(bias: bool, rate: float = 1) -> List[dict]:
    """Caffe's convention: biases learn twice as fast and do not decay. Rate 0 freezes both."""
    specs = [dict(lr_mult=rate, decay_mult=0 if rate == 0 else 1)]
    return specs + ([dict(lr_mult=2 * rate, decay_mult=0)] if bias else [])


# Default training: the rate rises for a quarter of the time, then falls to almost 0.
ONE_CYCLE = dict(type="Nesterov", momentum=0.9, lr_policy="onecycle", rise=0.25, weight_decay=0.0005)

Body = Callable[[Model, Top], List[Head]]


class Images(NamedTuple):
    """The source of a net's images, and their preprocessing."""

    shape: Tuple[int, int, int] = (3, 224, 224)
    train: str = "examples/imagenet/ilsvrc12_train_lmdb"
    test: str = "examples/imagenet/ilsvrc12_val_lmdb"
    mean: Tuple[float, ...] = (104, 117, 123)
    scale: float = 1
    layer: str = "Data"
    pad: int = 0  # pixels added around a training image before random cropping

    def layers(self, phase: dict, batch: int) -> Tuple[Top, Top]:
        training = phase is TRAIN
        transform = dict(crop_size=self.shape[-1], mean_value=list(self.mean))
        if training:
            transform["mirror"] = True
            if self.pad:
                transform["pad"] = self.pad
        if self.scale != 1:
            transform["scale"] = self.scale
        source = self.train if training else self.test
        if self.layer == "ImageData":
            options = dict(image_data_param=dict(source=source, batch_size=batch, new_height=256, new_width=256,
                                                 shuffle=training))
        else:
            options = dict(data_param=dict(source=source, batch_size=batch, backend=P.Data.LMDB))
        return getattr(L, self.layer)(ntop=2, name="data", include=phase, transform_param=transform, **options)

    def info(self) -> Any:
        """Preprocessing for a model's folder: the shorter side becomes 256 pixels, the centre is cropped."""
        resize = dict(resize_mode="FIT_SMALL_SIZE", height=256, width=256)
        return caffe_pb2.ModelInfo(mean_value=self.mean, scale=None if self.scale == 1 else self.scale, resize=resize)


def write(spec: NetSpec, name: str, **header: Any) -> Any:
    net = spec.to_proto()
    net.MergeFrom(caffe_pb2.NetParameter(name=name, **header))
    return net


def train_val(name: str, body: Body, images: Images, batch: int, test_batch: int, classes: int = 1000, **header: Any) -> Any:
    """The net for training and testing: data by phase, losses, and accuracies in testing."""
    model, test = Model(classes), NetSpec()
    model.spec.data, model.spec.label = images.layers(TRAIN, batch)
    test.data, test.label = images.layers(TEST, test_batch)
    heads = body(model, model.spec.data)
    losses(model, heads)
    for head in heads:
        for top, k in ((head.accuracy, 1), (head.accuracy_top5, 5)):
            if top is not None:
                model.add(top, L.Accuracy(head.scores, model.spec.label, include=TEST, **(dict(top_k=k) if k > 1 else {})))
    net = write(model.spec, name, **header)
    net.layer.insert(1, test.to_proto().layer[0])
    return net


def losses(model: Model, heads: Iterable[Head]) -> None:
    for head in heads:
        weight = dict(loss_weight=head.loss_weight) if head.loss_weight != 1 else {}
        model.add(head.loss_top, L.SoftmaxWithLoss(head.scores, model.spec.label, name=head.loss_layer, **weight))


def deploy(name: str, body: Body, shape: Tuple[int, int, int], batch: int = 10, softmax: bool = True,
           classes: int = 1000, **header: Any) -> Any:
    """The net for inference: images in, probabilities (or scores) out."""
    model = Model(classes)
    model.spec.data = L.Input(shape=dict(dim=[batch, *shape]))
    heads = body(model, model.spec.data)
    if softmax:
        model.spec.prob = L.Softmax(heads[-1].scores)
    return write(model.spec, name, **header)


def benchmark(name: str, body: Body, shape: Tuple[int, int, int], batch: int) -> Any:
    """The training net on constant data, so that data costs no time."""
    model = Model()
    model.spec.data, model.spec.label = L.DummyData(
        ntop=2, shape=[dict(dim=[batch, *shape]), dict(dim=[batch])], data_filler=[constant(0.5), constant(0)])
    losses(model, body(model, model.spec.data))
    return write(model.spec, name)


def solver(folder: str, net: Optional[str] = "train_val.prototxt", prefix: Optional[str] = None, **fields: Any) -> Any:
    """A SolverParameter with momentum 0.9, and tests over ImageNet's 50,000 images in batches of 50; None unsets a field."""
    settings = dict(net=net and f"{folder}/{net}", test_iter=[1000], test_interval=5000, test_initialization=False, display=20,
                    average_loss=20, momentum=0.9, lr_policy="poly", snapshot=10000,
                    snapshot_prefix=f"{folder}/{prefix or folder.split('/')[-1]}")
    settings.update(fields)
    message = caffe_pb2.SolverParameter()
    for name, value in settings.items():
        if value is not None:
            assign_proto(message, name, value)
    return message

"""SSD 300x300 on VGG-16 (Liu et al. 2016), with the names of its published weights."""
from __future__ import annotations

from typing import NamedTuple, Tuple

from caffe.net_spec import layers as L, params as P
from caffe.proto import caffe_pb2

from caffe.zoo import vgg
from caffe.zoo.boxes import detections, join, loss, predict, samplers
from caffe.zoo.common import Model, constant, solver, write

MEAN = [104, 117, 123]
OVERLAPS = (0.1, 0.3, 0.5, 0.7, 0.9)


VOC = ("aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep "
       "sofa train tvmonitor").split()
# COCO numbers its 80 categories up to 90.
COCO = dict(enumerate("""person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant - stop_sign
    parking_meter bench bird cat dog horse sheep cow elephant bear zebra giraffe - backpack umbrella - - handbag tie
    suitcase frisbee skis snowboard sports_ball kite baseball_bat baseball_glove skateboard surfboard tennis_racket
    bottle - wine_glass cup fork knife spoon bowl banana apple sandwich orange broccoli carrot hot_dog pizza donut cake
    chair couch potted_plant bed - dining_table - - toilet - tv laptop mouse remote keyboard cell_phone microwave oven
    toaster sink refrigerator - book clock vase scissors teddy_bear hair_drier toothbrush""".split(), start=1))


class Task(NamedTuple):
    """What differs between data sets; sizes are the sides in pixels of the default boxes of each map, and one more."""

    folder: str
    name: str
    classes: int
    sizes: Tuple[int, ...]
    train: str
    test: str
    label_map: str
    labels: Tuple[Tuple[str, str], ...]
    solver: dict


TASKS = (
    Task("models/VGGNet/VOC0712/SSD_300x300", "VGG_VOC0712_SSD_300x300", 21, (30, 60, 111, 162, 213, 264, 315),
         "examples/VOC0712/VOC0712_trainval_lmdb", "examples/VOC0712/VOC0712_test_lmdb",
         "models/VGGNet/VOC0712/labelmap_voc.prototxt", tuple((name, name) for name in VOC),
         dict(base_lr=0.001, lr_policy="multistep", gamma=0.1, stepvalue=[80000, 100000, 120000], max_iter=120000,
              test_iter=[619], test_interval=10000)),
    Task("models/VGGNet/coco/SSD_300x300", "VGG_coco_SSD_300x300", 81, (21, 45, 99, 153, 207, 261, 315),
         "examples/coco/coco_train_lmdb", "examples/coco/coco_minival_lmdb",
         "models/VGGNet/coco/labelmap_coco.prototxt",
         tuple((str(number), name.replace("_", " ")) for number, name in COCO.items() if name != "-"),
         dict(base_lr=0.001, lr_policy="poly", power=2, max_iter=40000, test_iter=[625], test_interval=5000)),
)


def normalize(model, name, x, scale):
    """Each cell's values at length `scale`, which is then learned for each channel."""
    return model.add(name, L.Normalize(x, across_spatial=False, channel_shared=False, scale_filler=constant(scale)))


def next_map(model, stage, x, reduced, outputs, stride, pad):
    x = model.relu(f"conv{stage}_1_relu", model.conv(f"conv{stage}_1", x, reduced, 1))
    return model.relu(f"conv{stage}_2_relu", model.conv(f"conv{stage}_2", x, outputs, 3, stride, pad))


def extra_layers(model, x):
    """From the last convolutions of VGG to 1x1; returns the maps that boxes are predicted from."""
    maps = [normalize(model, "conv4_3_norm", model.spec.relu4_3, 20)]
    x = model.pool("pool5", x, "MAX", 3, 1, 1)
    x = model.relu("relu6", model.conv("fc6", x, 1024, 3, pad=6, dilation=6))
    x = model.relu("relu7", model.conv("fc7", x, 1024, 1))
    maps.append(x)
    for stage, reduced, outputs, stride, pad in ((6, 256, 512, 2, 1), (7, 128, 256, 2, 1), (8, 128, 256, 1, 0),
                                                 (9, 128, 256, 1, 0)):
        x = next_map(model, stage, x, reduced, outputs, stride, pad)
        maps.append(x)
    return maps


def boxes(model, task, data, maps):
    """For all default boxes: offsets, scores of the classes, and the boxes themselves."""
    names = ("conv4_3_norm", "fc7", "conv6_2", "conv7_2", "conv8_2", "conv9_2")
    ratios = ([2], [2, 3], [2, 3], [2, 3], [2], [2])
    steps = (8, 16, 32, 64, 100, 300)
    return join(model, [
        predict(model, name, x, data, 2 + 2 * len(ratios[i]), task.classes, dict(
            min_size=task.sizes[i], max_size=task.sizes[i + 1], aspect_ratio=ratios[i], flip=True, step=steps[i]))
        for i, (name, x) in enumerate(zip(names, maps))])


def body(model, task, data):
    x = vgg.stages(model, data, 16)
    return boxes(model, task, data, extra_layers(model, x))


def training_data(source, label_map, batch, side, batch_sampler):
    interpolations = [P.Resize.LINEAR, P.Resize.AREA, P.Resize.NEAREST, P.Resize.CUBIC, P.Resize.LANCZOS4]
    return L.AnnotatedData(
        ntop=2, data_param=dict(source=source, batch_size=batch, backend=P.Data.LMDB),
        annotated_data_param=dict(batch_sampler=batch_sampler, label_map_file=label_map),
        transform_param=dict(
            mirror=True, mean_value=MEAN,
            resize_param=dict(prob=1, resize_mode=P.Resize.WARP, height=side, width=side, interp_mode=interpolations),
            emit_constraint={},
            distort_param=dict(brightness_prob=0.5, brightness_delta=32, contrast_prob=0.5, contrast_lower=0.5,
                               contrast_upper=1.5, hue_prob=0.5, hue_delta=18, saturation_prob=0.5,
                               saturation_lower=0.5, saturation_upper=1.5, random_order_prob=0),
            expand_param=dict(prob=0.5, max_expand_ratio=4)))


def test_data(task, batch):
    return L.AnnotatedData(
        ntop=2, data_param=dict(source=task.test, batch_size=batch, backend=P.Data.LMDB),
        annotated_data_param=dict(batch_sampler=[{}], label_map_file=task.label_map),
        transform_param=dict(mean_value=MEAN, resize_param=dict(
            prob=1, resize_mode=P.Resize.WARP, height=300, width=300, interp_mode=[P.Resize.LINEAR])))


def train(task):
    model = Model()
    data, label = model.spec.data, model.spec.label = training_data(
        task.train, task.label_map, 32, 300, samplers(OVERLAPS, min_aspect_ratio=0.5, max_aspect_ratio=2))
    loss(model, body(model, task, data), label, task.classes, 0.5, 0.5)
    return write(model.spec, f"{task.name}_train")


def test(task):
    model = Model()
    data, label = model.spec.data, model.spec.label = test_data(task, 8)
    found = detections(model, task.classes, body(model, task, data))
    model.add("detection_eval", L.DetectionEvaluate(
        found, label, num_classes=task.classes, background_label_id=0, overlap_threshold=0.5,
        evaluate_difficult_gt=False))
    return write(model.spec, f"{task.name}_test")


def for_use(task):
    model = Model()
    model.spec.data = L.Input(shape=dict(dim=[1, 3, 300, 300]))
    detections(model, task.classes, body(model, task, model.spec.data))
    return write(model.spec, f"{task.name}_deploy")


def label_map(labels):
    names = (("none_of_the_above", "background"), *labels)
    return caffe_pb2.LabelMap(item=[dict(name=name, label=label, display_name=shown)
                                    for label, (name, shown) in enumerate(names)])


def files():
    for task in TASKS:
        yield task.label_map, label_map(task.labels), ""
        yield f"{task.folder}/train.prototxt", train(task), ""
        yield f"{task.folder}/test.prototxt", test(task), ""
        yield f"{task.folder}/deploy.prototxt", for_use(task), ""
        yield f"{task.folder}/solver.prototxt", solver(
            task.folder, None, task.name, train_net=f"{task.folder}/train.prototxt",
            test_net=[f"{task.folder}/test.prototxt"], weight_decay=0.0005, average_loss=10, eval_type="detection",
            ap_version="11point", **task.solver), "Batches of 32."

"""The single shot face detector (Zhang et al. 2017) on VGG-16: SSD for small faces, with the names of its published weights."""
from caffe.net_spec import layers as L, params as P
from caffe.proto import caffe_pb2
from caffe.zoo import boxes, vgg
from caffe.zoo.common import FLOAT16, FLOAT16_MATH, Model, solver, write

from . import ssd

FOLDER, NAME = "models/WIDER_FACE/SFD", "VGG_WIDER_FACE_SFD"
LABEL_MAP = "models/WIDER_FACE/labelmap_face.prototxt"
SIDE = 640
CLASSES = 2
BACKGROUNDS = 3


def maps(model, x):
    """Names and maps of a cell for 4, 8, 16, 32, 64 and 128 pixels a side."""
    x = model.pool("pool5", x, "MAX", 2, 2)
    # The border of 3 makes the map 4 cells longer than the image asks for; published weights are trained with it.
    x = model.relu("relu6", model.conv("fc6", x, 1024, 3, pad=3))
    fc7 = model.relu("relu7", model.conv("fc7", x, 1024, 1))
    conv6 = ssd.next_map(model, 6, fc7, 256, 512, 2, 1)
    conv7 = ssd.next_map(model, 7, conv6, 128, 256, 2, 1)
    lower = {f"conv{stage}_3_norm": ssd.normalize(model, f"conv{stage}_3_norm", model.spec[f"relu{stage}_3"], scale)
             for stage, scale in ((3, 10), (4, 8), (5, 5))}
    return {**lower, "fc7": fc7, "conv6_2": conv6, "conv7_2": conv7}


def largest_background(model):
    """Of several scores for background the largest counts, against the false faces among so many small boxes."""
    def change(tag, scores):
        *backgrounds, face = L.Slice(scores, name=f"{tag}_slice", ntop=BACKGROUNDS + 1, axis=1,
                                     slice_point=list(range(1, BACKGROUNDS + 1)))
        for i, top in enumerate(backgrounds, start=1):
            model.add(f"{tag}_background{i}", top)
        model.add(f"{tag}_face", face)
        largest = model.add(f"{tag}_maxout", L.Eltwise(*backgrounds, operation=P.Eltwise.MAX))
        return model.concat(f"{tag}_out", [largest, face])

    return change


def body(model, data, max_out, **priors):
    """One square box a cell, four cells wide."""
    predicted = []
    for i, (name, x) in enumerate(maps(model, vgg.stages(model, data, 16)).items()):
        several = dict(scores=BACKGROUNDS + 1, change=largest_background(model)) if max_out and i == 0 else dict(
            scores=CLASSES)
        predicted.append(boxes.predict(model, name, x, data, 1, prior=dict(min_size=16 << i, step=4 << i, **priors),
                                     **several))
    return boxes.join(model, predicted)


def train(name, max_out=False, boxes_in=None, **header):
    """boxes_in: fields of the layers that reckon with boxes, whose numbers 16 bits are too few for."""
    model, fields = Model(), boxes_in or {}
    data, label = model.spec.data, model.spec.label = ssd.training_data(
        "examples/WIDER_FACE/WIDER_FACE_train_lmdb", LABEL_MAP, 16, SIDE,
        boxes.samplers(ssd.OVERLAPS, min_aspect_ratio=1, max_aspect_ratio=1))
    boxes.loss(model, body(model, data, max_out, **fields), label, CLASSES, 0.35, 0.35, **fields)
    return write(model.spec, name, **header)


def for_use(name, max_out):
    model = Model()
    model.spec.data = L.Input(shape=dict(dim=[1, 3, SIDE, SIDE]))
    boxes.detections(model, CLASSES, body(model, model.spec.data, max_out), overlap=0.3, top_k=5000, keep=750,
                   confidence=0.05)
    return write(model.spec, name)


def files():
    yield LABEL_MAP, ssd.label_map((("face", "face"),)), ""
    full = dict(forward_type=caffe_pb2.FLOAT, backward_type=caffe_pb2.FLOAT)
    nets = {"": train(f"{NAME}_train"), "_orig": train(f"{NAME}_train_orig", max_out=True),
            "_fp16": train(f"{NAME}_train_fp16", boxes_in=full, **FLOAT16, **FLOAT16_MATH, global_grad_scale=32)}
    for suffix, net in nets.items():
        yield f"{FOLDER}/train{suffix}.prototxt", net, ""
        yield f"{FOLDER}/solver{suffix}.prototxt", solver(
            FOLDER, None, f"{NAME}{suffix}", train_net=f"{FOLDER}/train{suffix}.prototxt", test_iter=None,
            test_interval=None, test_initialization=None, base_lr=0.001, power=2, max_iter=60000, weight_decay=0.0005,
            average_loss=10), "Batches of 16."
    for suffix in ("", "_orig"):
        yield f"{FOLDER}/deploy{suffix}.prototxt", for_use(f"{NAME}_deploy{suffix}", bool(suffix)), ""

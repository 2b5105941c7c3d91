"""Object detection (Liu et al. 2016, "SSD: Single shot multibox detector")."""
from __future__ import annotations

from typing import Any

from ...net_spec import NetSpec
from ...net_spec import layers as L
from ...net_spec import params as P
from ...zoo import boxes
from ...zoo.common import TEST, TRAIN, Model, write
from . import KEPT, Plan, test_batch


def solver(iterations: int) -> dict:
    """The weights are averaged over a twelfth of the training, which places boxes more exactly."""
    return dict(eval_type="detection", ap_version="Integral", metric="detection_eval", ema_decay=round(max(0.5, 1 - 12 / iterations), 3))


def train_val(plan: Plan) -> Any:
    classes = len(plan.dataset.classes)
    model, test = Model(classes, KEPT), NetSpec()
    model.spec.data, model.spec.label = _data(plan, TRAIN)
    test.data, test.label = _data(plan, TEST)
    predicted = plan.net.body(model, model.spec.data, plan.side)
    boxes.loss(model, predicted, model.spec.label, classes, 0.5, 0.5, include=TRAIN)
    before = len(write(model.spec, plan.name).layer)
    found = boxes.detections(model, classes, predicted, overlap=0.6, vote=0.7)
    model.add("detection_eval", L.DetectionEvaluate(found, model.spec.label, num_classes=classes, background_label_id=0,
                                                    overlap_threshold=0.5, evaluate_difficult_gt=False))
    net = write(model.spec, plan.name)
    for layer in net.layer[before:]:
        layer.include.add(phase=TEST["phase"])
    net.layer.insert(1, test.to_proto().layer[0])
    return net


def _data(plan: Plan, phase: dict) -> Any:
    # The database has the users' files. force_color turns photographs upright and gives all three channels.
    transform: dict = dict(force_color=True, mean_value=list(plan.mean), scale=plan.scale, resize_param=dict(
        prob=1, resize_mode=P.Resize.WARP, height=plan.side, width=plan.side, interp_mode=[P.Resize.LINEAR]))
    annotated: dict = dict(label_map_file=plan.halves.more["label_map"], batch_sampler=[{}])
    if phase is TRAIN:
        transform.update(mirror=True, emit_constraint={}, distort_param=dict(
            brightness_prob=0.5, brightness_delta=32, contrast_prob=0.5, contrast_lower=0.5, contrast_upper=1.5, hue_prob=0.5,
            hue_delta=18, saturation_prob=0.5, saturation_lower=0.5, saturation_upper=1.5),
                         expand_param=dict(prob=0.5, max_expand_ratio=2))
        annotated["batch_sampler"] = boxes.samplers((0.3, 0.5, 0.7, 0.9), min_aspect_ratio=0.5, max_aspect_ratio=2)
    source = plan.halves.train if phase is TRAIN else plan.halves.val
    options = dict(shuffle=True) if phase is TRAIN else {}
    return L.AnnotatedData(ntop=2, name="data", include=phase, transform_param=transform, annotated_data_param=annotated,
                           data_param=dict(source=source, batch_size=plan.batch if phase is TRAIN else test_batch(plan), backend=P.Data.LMDB, **options))

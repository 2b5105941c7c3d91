"""Segmentation: one class per pixel."""
from __future__ import annotations

from typing import Any

from ...net_spec import NetSpec
from ...net_spec import layers as L
from ...net_spec import params as P
from ...zoo.common import TEST, TRAIN, Model, write
from . import KEPT, Plan, test_batch


def solver(_iterations: int) -> dict:
    return {}


def train_val(plan: Plan) -> Any:
    model, test = Model(len(plan.dataset.classes), KEPT), NetSpec()
    model.spec.data, model.spec.label = _data(plan, TRAIN)
    test.data, test.label = _data(plan, TEST)
    scores = plan.net.body(model, model.spec.data)
    ignored = int(plan.halves.more["ignore"])
    model.add("loss", L.SoftmaxWithLoss(scores, model.spec.label, loss_param=dict(ignore_label=ignored)))
    model.add("accuracy", L.Accuracy(scores, model.spec.label, include=TEST, ignore_label=ignored))
    net = write(model.spec, plan.name)
    net.layer.insert(1, test.to_proto().layer[0])
    return net


def _data(plan: Plan, phase: dict) -> Any:
    transform: dict = dict(mean_value=list(plan.mean), scale=plan.scale, crop_size=plan.side)
    if phase is TRAIN:
        transform["mirror"] = True
    source = plan.halves.train if phase is TRAIN else plan.halves.val
    return L.ImageSegData(ntop=2, name="data", include=phase, transform_param=transform, image_data_param=dict(
        source=source, root_folder="data/", batch_size=plan.batch if phase is TRAIN else test_batch(plan), shuffle=phase is TRAIN,
        label_type=P.ImageData.PIXEL))

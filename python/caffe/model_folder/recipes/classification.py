"""Classification: one class per image."""
from __future__ import annotations

from typing import Any

from ...net_spec import NetSpec
from ...net_spec import layers as L
from ...net_spec import params as P
from ...zoo.common import TEST, TRAIN, Model, write
from . import KEPT, Plan, test_batch

_PHOTOGRAPH = 64  # pixels; smaller images are not photographs, and each pixel counts
_SMOOTHING = 0.1  # label smoothing: probability assigned to wrong classes (Szegedy et al. 2016)


def solver(_iterations: int) -> dict:
    return {}


def stored_side(side: int) -> int:
    """Height and width of stored images for a net's input of `side` pixels. Photographs are stored a little larger, to allow
    random crops."""
    return side * 8 // 7 if side >= _PHOTOGRAPH else side


def train_val(plan: Plan) -> Any:
    model, test = Model(len(plan.dataset.classes), KEPT), NetSpec()
    model.spec.data, model.spec.label = _data(plan, TRAIN)
    test.data, test.label = _data(plan, TEST)
    head = plan.net.body(model, model.spec.data)[-1]
    model.add("loss", L.SoftmaxWithLoss(head.scores, model.spec.label, loss_param=dict(label_smoothing=_SMOOTHING)))
    model.add("accuracy", L.Accuracy(head.scores, model.spec.label, include=TEST))
    net = write(model.spec, plan.name)
    net.layer.insert(1, test.to_proto().layer[0])
    return net


def _data(plan: Plan, phase: dict) -> Any:
    """Training uses random crops of photographs, or small images that are shifted by a few pixels and lose a
    rectangle half of the time; both are mirrored half of the time. Testing uses the centre."""
    transform: dict = dict(mean_value=list(plan.mean), scale=plan.scale, crop_size=plan.side)
    if phase is TRAIN:
        transform["mirror"] = True
        if plan.side >= _PHOTOGRAPH:
            transform["random_resized_crop"] = dict(min_area=0.35)
        else:
            transform["pad"] = plan.side // 8
            transform["erasing"] = dict(prob=0.5, max_area=0.25)
    source = plan.halves.train if phase is TRAIN else plan.halves.val
    options = dict(shuffle=True) if phase is TRAIN else {}
    return L.Data(ntop=2, name="data", include=phase, transform_param=transform,
                  data_param=dict(source=source, batch_size=plan.batch if phase is TRAIN else test_batch(plan), backend=P.Data.LMDB, **options))

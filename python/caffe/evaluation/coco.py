"""Metrics of object detectors by COCO's rules, computed with pycocotools (Lin et al. 2014, "Microsoft COCO")."""
from __future__ import annotations

import contextlib
import io
from typing import Any, Dict, Optional, Sequence

import numpy as np

from .. import InvalidArgument
from .boxes import names_by_label, rows_of


def _library():
    """(COCO, COCOeval) of whichever package is installed; None if there is none."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
        return COCO, COCOeval
    except ImportError:
        pass
    try:
        from faster_coco_eval import COCO, COCOeval_faster
        return COCO, COCOeval_faster
    except ImportError:
        return None


def score_by_coco(truths: np.ndarray, detections: np.ndarray, labels: Sequence[int], images: Sequence[int],
                  names: Optional[Sequence[str]] = None) -> Optional[Dict[str, Any]]:
    """"ap" is the mean over overlaps 0.5, 0.55, ..., 0.95 and classes; "ap50" and "ap75" use one overlap;
    None if there are no objects. The 100 detections with the highest scores per image and class count.

    Rows as in `boxes`; images: the numbers of all images, including those without rows. Difficult
    objects are treated as crowds: detections of them count as neither right nor wrong. Precision by
    object size is omitted, because coordinates are fractions of the image.

    Returns None if neither pycocotools nor faster-coco-eval is installed.
    """
    library = _library()
    if library is None:
        return None
    coco_class, eval_class = library
    truths, detections = rows_of(truths, detections)
    names = names_by_label(labels, names)
    unknown = sorted((set(truths[:, 0]) | set(detections[:, 0])) - set(images))
    if unknown:
        raise InvalidArgument(f"rows are of image {unknown[0]:g}, which is none of the {len(images)} images; name all images")
    detections = detections[np.isin(detections[:, 1], labels) & ~np.isnan(detections[:, 2])]
    boxes = np.clip(detections[:, 3:7], 0, 1)
    truth_boxes = truths[:, 2:6]
    with contextlib.redirect_stdout(io.StringIO()):  # hides its progress messages
        truth = coco_class()
        truth.dataset = dict(
            info={}, images=[dict(id=int(image), width=1, height=1) for image in images],
            categories=[dict(id=int(label), name=str(label)) for label in labels],
            annotations=[dict(id=k + 1, image_id=int(row[0]), category_id=int(row[1]), bbox=_corner_and_size(box), iscrowd=int(row[6] != 0),
                              area=float(_area(box))) for k, (row, box) in enumerate(zip(truths, truth_boxes))])
        truth.createIndex()
        answers = [dict(image_id=int(row[0]), category_id=int(row[1]), score=float(row[2]), bbox=_corner_and_size(box))
                   for row, box in zip(detections, boxes)]
        run = eval_class(truth, truth.loadRes(answers) if answers else coco_class(), "bbox")
        run.params.imgIds, run.params.catIds = [int(image) for image in images], [int(label) for label in labels]
        run.params.areaRng, run.params.areaRngLbl = [[0, 1e10]], ["all"]
        run.params.maxDets = [100]
        if answers:
            run.evaluate()
            run.accumulate()
    precision = np.asarray(run.eval["precision"])[..., 0, 0] if answers else _nothing_found(truths, labels)
    rows = [dict(label=int(label), name=names[label], **_figures(precision[:, :, [k]]))
            for k, label in enumerate(labels)]
    return dict(**_figures(precision), classes=rows)


def _nothing_found(truths, labels) -> np.ndarray:
    """An array overlap x recall x class like COCOeval's: 0 for classes that have objects, else -1."""
    has = [bool(((truths[:, 1] == label) & (truths[:, 6] == 0)).any()) for label in labels]
    return np.broadcast_to(np.where(has, 0.0, -1.0), (10, 101, len(has)))


def _figures(precision: np.ndarray) -> Dict[str, Optional[float]]:
    return dict(ap=_mean(precision), ap50=_mean(precision[0]), ap75=_mean(precision[5]))


def _mean(precision: np.ndarray) -> Optional[float]:
    known = precision[precision > -1]
    return float(known.mean()) if known.size else None


def _corner_and_size(box) -> list:
    return [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]


def _area(box) -> float:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)

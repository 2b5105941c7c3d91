"""Evaluates models: computes metrics of whole nets, and of arrays with pure functions.

    from caffe import evaluation

    figures = evaluation.score_classes(labels, probabilities)
    print(figures["accuracy"], figures["calibration"]["expected_error"])

    done = evaluation.evaluate(evaluation.open_subject("train_val.prototxt", "net.caffemodel"))
    print(done.text)

Functions on arrays: `classes`, `boxes`, `coco`, `masks`. Running a net: `subject` opens it, `records`
reads each record of its TEST data once, `tasks` has a module for each kind of output. `page` and
`outputs` write the files of `caffe evaluate`.

Figures are dicts that JSON can represent: numbers, strings, lists, and None for undefined values, such
as the recall of a class that the data does not have.

Needs scikit-learn, and pycocotools for COCO's rules; pages also need Jinja2 and Pillow.
"""
from .boxes import average_precision, match_boxes, overlaps, precision_recall, score_boxes
from .classes import calibration, log_loss, probabilities_of, score_classes
from .coco import score_by_coco
from .masks import confusion_of_masks, score_masks
from .records import each_record_once
from .run import evaluate
from .subject import Subject, open_subject

__all__ = ["Subject", "average_precision", "calibration", "confusion_of_masks", "each_record_once", "evaluate", "log_loss",
           "match_boxes", "open_subject", "overlaps", "precision_recall", "probabilities_of", "score_boxes", "score_by_coco",
           "score_classes", "score_masks"]

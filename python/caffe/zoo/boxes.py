"""The end of object detectors (Liu et al. 2016, "SSD: Single shot multibox detector"): predictions from feature maps, loss, detections."""
from ..net_spec import layers as L, params as P

VARIANCE = [0.1, 0.1, 0.2, 0.2]


def predict(model, name, x, data, count, scores, prior, change=lambda tag, y: y):
    """Predictions from a feature map, for `count` boxes per cell: offsets, `scores` numbers which `change` may combine, and prior boxes."""
    parts = []
    for kind, outputs in (("loc", 4 * count), ("conf", scores * count)):
        tag = f"{name}_mbox_{kind}"
        y = model.conv(tag, x, outputs, 3, pad=1)
        y = change(tag, y) if kind == "conf" else y
        y = model.add(f"{tag}_perm", L.Permute(y, order=[0, 2, 3, 1]))
        parts.append(model.add(f"{tag}_flat", L.Flatten(y, axis=1)))
    parts.append(model.add(f"{name}_mbox_priorbox", L.PriorBox(
        x, data, clip=False, variance=VARIANCE, offset=0.5, **prior)))
    return parts


def join(model, predicted):
    """Concatenates the results of `predict` for all feature maps."""
    return [model.add(f"mbox_{kind}", L.Concat(*parts, axis=2 if kind == "priorbox" else 1))
            for kind, parts in zip(("loc", "conf", "priorbox"), zip(*predicted))]


def samplers(overlaps, **shape):
    """Crops: the whole image, a part that overlaps an object by at least one of `overlaps`, or any part."""
    constraints = [dict(min_jaccard_overlap=overlap) for overlap in overlaps] + [dict(max_jaccard_overlap=1)]
    return [dict(use_original_image=True, max_sample=1, max_trials=1)] + [
        dict(sampler=dict(min_scale=0.3, max_scale=1, **shape), sample_constraint=constraint, max_sample=1, max_trials=50)
        for constraint in constraints]


def loss(model, predicted, label, classes, overlap, negative_overlap, **options):
    return model.add("mbox_loss", L.MultiBoxLoss(
        *predicted, label, propagate_down=[True, True, False, False],
        loss_param=dict(normalization=P.Loss.VALID), num_classes=classes, share_location=True,
        match_type=P.MultiBoxLoss.PER_PREDICTION, overlap_threshold=overlap, use_prior_for_matching=True,
        background_label_id=0, use_difficult_gt=True, neg_pos_ratio=3, neg_overlap=negative_overlap,
        code_type=P.PriorBox.CENTER_SIZE, mining_type=P.MultiBoxLoss.MAX_NEGATIVE, **options))


def detections(model, classes, predicted, overlap=0.45, top_k=400, keep=200, confidence=0.01, vote=0.0):
    """Non-maximum suppression on the `top_k` best boxes of each class; keeps `keep` boxes in total. Each becomes the mean, weighted by
    score, of the candidates that overlap it by at least `vote`, in (0, 1] (box voting, Gidaris and Komodakis 2015); 0: it stays."""
    location, scores, priors = predicted
    x = model.add("mbox_conf_reshape", L.Reshape(scores, shape=dict(dim=[0, -1, classes])))
    x = model.add("mbox_conf_softmax", L.Softmax(x, axis=2))
    x = model.add("mbox_conf_flatten", L.Flatten(x, axis=1))
    return model.add("detection_out", L.DetectionOutput(
        location, x, priors, num_classes=classes, share_location=True, background_label_id=0,
        nms_param=dict(nms_threshold=overlap, top_k=top_k), code_type=P.PriorBox.CENTER_SIZE,
        keep_top_k=keep, confidence_threshold=confidence, **(dict(vote_threshold=vote) if vote else {})))

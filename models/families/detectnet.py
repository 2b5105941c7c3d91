"""DetectNet (NVIDIA 2016): GoogLeNet's modules say of each cell of 16 x 16 pixels what covers it, and where its box is."""
from caffe.net_spec import NetSpec, layers as L, params as P

from . import googlenet
from caffe.zoo.common import TEST, TRAIN, Model, solver, write

FOLDER = "models/kitti_detectnet"
WIDTH, HEIGHT, STRIDE = 1248, 384, 16
MEAN = 127
PRODUCT = P.Eltwise.PROD
# Chances and largest changes; in pixels, degrees and parts.
AUGMENTATION = dict(crop_prob=1, shift_x=32, shift_y=32, flip_prob=0.5, rotation_prob=0, scale_prob=0.4, scale_min=0.8,
                    scale_max=1.2, hue_rotation_prob=0.8, hue_rotation=30, desaturation_prob=0.8, desaturation_max=0.8)


def data(phase, part, batch, classes):
    """Images, and the grids made of the boxes in the label database."""
    n = NetSpec()
    for what in ("images", "labels"):
        n[what] = L.Data(include=phase, data_param=dict(source=f"{FOLDER}/kitti_{part}_{what}_lmdb", batch_size=batch,
                                                        backend=P.Data.LMDB))
    n["transformed_data"], n["transformed_label"] = L.DetectNetTransformation(
        n.images, n.labels, name="transform", ntop=2, include=phase, transform_param=dict(mean_value=[MEAN]),
        detectnet_groundtruth_param=dict(
            stride=STRIDE, scale_cvg=0.4, gridbox_type=P.DetectNetGroundTruth.GRIDBOX_MIN, min_cvg_len=20,
            obj_norm=True, image_size_x=WIDTH, image_size_y=HEIGHT,
            object_class=[dict(src=kind + 1, dst=kind) for kind in range(classes)]),
        **(dict(detectnet_augmentation_param=AUGMENTATION) if phase is TRAIN else {}))
    return n


def body(model, x, classes):
    """The coverage of each cell by each class, 0 to 1, and the corners of its box in pixels from its own."""
    x = model.dropout("pool5/drop_s1", googlenet.trunk(model, x, stride=STRIDE), 0.4)
    coverage = model.add("coverage", L.Sigmoid(model.conv("cvg/classifier", x, classes, 1), name="coverage/sig"))
    boxes = model.conv("bboxes", x, 4, 1)
    boxes.update(dict(name="bbox/regressor"))
    return coverage, boxes


def for_use(name, classes):
    model = Model()
    model.spec.data = L.Input(shape=dict(dim=[1, 3, HEIGHT, WIDTH]))
    body(model, model.add("transformed_data", L.Power(model.spec.data, name="deploy_transform", shift=-MEAN)), classes)
    return write(model.spec, name)


def losses(model, coverage, boxes, label):
    """Boxes count where an object is, by the inverse of its size and of the number of its cells."""
    names = [f"{what}-label" for what in ("foreground", "bbox", "size", "obj", "coverage")]
    for name, top in zip(names, L.Slice(label, name="slice-label", ntop=5, axis=1, slice_point=[1, 5, 7, 8])):
        model.add(name, top)
    foreground, box_label, size, obj, coverage_label = (model.spec[name] for name in names)
    blocks = [model.concat(f"{name}-block", [top] * times)
              for name, top, times in (("coverage", foreground, 4), ("size", size, 2), ("obj", obj, 4))]

    def product(name, one, other):
        return model.add(name, L.Eltwise(one, other, operation=PRODUCT))

    target = product("bbox-obj-label-norm", product("bbox-label-norm", box_label, blocks[1]), blocks[2])
    for name, block in zip(("bboxes-masked", "bboxes-masked-norm", "bboxes-obj-masked-norm"), blocks):
        boxes = product(name, boxes, block)
    model.add("loss_bbox", L.L1Loss(boxes, target, loss_weight=2))
    model.add("loss_coverage", L.EuclideanLoss(coverage, coverage_label))
    return coverage_label, box_label


def scores(model, coverage, boxes, coverage_label, box_label, classes):
    """Boxes from both grids, and how well they agree, for each class; layers in Python that only testing has."""
    suffixes = [""] if classes == 1 else [f"-class{kind}" for kind in range(classes)]
    grid, count = f"{WIDTH},{HEIGHT},{STRIDE}", "" if classes == 1 else f",{classes}"

    def python(name, kind, bottoms, tops, module, text=None):
        made = L.Python(*bottoms, name=name, ntop=len(tops), include=TEST, module=f"caffe.layers.detectnet.{module}",
                        layer=kind, **(dict(param_str=text) if text else {}))
        return [model.add(top, one) for top, one in zip(tops, made if len(tops) > 1 else [made])]

    # From coverage 0.6 on, more than 3 cells that agree to 0.02, at least 22 pixels high.
    found = python("cluster", "ClusterDetections", [coverage, boxes], [f"bbox-list{end}" for end in suffixes],
                   "clustering", f"{grid},0.6,3,0.02,22{count}")
    real = python("cluster_gt", "ClusterGroundtruth", [coverage_label, box_label],
                  [f"bbox-list-label{end}" for end in suffixes], "clustering", f"{grid}{count}")
    for end, truth, boxes_found in zip(suffixes, real, found):
        scored = python(f"score{end}", "ScoreDetections", [truth, boxes_found], [f"bbox-list-scored{end}"], "mean_ap")
        python(f"mAP{end}", "mAP", scored, [f"{what}{end}" for what in ("mAP", "precision", "recall")], "mean_ap")


def train_val(name, classes):
    model = Model()
    model.spec, test = data(TRAIN, "train", 10, classes), data(TEST, "test", 6, classes)
    coverage, boxes = body(model, model.spec["transformed_data"], classes)
    scores(model, coverage, boxes, *losses(model, coverage, boxes, model.spec["transformed_label"]), classes)
    net = write(model.spec, name)
    for place, layer in enumerate(test.to_proto().layer, start=len(test.to_proto().layer)):
        net.layer.insert(place, layer)
    return net


def files():
    for suffix, name, classes in (("", "DetectNet", 1), ("_2classes", "DetectNet-2classes", 2)):
        net = f"train_val{suffix}.prototxt"
        yield f"{FOLDER}/{net}", train_val(name, classes), ""
        yield f"{FOLDER}/deploy{suffix}.prototxt", for_use(name, classes), ""
        yield f"{FOLDER}/solver{suffix}.prototxt", solver(
            FOLDER, net, f"detectnet{suffix}", type="Adam", base_lr=0.0002, lr_policy="step", gamma=0.1,
            stepsize=12000, max_iter=38000, momentum2=0.999, weight_decay=1e-8, test_iter=[185], test_interval=1280), (
                "About 60 epochs of batches of 10; a tenth of the rate each 12,000 iterations.")

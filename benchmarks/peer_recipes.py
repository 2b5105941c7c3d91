#!/usr/bin/env python3
"""A folder of images to a model, from scratch and in the same time: fastai or ultralytics beside `caffe new`.

  benchmarks/peer_environment.sh && build/peer-venv/bin/pip install fastai ultralytics lmdb
  caffe new photos && caffe train photos_model                  # say, 30 minutes
  build/peer-venv/bin/python benchmarks/peer_recipes.py photos photos_model --minutes 30       JSON

The peer trains on the images that `caffe new` has kept for training, for as many epochs as fit into
the minutes (an epoch is timed first), and is scored on those kept for testing:

  classes   fastai: vision_learner of resnet18, fit_one_cycle, aug_transforms; accuracy
  boxes     ultralytics: YOLOv8n; mAP at an intersection over union of 0.5, and from 0.5 to 0.95
  masks     fastai: unet_learner of resnet18, fit_one_cycle, aug_transforms; mean intersection over union

Nothing is loaded that was trained before. `minutes` of the answer are those of the training alone.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time


def names_in(database):
    """Of the images in an LMDB that `caffe data import` or `convert_annoset` has written."""
    import lmdb

    with lmdb.open(str(database), readonly=True, lock=False) as environment, environment.begin() as transaction:
        return [key.decode().partition("_")[2] for key in transaction.cursor().iternext(values=False)]


def fit(make, minutes, rate):
    """One cycle of as many epochs as fit into the time. make: gives a new learner. Returns (learner, epochs, minutes)."""
    trial = make()
    begin = time.monotonic()
    with trial.no_bar(), trial.no_logging():
        trial.fit(1, rate)
    epochs = max(1, int(minutes * 60 / (time.monotonic() - begin)))
    learner = make()
    begin = time.monotonic()
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(epochs, rate)
    return learner, epochs, (time.monotonic() - begin) / 60


def classes(images, model, minutes, size):
    from fastai.vision import all as fast

    kept = set(names_in(model / "data" / "val"))
    root = images / "train" if (images / "train").is_dir() else images
    files = list(fast.get_image_files(root))
    if root != images:  # the set says which images are for testing
        test = images / ("val" if (images / "val").is_dir() else "test")
        files += list(fast.get_image_files(test))
        is_kept = lambda file: test in file.parents  # noqa: E731
    else:
        is_kept = lambda file: str(file.relative_to(root)) in kept  # noqa: E731
    block = fast.DataBlock(blocks=(fast.ImageBlock, fast.CategoryBlock), get_items=lambda _: files, get_y=fast.parent_label,
                           splitter=fast.FuncSplitter(is_kept), item_tfms=fast.Resize(size), batch_tfms=fast.aug_transforms())
    loaders = block.dataloaders(root, bs=64, num_workers=1)

    def make():
        learner = fast.vision_learner(loaders, fast.resnet18, pretrained=False, metrics=fast.accuracy)
        learner.unfreeze()
        return learner

    learner, epochs, taken = fit(make, minutes, 3e-3)
    return dict(epochs=epochs, minutes=taken, accuracy=float(learner.validate()[1]), images=len(files), tested=len(loaders.valid_ds))


def masks(images, model, minutes, size):
    import numpy as np
    from fastai.vision import all as fast

    names = (images / "classes.txt").read_text().split("\n")
    names = [name for name in names if name]
    data = model / "data"
    pairs = {half: [line.split() for line in (data / f"{half}.txt").read_text().splitlines()] for half in ("train", "val")}
    mask_of = {data / image: data / mask for half in pairs.values() for image, mask in half}
    tested = {data / image for image, _ in pairs["val"]}
    block = fast.DataBlock(blocks=(fast.ImageBlock, fast.MaskBlock(names)), get_items=lambda _: list(mask_of), get_y=mask_of.get,
                           splitter=fast.FuncSplitter(tested.__contains__), batch_tfms=fast.aug_transforms(size=size))
    loaders = block.dataloaders(data, bs=8, num_workers=1)

    def make():
        learner = fast.unet_learner(loaders, fast.resnet18, pretrained=False, n_out=len(names))
        learner.unfreeze()
        return learner

    learner, epochs, taken = fit(make, minutes, 1e-3)
    scores, labels = learner.get_preds(dl=loaders.valid)
    answers, labels = scores.argmax(1).numpy(), labels.numpy()
    known = labels < len(names)
    counts = np.bincount((len(names) * labels[known] + answers[known]).astype(int), minlength=len(names) ** 2)
    counts = counts.reshape(len(names), -1)
    both = np.diag(counts) / (counts.sum(0) + counts.sum(1) - np.diag(counts))
    return dict(epochs=epochs, minutes=taken, mean_iou=float(both.mean()), tested=len(tested))


def boxes(images, model, minutes, size):
    from ultralytics import YOLO

    described = json.loads(next(images.glob("*.json")).read_text())
    kept = set(names_in(model / "data" / "val"))
    labels = {category["id"]: number for number, category in enumerate(described["categories"])}
    lines = {image["id"]: [] for image in described["images"]}
    extents = {image["id"]: (image["width"], image["height"]) for image in described["images"]}
    for one in described["annotations"]:
        (width, height), (x, y, w, h) = extents[one["image_id"]], one["bbox"]
        lines[one["image_id"]].append(
            f"{labels[one['category_id']]} {(x + w / 2) / width} {(y + h / 2) / height} {w / width} {h / height}\n")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for image in described["images"]:
            half = "val" if image["file_name"] in kept else "train"
            name = pathlib.Path(image["file_name"])
            for kind in ("images", "labels"):
                (root / kind / half).mkdir(parents=True, exist_ok=True)
            shutil.copy(images / name, root / "images" / half / name.name)
            (root / "labels" / half / name.with_suffix(".txt").name).write_text("".join(lines[image["id"]]))
        (root / "set.yaml").write_text(f"path: {root}\ntrain: images/train\nval: images/val\nnames: "
                                       f"{json.dumps([category['name'] for category in described['categories']])}\n")
        options = dict(data=str(root / "set.yaml"), imgsz=size, device="cpu", workers=1, project=str(root), pretrained=False, verbose=False,
                       plots=False, seed=1, amp=False)
        begin = time.monotonic()
        YOLO("yolov8n.yaml").train(epochs=1, **options)
        epoch = time.monotonic() - begin
        epochs = max(1, int(minutes * 60 / epoch))
        net = YOLO("yolov8n.yaml")
        begin = time.monotonic()
        net.train(epochs=epochs, patience=epochs, **options)
        taken = (time.monotonic() - begin) / 60
        found = net.val(data=options["data"], imgsz=size, device="cpu", workers=1, plots=False, verbose=False, project=str(root))
        return dict(epochs=epochs, minutes=taken, map_50=float(found.box.map50), map_50_95=float(found.box.map), tested=len(kept))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=pathlib.Path, help="what `caffe new` was given")
    parser.add_argument("model", type=pathlib.Path, help="the folder that it made")
    parser.add_argument("--minutes", type=float, required=True, help="how long to train")
    parser.add_argument("--size", type=int, help="height and width of the net's input (32 for classes, else 128)")
    options = parser.parse_args()
    if (options.model / "data" / "labelmap.prototxt").is_file():
        task = boxes
    else:
        task = masks if (options.model / "data" / "val.txt").is_file() else classes
    size = options.size or (32 if task is classes else 128)
    print(json.dumps(dict(task=task.__name__, size=size, **task(options.images, options.model, options.minutes, size)), indent=2))


if __name__ == "__main__":
    main()

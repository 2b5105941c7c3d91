"""caffe new: from a folder of images to a model's folder."""
import io
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import zlib

import lmdb
import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image

from caffe import TEST, Net
from caffe.model_folder.new import Wishes, preview
from caffe.proto import caffe_pb2
from image_sets import COLOURS, classes, coco, masks, voc
from programs import BINARIES, need_program

SYSTEM_PYTHON = pathlib.Path("/usr/bin/python3")


@pytest.fixture
def folder(tmp_path):
    need_program("caffe")
    return tmp_path


def caffe(folder, *words, status=0):
    done = subprocess.run([BINARIES / "caffe", *map(str, words)], cwd=folder, text=True, check=False, capture_output=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": "", "PYTHON": sys.executable})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def read(file, kind):
    return text_format.Parse(file.read_text(), getattr(caffe_pb2, kind)())


def types(file):
    return [layer.type for layer in read(file, "NetParameter").layer]


def test_folders_of_classes(folder):
    classes(folder / "photos")
    said = caffe(folder, "new", "photos")
    assert "classification of 3 classes" in said and "next:  caffe train photos_model" in said
    model = folder / "photos_model"
    deploy = read(model / "deploy.prototxt", "NetParameter")
    assert list(deploy.model_info.label) == ["blue", "green", "red"]
    assert deploy.layer[0].type == "Input" and deploy.layer[-1].type == "Softmax"
    assert [round(mean) for mean in deploy.model_info.mean_value] == [93, 90, 93]
    solver = read(model / "solver.prototxt", "SolverParameter")
    assert (solver.net, solver.snapshot_prefix) == ("train_val.prototxt", "snapshots/photos_model")
    assert "caffe train photos_model" in (model / "README.md").read_text()
    # The statistics of the last steps count: with the layers' default 0.999, tests of a short training would use those of its start.
    net = read(model / "train_val.prototxt", "NetParameter")
    kept = {layer.batch_norm_param.moving_average_fraction for layer in net.layer if layer.type == "BatchNorm"}
    assert [round(share, 4) for share in kept] == [0.95]
    # Everything is inside the folder, so it may be moved.
    model.rename(folder / "moved")
    assert "Data" in caffe(folder / "moved", "plan", "train_val.prototxt")


def test_halves_that_are_there(folder):
    classes(folder / "photos/train")
    classes(folder / "photos/val", count=2)
    assert "24 images for training and 6 for testing" in caffe(folder, "new", "photos", "--output=m")


def test_lists(folder):
    classes(folder / "photos")
    lines = [f"photos/{name}/{number}.png {label}\n" for label, name in enumerate(COLOURS) for number in range(8)]
    (folder / "list.txt").write_text("".join(lines))
    (folder / "classes.txt").write_text("b\ng\nr\n")
    caffe(folder, "new", "list.txt", "--output=m", "--val=25%")
    assert list(read(folder / "m/deploy.prototxt", "NetParameter").model_info.label) == ["b", "g", "r"]
    (folder / "classes.txt").write_text("b\ng\n")
    assert "has 2 names, but the labels of list.txt go to 2" in caffe(folder, "new", "list.txt", "--output=n", status=1)


def test_a_box_that_is_cut_is_a_warning(folder):
    note = next((voc(folder / "scenes") / "pictures").glob("*.xml"))
    note.write_text(re.sub(r"<xmax>.*?<", "<xmax>105<", note.read_text()))
    said = caffe(folder, "new", "scenes", "--output=m", "--size=64")
    assert f"warning: 1 box lies partly outside of the image and is cut at its border, such as in scenes/pictures/{note.stem}." in said


@pytest.mark.parametrize("make", [voc, coco])
def test_boxes(folder, make):
    make(folder / "scenes")
    assert "detection of 1 class " in caffe(folder, "new", "scenes", "--output=m", "--size=64")
    assert "MultiBoxLoss" in types(folder / "m/train_val.prototxt")
    deploy = read(folder / "m/deploy.prototxt", "NetParameter")
    assert "; classes: 1 (brick).\n" in (folder / "m/README.md").read_text()
    assert deploy.layer[-1].type == "DetectionOutput" and list(deploy.model_info.label) == ["background", "brick"]
    assert (deploy.model_info.resize.height, deploy.model_info.resize.width) == (64, 64)


def test_masks(folder):
    masks(folder / "cells")
    (folder / "cells/classes.txt").write_text("ground\nblob\n")
    Image.new("RGB", (48, 48)).save(folder / "cells/images/alone.png")
    said = caffe(folder, "new", "cells", "--output=m")
    assert "segmentation of 2 classes" in said and "left out: 1 image without a mask, such as cells/images/alone.png\n" in said
    deploy = read(folder / "m/deploy.prototxt", "NetParameter")
    assert "Deconvolution" in types(folder / "m/deploy.prototxt") and list(deploy.model_info.label) == ["ground", "blob"]


def test_images_that_cannot_be_read_are_named(folder):
    (classes(folder / "photos") / "red/broken.png").write_bytes(b"no image")
    said = caffe(folder, "new", "photos", "--output=m")
    assert "left out: red/broken.png: " in said and "classification of 3 classes" in said


OWN = """
model_info { MEAN }
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 16 dim: 16 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""


def test_a_net_of_a_file_learns_other_classes(folder):
    """Fine-tuning: the last layer is new, the others take the weights, and images are prepared as the net expects."""
    classes(folder / "photos")
    (folder / "own.prototxt").write_text(OWN.replace("MEAN", "mean_value: 1 mean_value: 2 mean_value: 3 scale: 0.5"))
    conv = caffe_pb2.LayerParameter(name="conv", type="Convolution", blobs=[
        caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=[4, 3, 3, 3]), data=[0.25] * 108),
        caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=[4]), data=[0] * 4)])
    (folder / "own.caffemodel").write_bytes(caffe_pb2.NetParameter(layer=[conv]).SerializeToString())
    said = caffe(folder, "new", "photos", "--net=own.prototxt", "--from=own.caffemodel", "--epochs=1")
    assert "1 of 2 layers start from the given weights" in said
    readme = (folder / "photos_model/README.md").read_text()
    assert "\nTraining begins with the weights of 1 of 2 layers from `own.caffemodel`.\n" in readme
    assert "# 1 epoch; if interrupted, run it again\n" in readme
    net = text_format.Parse((folder / "photos_model/train_val.prototxt").read_text(), caffe_pb2.NetParameter())
    kinds = [layer.type for layer in net.layer]
    assert kinds == ["Data", "Data", "Convolution", "ReLU", "InnerProduct", "SoftmaxWithLoss", "Accuracy"]
    assert net.layer[4].name == "fc_3_classes" and net.layer[4].inner_product_param.num_output == 3
    assert net.layer[3].bottom == net.layer[3].top  # in place, as in the file
    transform = net.layer[0].transform_param
    assert (list(transform.mean_value), transform.scale, transform.crop_size) == ([1, 2, 3], 0.5, 16)
    said = caffe(folder, "train", "photos_model")
    assert re.search(r"conv +copied +2 blobs", said), said
    assert "red" in caffe(folder, "classify", "photos_model", "photos/red/1.png")
    said = caffe(folder, "new", "photos", "--from=photos_model", "--output=again")  # with the net that is in the folder
    assert "2 of 2 layers start from the given weights" in said
    assert "21 images are few to train a net from scratch" in caffe(folder, "new", "photos", "--output=third")


@pytest.mark.parametrize("old, new, said", [
    ('bottom: "fc" top: "prob"', 'bottom: "conv" top: "prob"', "has 1 inputs and 2 outputs"),
    ("dim: 3 dim: 16 dim: 16", "dim: 3 dim: 16 dim: 17", "whose input has the shape 1x3x16x17, not Nx3xSxS"),
    ('name: "conv"', 'name: "loss"', "whose layer 'loss' makes or is called 'loss', as a layer that training adds; rename it"),
    ('"fc"', '"label"', "whose layer 'label' makes or is called 'label', as a layer that training adds; rename it"),
    ('type: "InnerProduct"', 'type: "Softmax"', "whose last layer with num_output, 'conv', does not make its output"),
    ("MEAN", "", "does not say what images it was trained on; write their mean and scale into the net: model_info")])
def test_a_net_of_a_file_that_does_not_fit_is_refused(folder, old, new, said):
    classes(folder / "photos")
    (folder / "own.prototxt").write_text(OWN.replace(old, new).replace("MEAN", "mean_value: 1"))
    (folder / "own.caffemodel").write_bytes(caffe_pb2.NetParameter(name="none").SerializeToString())
    text = caffe(folder, "new", "photos", "--net=own.prototxt", "--from=own.caffemodel", status=1)
    assert said in text and not (folder / "photos_model").exists(), text


def weights(file, *layers, shape=(1,)):
    """A file with a blob for each layer."""
    blob = caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=shape), data=[0.5] * math.prod(shape))
    net = caffe_pb2.NetParameter(layer=[caffe_pb2.LayerParameter(name=name, type="Convolution", blobs=[blob]) for name in layers])
    file.write_bytes(net.SerializeToString())
    return file


def test_weights_of_another_net(folder):
    classes(folder / "photos")
    weights(folder / "w.caffemodel", "other", "more")
    said = caffe(folder, "new", "photos", "--net=resnet20", "--from=w.caffemodel", status=1)
    assert "none of its 2 layers with weights ('other', ...) is one of net 'resnet20'" in said
    (folder / "w.caffemodel").write_bytes(b"\xff" * 40)
    said = caffe(folder, "new", "photos", "--net=resnet20", "--from=w.caffemodel", status=1)
    assert "w.caffemodel" in said and "Traceback" not in said
    weights(folder / "w.caffemodel", "conv1", shape=(7, 3, 3, 3))
    said = caffe(folder, "new", "photos", "--net=resnet20", "--from=w.caffemodel", status=1)
    assert "--from is w.caffemodel, whose layers are not those of net 'resnet20': " in said and "'conv1'" in said
    assert "give the net of these weights with --net" in said and ".partial" not in said
    assert not (folder / "photos_model").exists()


@pytest.mark.parametrize("net", ["squeezenet", "resnet20"])
def test_weights_bring_their_net(folder, net):
    """The net for the size of the images would be cifarnet, which has a layer 'conv1' of another form."""
    classes(folder / "photos", count=4)
    caffe(folder, "new", "photos", f"--net={net}", "--epochs=1", "--output=first")
    caffe(folder, "train", "first", "--set", "max_iter=1")
    said = caffe(folder, "new", "photos", "--from=first", "--output=second")
    assert f"net {net} " in said and re.search(r"(\d+) of \1 layers start from the given weights", said), said


def test_the_name_of_published_weights_is_no_file(folder):
    classes(folder / "photos", count=2)
    card = folder / "models/mine/README.md"
    card.parent.mkdir(parents=True)
    card.write_text(f"---\ncaffemodel: mine.caffemodel\ncaffemodel_url: https://example.org/mine\nsha1: {'0' * 40}\n---\n")
    said = caffe(folder, "new", "photos", "--from=mine", status=1)
    assert "--from is mine, which is neither a file nor the folder" in said and "published weights: caffe fetch-weights mine" in said
    (card.parent / "mine.caffemodel").touch()
    assert "; give --from=models/mine/mine.caffemodel" in caffe(folder, "new", "photos", "--from=mine", status=1)


def test_published_weights_bring_their_net_and_their_images(folder):
    """A folder as `caffe fetch-weights` fills it, with a net that is none of the zoo's."""
    classes(folder / "photos")
    model = folder / "models/mine"
    model.mkdir(parents=True)
    (model / "README.md").write_text(f"---\ncaffemodel: w.caffemodel\ncaffemodel_url: https://example.org/w\nsha1: {'0' * 40}\n---\n")
    (model / "deploy.prototxt").write_text(OWN.replace("MEAN", ""))
    (model / "model_info.prototxt").write_text("mean_value: 1 mean_value: 2 mean_value: 3 scale: 0.5")
    Net(str(model / "deploy.prototxt"), TEST).save(str(model / "w.caffemodel"))
    said = caffe(folder, "new", "photos", "--from=models/mine")
    assert "net mine on 16x16 pixels" in said and "1 of 2 layers start from the given weights" in said
    assert ".partial" not in said  # also in warnings
    transform = read(folder / "photos_model/train_val.prototxt", "NetParameter").layer[0].transform_param
    assert (list(transform.mean_value), transform.scale) == ([1, 2, 3], 0.5)


def test_published_weights_keep_their_images(folder):
    """They were not trained on (pixel - mean of these images) / 64."""
    classes(folder / "photos")
    weights(folder / "w.caffemodel", "conv1", shape=(32, 3, 3, 3))
    caffe(folder, "new", "photos", "--net=mobilenet_v2", "--from=w.caffemodel")
    net = text_format.Parse((folder / "photos_model/train_val.prototxt").read_text(), caffe_pb2.NetParameter())
    transform = net.layer[0].transform_param
    assert list(transform.mean_value) == pytest.approx([103.94, 116.78, 123.68]) and transform.scale == pytest.approx(0.017)


def test_small_images_move_and_photographs_are_cut(folder):
    """Each of 24 pixels counts: training shifts the whole image by up to 3, and erases parts. Of photographs it uses parts."""
    classes(folder / "small")
    classes(folder / "large", side=90)
    for name, side, fields in (("small", 24, {"pad", "erasing"}), ("large", 64, {"random_resized_crop"})):
        caffe(folder, "new", name, *(["--net=resnet18"] if name == "large" else []))
        model = folder / f"{name}_model"
        net = text_format.Parse((model / "train_val.prototxt").read_text(), caffe_pb2.NetParameter())
        train, test = net.layer[0].transform_param, net.layer[1].transform_param
        assert train.crop_size == test.crop_size == side and train.mirror
        moves = {"pad", "erasing", "random_resized_crop"}
        assert (moves & {one.name for one, _ in train.ListFields()}, moves & {one.name for one, _ in test.ListFields()}) == (fields, set())
        with lmdb.open(str(model / "data/train"), readonly=True) as database, database.begin() as transaction:
            datum = caffe_pb2.Datum.FromString(next(iter(transaction.cursor()))[1])
        assert Image.open(io.BytesIO(datum.data)).size == ((24, 24) if name == "small" else (73, 73))


def test_wishes_that_do_not_fit(folder):
    classes(folder / "photos")
    (folder / "file").write_text("")
    for words, text in ((["--net=resnet"], "net 'resnet' is not there; for classification there are cifarnet, mobilenet_v2, resnet18"),
                        (["--net=unet"], "net 'unet' is for segmentation; for classification there are"),
                        (["--size=30"], "--size is 30; net 'cifarnet' takes multiples of 8 from 16 to 96"),
                        (["--val=0%"], "--val is 0%; give a share above 0% and below 100%"),
                        (["--val=5"], "--val is '5'; give a share of the images, as in 15%"),
                        (["--val=a%"], "--val is 'a%'; give a share of the images, as in 15%"),
                        (["--val=1%"], "of 24 images none was kept for testing: 1% of each class rounds to no image"),
                        (["--epochs=0"], "--epochs is 0; give a number above 0"), (["--epochs=0.5"], "Could not convert: --epochs = 0.5"),
                        (["--batch=0"], "--batch is 0; give 1 or more images"),
                        (["--output=photos/m"], "photos/m: lies in photos, the folder of the images"),
                        (["--output=caf\udce9"], "'caf\\udce9': has bytes that are not UTF-8"),
                        (["--output=file/m"], "file/m: there is no folder file; make it first"),
                        (["--output=none/sub/m"], "none/sub/m: there is no folder none/sub; make it first"),
                        (["--from=x.caffemodel"], "--from is x.caffemodel, which is neither a file nor the folder of a model that is trained")):
        said = caffe(folder, "new", "photos", *words, status=1)
        assert text in said and "Traceback" not in said
    assert not (folder / "none").exists()
    (folder / "photos_model").mkdir()
    assert "photos_model: already exists; give another --output, or remove it" in caffe(folder, "new", "photos", status=1)


@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="no /usr/bin/python3")
def test_another_python_in_the_path_is_no_obstacle(folder):
    """If the first python3 has no NumPy, like a fresh pyenv or conda, the system's is used."""
    bare = folder / "bin/python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\necho asked >>{folder}/asked\nexec {SYSTEM_PYTHON} -S -s "$@"\n')
    bare.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "PYTHONPATH")}
    for given, status in ({}, 0), ({"PYTHON": str(bare)}, 1):
        done = subprocess.run([BINARIES / "caffe", "new", "--nets"], text=True, check=False, capture_output=True,
                              env={**environment, **given, "PATH": f"{bare.parent}:{os.environ['PATH']}"})
        assert (done.returncode, "cifarnet" in done.stdout) == (status, status == 0), done.stderr
        assert (folder / "asked").read_text() == "asked\n"
        (folder / "asked").unlink()
    assert "package caffe needs numpy and protobuf" in done.stderr


@pytest.mark.parametrize("share, least", [("15%", 4), ("10%", 5), ("20%", 3)])
def test_the_number_of_images_that_a_class_needs(folder, share, least):
    classes(folder / "photos", count=least - 1)
    said = caffe(folder, "new", "photos", f"--val={share}", status=1)
    assert f"add images, so that each class has {least} or more, or give a larger --val" in said
    classes(folder / "more", count=least)
    caffe(folder, "new", "more", f"--val={share}")


def test_the_same_photograph_in_two_classes_is_a_warning(folder):
    photos = classes(folder / "photos")
    (photos / "red/copy.png").write_bytes((photos / "blue/3.png").read_bytes())
    assert "warning: 1 photograph is in two classes, such as photos/blue/3.png, which is photos/red/copy.png" in caffe(folder, "new", "photos")


def test_a_batch_of_more_images_than_there_are(folder):
    classes(folder / "photos", count=4)
    assert "--batch is 5000, but there are only 9 images for training: a batch has all of them\n" in caffe(folder, "new", "photos", "--batch=5000")


def test_nets_are_listed(folder):
    said = caffe(folder, "new", "--nets")
    assert all(name in said for name in ("resnet18", "unet", "ssd_small"))


@pytest.mark.parametrize("names", [["a b", " lead", "trail "], ["\u732b", "chien \xe9", "\U0001f600"], ['"q"', "it's", "back\\slash"],
                                   ["<b>&", "a,b"], ["Cat", "cat"], ["-x", "--help"]])
def test_names_of_classes_stay_as_they_are(folder, names):
    classes(folder / "photos", names=names)
    caffe(folder, "new", "photos", "--epochs=1")
    assert list(read(folder / "photos_model/deploy.prototxt", "NetParameter").model_info.label) == sorted(names)


@pytest.mark.parametrize("name, asked, model", [("-set", "./-set", "./-set_model"), ("my photos.v2", "my photos.v2", "'my photos.v2_model'")])
def test_the_next_command_can_be_copied(folder, name, asked, model):
    classes(folder / name)
    assert caffe(folder, "new", asked, "--epochs=1").rstrip().endswith(f"next:  caffe train {model}")
    assert f"caffe train {model.removeprefix('./')} " in (folder / f"{name}_model/README.md").read_text()


def boxes_of(database):
    """(end of the record's key, corners of its first box) for each record."""
    import lmdb
    found = []
    with lmdb.open(str(database), readonly=True, lock=False) as environment, environment.begin() as transaction:
        for key, value in transaction.cursor():
            box = caffe_pb2.AnnotatedDatum.FromString(value).annotation_group[0].annotation[0].bbox
            found.append((key.decode(), [round(corner, 3) for corner in (box.xmin, box.ymin, box.xmax, box.ymax)]))
    return found


@pytest.mark.parametrize("make", [voc, coco])
def test_boxes_of_paths_with_spaces(folder, make):
    make(folder / "my scenes")
    (folder / "my scenes/pictures").rename(folder / "my scenes/all pictures")
    said = caffe(folder, "new", "my scenes", "--output=my model", "--size=64")
    assert "7 images for training and 1 for testing" in said
    found = boxes_of(folder / "my model/data/train") + boxes_of(folder / "my model/data/val")
    assert len(found) == 8 and all("all_pictures/" in key for key, _ in found)
    assert sorted(path.name for path in (folder / "my model/data").iterdir()) == ["labelmap.prototxt", "train", "val"]


@pytest.mark.parametrize("make", [voc, coco])
def test_images_of_equal_names_keep_their_own_boxes(folder, make):
    """The images are in two folders, with boxes at different positions."""
    for half in "ab":
        make(folder / half, box=(8, 10, 40, 50) if half == "a" else (48, 10, 80, 50))
        (folder / "scenes").mkdir(exist_ok=True)
        (folder / half / "pictures").rename(folder / "scenes" / half)
    if make is coco:
        parts = [json.loads((folder / half / "instances.json").read_text()) for half in "ab"]
        for half, (part, x) in enumerate(zip(parts, (8, 48))):
            for image in part["images"]:
                image.update(id=f"{half}{image['id']}", file_name=f"{'ab'[half]}/{image['file_name']}")
            for box in part["annotations"]:
                box.update(image_id=f"{half}{box['image_id']}", bbox=[x, 10, 32, 40])
        whole = {**parts[0], **{kind: parts[0][kind] + parts[1][kind] for kind in ("images", "annotations")}}
        (folder / "scenes/instances.json").write_text(json.dumps(whole))
    caffe(folder, "new", "scenes", "--output=m", "--size=64")
    found = boxes_of(folder / "m/data/train") + boxes_of(folder / "m/data/val")
    assert len(found) == 16
    for key, (xmin, *_) in found:
        assert xmin == (0.083 if "_a/" in key else 0.5), key


def test_photographs_that_are_turned(folder):
    """Their boxes and masks belong to the image as it is displayed, and it is read in this orientation."""
    turned = Image.Exif()
    turned[0x0112] = 6
    voc(folder / "scenes", size=(0, 0), box=(8, 60, 50, 90))
    masks(folder / "cells", side=48)
    for file in (folder / "scenes/pictures").glob("*.png"):
        Image.new("RGB", (96, 64)).save(file.with_suffix(".jpg"), exif=turned)
        file.unlink()
    caffe(folder, "new", "scenes", "--output=m", "--size=64")
    assert {tuple(box) for _, box in boxes_of(folder / "m/data/train")} == {(0.125, 0.625, 0.781, 0.938)}
    for file in (folder / "cells/images").glob("*.jpg"):
        Image.new("RGB", (40, 64)).save(file, exif=turned)
        Image.new("L", (64, 40), 1).save(folder / "cells/masks" / f"{file.stem}.png")
    Image.new("L", (64, 40), 0).save(folder / "cells/masks/0.png")
    assert "segmentation of 2 classes" in caffe(folder, "new", "cells", "--output=n")


@pytest.mark.parametrize("mode, count", [("1", 2), ("I;16", 3), ("P", 3)])
def test_masks_of_other_kinds_of_pixels(folder, mode, count):
    masks(folder / "cells")
    for file in (folder / "cells/masks").iterdir():
        pixels = np.repeat(np.arange(48)[:, None] * count // 48, 48, axis=1)
        mask = Image.fromarray(pixels.astype({"1": bool, "I;16": np.uint16, "P": np.uint8}[mode]))
        if mode == "P":
            mask.putpalette([90, 90, 90, 255, 0, 0, 0, 0, 255])
        assert mask.mode == mode
        mask.save(file)
    caffe(folder, "new", "cells", "--output=m", "--size=48")
    with Image.open(folder / "m/data/train/masks/000000_0.png") as mask:
        assert sorted({value for _, value in mask.getcolors()}) == list(range(count))


def test_lists_of_odd_paths_and_labels(folder):
    classes(folder / "photos")
    lines = [f"{folder}/photos/{name}/{number}.png {label}\n" for label, name in enumerate(COLOURS) for number in range(8)]
    (folder / "list.txt").write_text("".join(lines))
    assert "18 images for training and 6 for testing" in caffe(folder, "new", "list.txt", "--output=m", "--val=25%")
    for line, text in (("photos/red/0.png 1", "24 of 25 paths begin with a slash"),
                       (f"{folder}/photos/red/0.png 99999999999999999999", "list.txt:25: the label is 99999999999999999999"),
                       (f"{folder}/photos/red/0.png \u00b2", "is not a line 'path label'; labels are numbers from 0 on")):
        (folder / "list.txt").write_text("".join([*lines, line]))
        said = caffe(folder, "new", "list.txt", "--output=n", status=1)
        assert text in said and "Traceback" not in said


def test_notes_in_json_beside_classes(folder):
    (classes(folder / "photos") / "about.json").write_text('{"by": "me"}')
    assert "classification of 3 classes" in caffe(folder, "new", "photos")


def test_an_image_that_claims_to_be_huge(folder):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    (classes(folder / "photos") / "blue/00.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
    said = caffe(folder, "new", "photos")
    assert "left out: blue/00.png: " in said and "classification of 3 classes" in said


def test_deploy_takes_a_net_and_spares_it(folder):
    (folder / "m").mkdir()
    (folder / "m/train_val.prototxt").write_text('layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 1 } } }')
    assert "m: is a folder; give the net that was trained: m/train_val.prototxt" in caffe(
        folder, "deploy", "m", "--output=deploy.prototxt", status=1)
    before = (folder / "m/train_val.prototxt").read_text()
    said = caffe(folder, "deploy", "m/train_val.prototxt", "--output=m/../m/train_val.prototxt", "--force", status=1)
    assert "is the net that was trained, which would be lost; give another --output" in said
    assert (folder / "m/train_val.prototxt").read_text() == before


def listed(folder):
    classes(folder)
    (folder / "list.txt").write_text("".join(f"{name}/{number}.png {label}\n" for label, name in enumerate(COLOURS) for number in range(8)))
    return folder / "list.txt"


@pytest.mark.parametrize("make, task, most", [(classes, "classification", 6), (listed, "classification", 6), (voc, "detection", 4), (coco, "detection", 4),
                                              (masks, "segmentation", 4)])
def test_a_preview_takes_a_part_of_the_set(folder, make, task, most):
    photographs = make(folder / "photos")
    (folder / "model").mkdir()
    plan = preview(photographs if isinstance(photographs, pathlib.Path) else folder / "photos", folder / "model", Wishes(val=0.5), BINARIES / "caffe", count=4)
    assert plan.dataset.task == task and 2 <= plan.halves.train_count + plan.halves.val_count <= most
    assert (folder / "model" / "train_val.prototxt").exists() and plan.dataset.classes


def test_a_fine_tuning_goes_on_where_it_was(folder):
    classes(folder / "photos")
    caffe(folder, "new", "photos", "--epochs=4")
    caffe(folder, "train", "photos_model", "--set", "max_epoch=1")
    weights = next((folder / "photos_model" / "snapshots").glob("*_best.caffemodel")).rename(folder / "start.caffemodel")
    for file in (folder / "photos_model" / "snapshots").iterdir():
        file.unlink()
    first = caffe(folder, "train", "photos_model", f"--weights={weights}", "--set", "max_epoch=2")
    assert "copied" in first
    again = caffe(folder, "train", "photos_model", f"--weights={weights}", "--auto_resume")
    assert "copied" not in again, again

"""caffe new: which sets its readers take, and what they say about others."""
import json

import numpy as np
import pytest
from PIL import Image

from caffe import InvalidArgument
from caffe.model_folder.datasets import open_dataset
from caffe.model_folder.pixels import resized, size_of
from image_sets import classes, coco, masks, picture, turned, voc, voc_note


def refusal(path):
    """The error for a set, which names the set's folder."""
    with pytest.raises(InvalidArgument) as error:
        open_dataset(path)
    assert str(path) in str(error.value)
    return str(error.value)


def halves(dataset):
    """The names of the images for training and for testing of a set of boxes or masks."""
    parts = (dataset.items, dataset.val_items) if dataset.task == "detection" else (dataset._train, dataset._val)
    return [sorted(file.stem for file in part) for part in parts]


def wrong(what):
    return {
        "nothing": (lambda f: None, "photos: no such file or folder; give the folder of the images"),
        "an empty folder": (lambda f: f.mkdir(), "holds no set of images that is known; give one of these:"),
        "one class": (lambda f: classes(f, names=["red"]), "has one class, 'red'; there is nothing to tell apart"),
        "an empty class": (lambda f: (classes(f) / "none").mkdir(), "the folder 'none' holds no image; fill it, or remove it"),
        "other classes in a half": (lambda f: (classes(f / "train"), classes(f / "val", names=["red", "white"])),
                                    "is in one of them alone; both need the same folders"),
        "a box outside": (lambda f: voc(f, box=(200, 10, 240, 50)), "lies outside of the image of 96x64; fix it, or remove it"),
        "an empty box": (lambda f: voc(f, box=(40, 10, 40, 50)), "is empty; fix it, or remove it"),
        "no box": (lambda f: coco(f, annotations=[]), "and no box; there is nothing to learn"),
        "an image that is not there": (lambda f: coco(f, images=[{"id": 0, "file_name": "x.png"}]),
                                       "names the image 'x.png', which is not there"),
        "a field that is missing": (lambda f: coco(f, categories=[{"name": "x"}]), "categories[0] has no field 'id'; add it"),
        "a mask of another size": (lambda f: masks(f, mask_side=40), "is of 40x40, but its image of 48x48"),
        "a mask without a class": (lambda f: [Image.new("L", (48, 48)).save(file) for file in (masks(f) / "masks").iterdir()],
                                   "all pixels have the class 0; there is nothing to tell apart"),
        "a mask in colours": (lambda f: Image.new("RGB", (48, 48)).save(masks(f) / "masks/0.png"), "is a colour image (RGB)"),
        "a broken image": (lambda f: (masks(f) / "images/0.jpg").write_bytes(b"no image"), "images/0.jpg: cannot be read as an image"),
        "half an image": (lambda f: cut(masks(f) / "masks/0.png", 70), "masks/0.png: cannot be read as an image"),
        "a mask of 16 bits": (lambda f: Image.new("I;16", (48, 48), 1880).save(masks(f) / "masks/0.png"), "a pixel has the class 1880"),
        "names of another encoding": (lambda f: (masks(f) / "classes.txt").write_bytes(b"caf\xe9\nb\n"),
                                      "classes.txt: is not text in UTF-8 (invalid continuation byte at byte 3)"),
        "a class of two lines": (lambda f: voc(f, name="a\nb"), "the class 'a\\nb' has control characters"),
        "a class of other bytes": (lambda f: classes(f, names=["red", "caf\udce9"]), "the class 'caf\\udce9' has control characters, or bytes"),
        "objects that are background": (lambda f: voc(f, name="background"), "boxes have the class 'background'"),
        "a box without an end": (lambda f: voc(f, box=(1, 2, "inf", 9)), "(1, 2, inf, 9) has corners that are not numbers"),
        "a size that is not a number": (lambda f: voc(f, size=("x", 64)), "its size has a width or height that is not a number"),
        "a box of no image": (lambda f: coco(f, annotations=[{"image_id": 99, "category_id": 7, "bbox": [1, 2, 3, 4]}]),
                              "annotations[0] has the image_id 99, which no image of the file has"),
        "an image of two folders": (lambda f: (coco(f), twice(f, "0.png")), "names the image '0.png', which could be"),
    }[what]


def cut(file, count):
    file.write_bytes(file.read_bytes()[:count])


def twice(folder, name):
    (folder / "more").mkdir()
    (folder / "more" / name).write_bytes((folder / "pictures" / name).read_bytes())


@pytest.mark.parametrize("what", ["nothing", "an empty folder", "one class", "an empty class", "other classes in a half", "a box outside",
                                  "an empty box", "no box", "an image that is not there", "a field that is missing",
                                  "a mask of another size", "a mask without a class", "a mask in colours", "a broken image", "half an image",
                                  "a mask of 16 bits", "names of another encoding", "a class of two lines", "a class of other bytes",
                                  "objects that are background", "a box without an end", "a size that is not a number", "a box of no image",
                                  "an image of two folders"])
def test_sets_that_are_none(tmp_path, what):
    make, text = wrong(what)
    make(tmp_path / "photos")
    assert text in refusal(tmp_path / "photos")


def mask_halves(folder, train, val):
    """Masks of a set in halves. train, val: the folder, such as "train/{kind}" or "{kind}/train"."""
    for half, count, names in (("train", 4, train), ("val", 2, val)):
        for number in range(count):
            for kind, mode in (("images", "RGB"), ("masks", "L")):
                picture(folder / names.format(kind=kind) / f"{half}{number}.png", mode, number)


@pytest.mark.parametrize("train, val", [("train/{kind}", "val/{kind}"), ("Training/{kind}", "test/{kind}"), ("{kind}/train", "{kind}/dev")])
def test_masks_in_halves(tmp_path, train, val):
    mask_halves(tmp_path, train, val)
    assert halves(open_dataset(tmp_path)) == [["train0", "train1", "train2", "train3"], ["val0", "val1"]]


@pytest.mark.parametrize("train, val", [("train", "valid"), ("pictures/train2017", "pictures/test2017")])
def test_xml_files_in_halves(tmp_path, train, val):
    for half, name, count in ((train, "train", 4), (val, "val", 2)):
        for number in range(count):
            voc_note(picture(tmp_path / half / f"{name}{number}.jpg"))
    assert halves(open_dataset(tmp_path)) == [["train0", "train1", "train2", "train3"], ["val0", "val1"]]


def coco_file(file, names, bbox=(2, 3, 20, 20), size=(40, 30), **changes):
    """A JSON file with one box in each image, with ids from 0 on."""
    content = {"images": [{"id": i, "file_name": name, "width": size[0], "height": size[1]} for i, name in enumerate(names)],
               "annotations": [{"image_id": i, "category_id": 1, "bbox": bbox} for i in range(len(names))],
               "categories": [{"id": 1, "name": "cat"}], **changes}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return content


def test_json_files_in_halves(tmp_path):
    """As Roboflow exports them; images of the halves may have equal names."""
    for half in ("train", "valid", "test"):
        for number in range(2):
            picture(tmp_path / half / f"{number}.jpg")
        coco_file(tmp_path / half / "_annotations.coco.json", ["0.jpg", "1.jpg"])
    found = open_dataset(tmp_path)
    assert [{file.parent.name for file in part} for part in (found.items, found.val_items)] == [{"train"}, {"valid"}]
    assert f"{tmp_path}/test/_annotations.coco.json, because {tmp_path}/valid/_annotations.coco.json is for testing" in found.left_out


@pytest.mark.parametrize("train, val", [("Train", "Val"), ("train_latest", "val_latest"), ("instances_train2017", "instances_test2017")])
def test_json_files_whose_names_have_the_half(tmp_path, train, val):
    for number in range(3):
        picture(tmp_path / f"{number}.png")
    coco_file(tmp_path / f"{train}.json", ["0.png", "1.png"])
    coco_file(tmp_path / f"{val}.json", ["2.png"])
    assert halves(open_dataset(tmp_path)) == [["0", "1"], ["2"]]


def test_classes_in_dev(tmp_path):
    for half in ("train", "dev", "test", "more"):
        classes(tmp_path / half, count=2)
    found = open_dataset(tmp_path)
    assert (found.train, found.val, len(found.classes)) == (tmp_path / "train", tmp_path / "dev", 3)
    assert found.left_out == [f"the images in {tmp_path / part}; those in {tmp_path}/train are for training, those in {tmp_path}/dev for testing"
                              for part in ("more", "test")]


@pytest.mark.parametrize("files, said", [
    (["train/0.png", "val/1.png"], "train: has no folders; put the images of each class into a folder of their own"),
    (["train/a/0.png", "train/b/0.png"], "holds 'train', a part of a set; give that folder by itself, or add the other part"),
    (["train/a/0.png", "val/a/0.png", "valid/a/0.png"], "val: is for the same as "),
    (["train/images/0.png", "train/labels/1.txt", "val/images/1.png"], "labels/1.txt: there is no image of this name in "),
    (["images/train/0.png", "labels/train/1.txt"], "labels/train/1.txt: there is no image of this name in ")])
def test_halves_that_are_no_classes(tmp_path, files, said):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("0 .5 .5 .2 .2\n") if name.endswith(".txt") else picture(tmp_path / name)
    assert said in refusal(tmp_path)


def test_hidden_files_are_ignored(tmp_path):
    """Jupyter, macOS and Picasa leave such files in folders."""
    photos = classes(tmp_path / "photos", count=2)
    (photos / ".picasa.xml").write_text("<a/>")
    for set_of in (photos / "red", voc(tmp_path / "scenes") / "pictures", masks(tmp_path / "cells") / "images", tmp_path / "cells/masks"):
        picture(set_of / ".ipynb_checkpoints/0-checkpoint.jpg")
        picture(set_of / "__MACOSX/0.png")
        (set_of / "._0.xml").write_bytes(b"\0\5\x16\7")
    picture(photos / "__MACOSX/red/._1.png")
    for name, count in (("photos", 6), ("scenes", 8), ("cells", 8)):
        found = open_dataset(tmp_path / name)
        assert (len(found.images()), found.left_out) == (count, [])
    picture(photos / "white/.thumbnails/0.png")
    assert "the folder 'white' holds no image" in refusal(photos)


@pytest.mark.parametrize("labels, said", [((1, 2), "has 2 labels from 1 to 2, but no line has the label 0"),
                                          ((0, 2, 3), "has 3 labels from 0 to 3, but no line has the label 1"), ((1, 0), "")])
def test_labels_have_no_gaps(tmp_path, labels, said):
    file = tmp_path / "list.txt"
    file.write_text("".join(f"{label}.png {label}\n" for label in labels))
    assert (said + "; number the classes from 0 on without gaps" in refusal(file)) if said else open_dataset(file).classes == ["0", "1"]


def write_masks(folder, values, suffix="png", **options):
    for number, value in enumerate(values):
        picture(folder / "images" / f"{number}.jpg")
        (folder / "masks").mkdir(exist_ok=True)
        Image.new("L", (40, 30), value).save(folder / "masks" / f"{number}.{suffix}", **options)
    return folder


def test_masks_with_gaps(tmp_path):
    write_masks(tmp_path, (0, 200))
    assert "the masks have the numbers 0, 200, so that most of the 201 classes from 0 to 200 have no pixel" in refusal(tmp_path)
    (tmp_path / "classes.txt").write_text("".join(f"class {number}\n" for number in range(201)))
    assert len(open_dataset(tmp_path).classes) == 201
    (tmp_path / "classes.txt").unlink()
    write_masks(tmp_path, (0, 2, 255))
    assert open_dataset(tmp_path).classes == ["0", "1", "2"]


def test_masks_as_jpeg(tmp_path):
    write_masks(tmp_path, (0, 1), "jpg")
    assert "masks/0.jpg: is a JPEG, whose compression changes the numbers of classes; save masks as PNG" in refusal(tmp_path)


def test_masks_of_black_and_white(tmp_path):
    found = open_dataset(write_masks(tmp_path, (0, 255)))
    assert (found.classes, found.kind) == (["0", "1"], "images and masks of black and white, which is class 1")


def test_a_mask_of_the_unturned_photograph(tmp_path):
    write_masks(tmp_path, (0, 1))
    picture(tmp_path / "images/0.jpg", exif=turned())
    assert "is of 40x30, but its image of 30x40; the image's EXIF orientation swaps width and height" in refusal(tmp_path)


@pytest.mark.parametrize("kind", ["jpg", "png", "tif", "webp"])
def test_photographs_are_turned_once(tmp_path, kind):
    """The left half of the pixels is white; turned by orientation 6, it is the upper half."""
    image = Image.new("RGB", (40, 30))
    image.paste((255, 255, 255), (0, 0, 20, 30))
    image.save(tmp_path / f"a.{kind}", exif=turned().tobytes())
    Image.new("L", (30, 40)).save(tmp_path / "mask.png")
    upright = np.asarray(resized(tmp_path / f"a.{kind}", tmp_path / "mask.png", 20, 255)[0]).mean(axis=2)
    assert size_of(tmp_path / f"a.{kind}") == (30, 40)
    assert upright[:8].min() > 200 and upright[12:].max() < 50


def test_images_of_one_name_and_without_masks(tmp_path):
    write_masks(tmp_path, (0, 1))
    picture(tmp_path / "images/alone.jpg")
    assert open_dataset(tmp_path).left_out == [f"1 image without a mask, such as {tmp_path}/images/alone.jpg"]
    picture(tmp_path / "images/1.png")
    assert "images/1.png: has the same name as " in refusal(tmp_path)


def test_images_without_boxes(tmp_path):
    voc(tmp_path / "voc")
    coco(tmp_path / "coco")
    for name in ("voc", "coco"):
        picture(tmp_path / name / "pictures/alone.png")
        assert open_dataset(tmp_path / name).left_out == [
            f"1 image not annotated, or in no part that is used, such as {tmp_path / name}/pictures/alone.png"]


@pytest.mark.parametrize("bbox, count", [((-1, -1, 42, 32), 0), ((-1.5, 3, 20, 20), 3), ((2, -2, 9, 9), 3), ((30, 3, 12, 9), 3),
                                         ((2, 20, 9, 12), 3)])
def test_boxes_that_are_cut_are_counted(tmp_path, bbox, count):
    for number in range(3):
        picture(tmp_path / f"{number}.png")
    coco_file(tmp_path / "a.json", [f"{number}.png" for number in range(3)], bbox=bbox)
    said = f"{count} boxes lie partly outside of the image and are cut at its border, such as in {tmp_path}/0.png"
    assert open_dataset(tmp_path).warnings == ([said] if count else [])


@pytest.mark.parametrize("size, exif, said", [
    ((80, 60), None, "says that {file} is of 80x60, but it is of 40x30; give the image that the boxes were drawn on"),
    ((40, 30), turned(), "says that {file} is of 40x30, but it is of 30x40; the image's EXIF orientation swaps width and height, and these are for "
                         "the picture without it: remove the orientation"),
    ((30, 40), turned(), ""), ((0, 0), None, "")])
def test_sizes_that_boxes_come_with(tmp_path, size, exif, said):
    for name in ("voc", "coco"):
        file = picture(tmp_path / name / "0.jpg", exif=exif)
        voc_note(file, size) if name == "voc" else coco_file(file.with_name("a.json"), ["0.jpg"], size=size)
        if said:
            assert said.format(file=file) in refusal(file.parent)
        else:
            assert [(item.width, item.height) for item in open_dataset(file.parent).items.values()] == [(30, 40) if exif else (40, 30)]


def two_halves(folder, **names):
    """Images 0.png in train and 1.png in val, and a JSON file for each half."""
    for number, half in enumerate(("train", "val")):
        picture(folder / half / f"{number}.png")
        coco_file(folder / "annotations" / f"{half}.json", [names.get(half, f"{number}.png")])
    return folder


def test_an_image_is_in_one_half_alone(tmp_path):
    assert halves(open_dataset(two_halves(tmp_path / "right"))) == [["0"], ["1"]]
    # The folder is there, so an image of another folder is another image.
    assert "val.json: names the image 'val/0.png', which is not there" in refusal(two_halves(tmp_path / "missing", val="val/0.png"))
    for name in ("0.png", "elsewhere/0.png"):
        said = refusal(two_halves(tmp_path / name.replace("/", "_"), val=name))
        assert "1 image is both for training and for testing, such as " in said and "train/0.png (in " in said
    lists = tmp_path / "scenes/ImageSets/Main"
    voc(tmp_path / "scenes")
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("0\n1\n2\n")
    (lists / "val.txt").write_text("2\n")
    assert "1 image is both for training and for testing, such as " in refusal(tmp_path / "scenes")


def test_images_of_equal_names_are_those_of_their_half(tmp_path):
    two_halves(tmp_path, val="0.png")
    picture(tmp_path / "val/0.png")
    found = open_dataset(tmp_path)
    assert [list(part) for part in (found.items, found.val_items)] == [[tmp_path / "train/0.png"], [tmp_path / "val/0.png"]]


@pytest.mark.parametrize("changes, said", [
    (dict(images=[{"id": i, "file_name": "0.png"} for i in (0, 5)]), "images[1]: is for the image {path}/0.png, as {path}/a.json: images[0]; put all"),
    (dict(categories=[{"id": 1, "name": "cat"}, {"id": 1, "name": "dog"}]), "categories[1] has the id 1 of 'cat', but the name 'dog'"),
    (dict(categories=[{"id": 1, "name": None}]), "categories[0] has the name None, which is not text"),
    (dict(annotations=[{"image_id": 0, "category_id": 1, "segmentation": []}]), "annotations[0] has no field 'bbox'; add it"),
    (dict(annotations=[{"image_id": 0, "category_id": 1, "bbox": []}]), "has the bbox []; give four numbers of pixels: left, top, width, height"),
    (dict(annotations=[{"image_id": 0, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": "maybe"}]),
     "annotations[0] has an iscrowd that is 'maybe'; give 0 or 1"),
    (dict(annotations=[5]), "annotations[0] is 5, not an object with fields"), (dict(annotations=5), "'annotations' is not a list"),
    (dict(images=[{"id": [1], "file_name": "0.png"}]), "images[0] has the id [1]; give a number"),
    (dict(images=[{"id": 1, "file_name": 5}]), "images[0] has the file_name 5, which is not text")])
def test_mistakes_in_json(tmp_path, changes, said):
    picture(tmp_path / "0.png")
    coco_file(tmp_path / "a.json", ["0.png"], **changes)
    assert said.format(path=tmp_path) in refusal(tmp_path)


def test_flags_of_boxes(tmp_path):
    picture(tmp_path / "coco/0.png")
    flags = (0, "0", False, None, 1, "1", True)
    coco_file(tmp_path / "coco/a.json", ["0.png"], annotations=[
        {"image_id": 0, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": flag} for flag in flags])
    voc_note(picture(tmp_path / "voc/0.png"), flags=[str(flag).lower() for flag in flags])
    for name in ("coco", "voc"):
        (item,) = open_dataset(tmp_path / name).items.values()
        assert [box.difficult for box in item.boxes] == [False] * 4 + [True] * 3


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_json_with_a_mark_of_its_encoding(tmp_path, encoding):
    picture(tmp_path / "0.png")
    content = coco_file(tmp_path / "a.json", ["0.png"])
    (tmp_path / "a.json").write_text(json.dumps(content), encoding=encoding)
    assert open_dataset(tmp_path).classes == ["background", "cat"]


def test_json_that_is_broken(tmp_path):
    picture(tmp_path / "pictures/0.png")
    (tmp_path / "val.json").write_text('{"images": [],\n "annotations": [')
    assert "val.json:2:18: is not valid JSON (Expecting value); fix it, or remove it" in refusal(tmp_path)
    coco_file(tmp_path / "train.json", ["0.png"])
    assert "val.json:2:18: is not valid JSON" in refusal(tmp_path)  # else the half would be missed
    (classes(tmp_path / "photos") / "notes.json").write_text("{")
    assert open_dataset(tmp_path / "photos").task == "classification"


def test_two_xml_files_for_an_image(tmp_path):
    voc_note(picture(tmp_path / "images/0.png"))
    (tmp_path / "more").mkdir()
    (tmp_path / "more/0.xml").write_bytes((tmp_path / "images/0.xml").read_bytes())
    assert f"more/0.xml: is for the image {tmp_path}/images/0.png, as {tmp_path}/images/0.xml; put all boxes" in refusal(tmp_path)


def test_lists_of_names_with_spaces(tmp_path):
    for name in ("my 0", "my 1", "plain", "last"):
        voc_note(picture(tmp_path / f"{name}.png"))
    lists = tmp_path / "ImageSets/Main"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("my 0\nmy 1\nplain  1\n")
    (lists / "val.txt").write_text("last -1\n")
    assert halves(open_dataset(tmp_path)) == [["my 0", "my 1", "plain"], ["last"]]

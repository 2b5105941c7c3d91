"""caffe new: sets of a newcomer that cannot be used as they are, and what is said about them."""
import json

import pytest

from caffe import InvalidArgument
from caffe.model_folder.datasets import open_dataset
from caffe.model_folder.duplicates import warnings_of
from image_sets import classes, coco, masks, voc


def refusal(path):
    with pytest.raises(InvalidArgument) as error:
        open_dataset(path)
    return str(error.value)


def renamed(files, suffix=".HEIC"):
    for file in files:
        file.rename(file.with_suffix(suffix))


CURE = "HEIC is not read; convert it to JPEG, as with ImageMagick: mogrify -format jpg '*.HEIC'"


@pytest.mark.parametrize("make, which, said", [
    (classes, "red/*", "the folder 'red' holds no image that is read, but 8 such as 0.HEIC: " + CURE),
    (classes, "*/*", "holds no images that are read, but 24 such as {}/blue/0.HEIC: " + CURE),
    (coco, "pictures/3.png", "names the image '3.png', which is not there"), (voc, "pictures/3.png", "3.xml: is for the image {}/pictures/3.HEIC: " + CURE),
    (masks, "images/3.jpg", "masks/3.png: is for the image {}/images/3.HEIC: " + CURE)])
def test_photographs_in_heic(tmp_path, make, which, said):
    """The format of an iPhone's photographs."""
    folder = make(tmp_path / "photos")
    renamed(list(folder.glob(which)))
    assert said.format(folder) in refusal(folder)


def test_an_image_in_heic_that_json_names(tmp_path):
    folder = coco(tmp_path / "photos", images=[{"id": 0, "file_name": "0.HEIC"}])
    renamed([folder / "pictures/0.png"])
    assert f"names the image '0.HEIC': {CURE}; then give the new names in the file" in refusal(folder)


def test_some_photographs_in_heic_are_counted(tmp_path):
    folder = classes(tmp_path / "photos")
    renamed([folder / "red/1.png", folder / "red/2.png"])
    assert open_dataset(folder).left_out == [
        f"2 photographs in HEIC, which is not read: convert to JPEG, such as {folder}/red/1.HEIC"]


def test_boxes_of_fractions_in_json(tmp_path):
    annotations = [{"image_id": number, "category_id": 7, "bbox": [0.1, 0.2, 0.5, 0.25]} for number in range(8)]
    said = refusal(coco(tmp_path / "photos", annotations=annotations))
    assert ("instances.json: images[0]: the box of 'brick' (0.1, 0.2, 0.6, 0.45), as all others, looks like fractions of the image; boxes as COCO "
            "has them are in pixels: multiply by the width and the height, here 96 and 64") in said


def test_boxes_of_fractions_in_xml(tmp_path):
    said = refusal(voc(tmp_path / "photos", box=(0.1, 0.2, 0.6, 1)))
    assert ".xml: the box of 'brick' (0.1, 0.2, 0.6, 1), as all others, looks like fractions of the image; boxes as VOC has them" in said


def test_a_box_of_a_pixel_is_none_of_fractions(tmp_path):
    annotations = [{"image_id": number, "category_id": 7, "bbox": [0, 0, 1, 1 + number]} for number in range(8)]
    assert len(open_dataset(coco(tmp_path / "photos", annotations=annotations)).items) == 8


@pytest.mark.parametrize("make", [lambda folder: classes(folder, names=["train", "val"]), lambda folder: classes(folder.parent, names=[folder.name])])
def test_labels_of_yolo_next_to_the_images(tmp_path, make):
    make(tmp_path / "photos")
    for image in list((tmp_path / "photos").rglob("*.png")):
        image.with_suffix(".txt").write_text("0 0.5 0.5 0.25 0.25\n")
    said = refusal(tmp_path / "photos")
    assert "0.txt: lies next to its image; if these are labels of YOLO, put the images into a folder 'images' and the text files into" in said


def test_texts_next_to_the_images_of_classes_are_no_labels(tmp_path):
    (classes(tmp_path / "photos") / "red/0.txt").write_text("a red square")
    assert open_dataset(tmp_path / "photos").classes == ["blue", "green", "red"]


def test_folders_within_a_class_are_told(tmp_path):
    classes(tmp_path / "photos/a", names=["cat", "dog"])
    classes(tmp_path / "photos", names=["b"])
    dataset = open_dataset(tmp_path / "photos")
    assert dataset.classes == ["a", "b"]
    assert dataset.warnings == [f"images in folders within a class belong to the class, such as those in {tmp_path}/photos/a/cat to 'a'; "
                                "if cat is a class, move its folder up"]


def test_a_folder_around_the_classes_is_named(tmp_path):
    classes(tmp_path / "photos/inside")
    assert f"or the folder in it, if its 3 folders are the classes: {tmp_path}/photos/inside" in refusal(tmp_path / "photos")


@pytest.mark.parametrize("name, content, said", [
    ("a.JPG", b"\xff\xd8\xff\xe0", "is an image; give the folder of the images"), ("a.heic", b"", "is an image; give the folder"),
    ("photos.tar.gz", b"\x1f\x8b\x08", "is an archive; unpack it, and give the folder that it holds"),
    ("photos.bin", b"\xff\0\xff\n", "is not a text file; give the folder of the images, or a list"),
    ("list.txt", b"a\xff b\n", r":1: 'a\udcff b' is not a line 'path label'")])
def test_files_that_are_no_lists(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    assert said in refusal(tmp_path / name)


def test_what_a_set_lacks(tmp_path):
    assert "instances.json: lacks 'categories', without which it has no boxes" in refusal(without(coco(tmp_path / "boxes"), "categories"))
    for file in (masks(tmp_path / "cells") / "masks").iterdir():
        file.unlink()
    assert "has images in 'images', but no image in 'masks' for a class per pixel, and no JSON or XML" in refusal(tmp_path / "cells")
    (tmp_path / "cells/masks").rmdir()
    assert "has images in 'images', but no folder 'masks' for a class per pixel" in refusal(tmp_path / "cells")


def without(folder, field):
    content = json.loads((folder / "instances.json").read_text())
    del content[field]
    (folder / "instances.json").write_text(json.dumps(content))
    return folder


def test_the_same_photograph_in_two_classes(tmp_path):
    photos = classes(tmp_path / "photos")
    (photos / "red/copy.png").write_bytes((photos / "blue/3.png").read_bytes())
    (photos / "red/again.png").write_bytes((photos / "red/2.png").read_bytes())  # within a class it does no harm
    assert warnings_of(open_dataset(photos)) == [
        f"1 photograph is in two classes, such as {photos}/blue/3.png, which is {photos}/red/copy.png; leave one of them"]


@pytest.mark.parametrize("make", [classes, coco, masks])
def test_the_same_photograph_for_training_and_testing(tmp_path, make):
    for half in ("train", "val"):
        make(tmp_path / "photos" / half)
    warning, = warnings_of(open_dataset(tmp_path / "photos"))
    assert f"{24 if make is classes else 8} photographs are for training and for testing, so that tests are too good, such as " in warning


def test_a_list_with_a_photograph_of_two_classes(tmp_path):
    classes(tmp_path)
    (tmp_path / "list.txt").write_text("red/1.png 0\nblue/1.png 1\nred/1.png 1\nnothere.png 0\n")
    warning, = warnings_of(open_dataset(tmp_path / "list.txt"))
    assert warning.startswith("1 photograph is in two classes, such as ")

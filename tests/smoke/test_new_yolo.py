"""caffe new: boxes as YOLO has them."""
import pytest

from caffe import InvalidArgument
from caffe.model_folder.datasets import open_dataset
from image_sets import coco, picture
from programs import need_program
from test_new import boxes_of, caffe


def yolo(path, images="images", labels="labels", count=4, line="1 0.5 0.5 0.25 0.4\n", names="names: [cat, dog]\n", start=0):
    """Images of 40x30 pixels with one box each."""
    for number in range(start, start + count):
        picture(path / images / f"{number}.png", value=(number, 0, 0))
        (path / labels).mkdir(parents=True, exist_ok=True)
        (path / labels / f"{number}.txt").write_text(line)
    if names:
        (path / "data.yaml").write_text(names)
    return path


def test_boxes_and_their_names(tmp_path):
    found = open_dataset(yolo(tmp_path))
    assert (found.task, found.classes, len(found.items)) == ("detection", ["background", "dog"], 4)
    assert found.items[tmp_path / "images/0.png"].boxes[0].corners == pytest.approx((15, 9, 25, 21))


@pytest.mark.parametrize("names", ["train: x\nnames: ['cat', \"dog\"] # two\nnc: 2\n", "names:\n  0: cat\n  1: dog\nnc: 2\n", "nc: 2\nnames:\n- cat\n- dog\n",
                                   "names: {0: cat, 1: dog}\n", "names:\n  - cat\n  - 'dog'\n", "names: [cat,\n  dog]\n"])
def test_forms_of_names(tmp_path, names):
    assert open_dataset(yolo(tmp_path, names=names)).classes == ["background", "dog"]


@pytest.mark.parametrize("place", ["classes.txt", "labels/classes.txt"])
def test_names_in_a_text_file(tmp_path, place):
    (yolo(tmp_path, names="") / place).write_text("cat\ndog\n")
    assert open_dataset(tmp_path).classes == ["background", "dog"]


def test_numbers_without_names(tmp_path):
    assert open_dataset(yolo(tmp_path, names="")).classes == ["background", "1"]


@pytest.mark.parametrize("images, labels", [("images/{}", "labels/{}"), ("{}/images", "{}/labels")])
def test_halves(tmp_path, images, labels):
    for half, count, start in (("train", 4, 0), ("val", 2, 4)):
        yolo(tmp_path, images.format(half), labels.format(half), count, start=start)
    found = open_dataset(tmp_path)
    assert (len(found.items), len(found.val_items)) == (4, 2)


@pytest.mark.parametrize("line, said", [
    ("1 0.5 0.5 0.2", "labels/0.txt:1: '1 0.5 0.5 0.2' is not a line 'class x y width height'"),
    ("0 0.1 0.1 0.5 0.1 0.5 0.5", "polygons and key points are not read"),
    ("2 0.5 0.5 0.2 0.2", "has the class 2 and fractions of the image up to 0.5; classes are 0 to 1, fractions 0 to 1"),
    ("1 20 15 10 12", "has the class 1 and fractions of the image up to 20; classes are 0 to 1"),
    ("nan 0.5 0.5 0.2 0.2", "has the class nan"), ("-1 0.5 0.5 0.2 0.2", "has the class -1"), ("1 nan 0.5 0.2 0.2", "corners that are not numbers"),
    ("1 0.5 0.5 0 0.2", "is empty; fix it, or remove it")])
def test_lines_that_are_no_boxes(tmp_path, line, said):
    with pytest.raises(InvalidArgument) as error:
        open_dataset(yolo(tmp_path, line=line))
    assert said in str(error.value)


def test_sets_with_boxes_of_both_kinds_are_those_of_json(tmp_path):
    folder = coco(tmp_path / "scenes")
    (folder / "pictures").rename(folder / "images")
    (folder / "labels").mkdir()
    (folder / "labels/0.txt").write_text("1 0.5 0.5 0.25 0.4\n")
    assert open_dataset(folder).kind == "boxes as COCO has them"


def test_a_model_of_them(tmp_path):
    need_program("caffe")
    yolo(tmp_path / "scenes")
    picture(tmp_path / "scenes/images/none.png")
    said = caffe(tmp_path, "new", "scenes", "--output=m", "--size=64")
    assert "detection of 1 class (boxes as YOLO has them)" in said and "1 image not annotated" in said
    assert {tuple(corners) for _, corners in boxes_of(tmp_path / "m/data/train")} == {(0.375, 0.3, 0.625, 0.7)}

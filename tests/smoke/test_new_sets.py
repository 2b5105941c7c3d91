"""caffe new: which sets its readers take, and what they say about others."""
import pytest
from PIL import Image

from caffe import InvalidArgument
from caffe.model_folder.datasets import open_dataset
from image_sets import classes, coco, masks, voc


def refusal(path):
    """The error for a set, which names the set's folder."""
    with pytest.raises(InvalidArgument) as error:
        open_dataset(path)
    assert str(path) in str(error.value)
    return str(error.value)


def wrong(what):
    return {
        "nothing": (lambda f: None, "photos: no such file or folder; give the folder of the images"),
        "an empty folder": (lambda f: f.mkdir(), "holds no set of images that is known; give one of these:"),
        "one class": (lambda f: classes(f, names=["red"]), "has one class, 'red'; there is nothing to tell apart"),
        "an empty class": (lambda f: (classes(f) / "none").mkdir(), "the folder 'none' holds no image; fill it, or remove it"),
        "other classes in a half": (lambda f: (classes(f / "train"), classes(f / "val", names=["red", "white"])),
                                    "is in one of them alone; both need the same folders"),
        "a box outside": (lambda f: voc(f, box=(200, 10, 240, 50)), "lies outside of the image of 96x64; mend it, or remove it"),
        "an empty box": (lambda f: voc(f, box=(40, 10, 40, 50)), "is empty; mend it, or remove it"),
        "no box": (lambda f: coco(f, annotations=[]), "and no box; there is nothing to learn"),
        "an image that is not there": (lambda f: coco(f, images=[{"id": 0, "file_name": "x.png"}]),
                                       "names the image 'x.png', which is not there"),
        "a field that is missing": (lambda f: coco(f, categories=[{"name": "x"}]), "is not as COCO's files are: categories[0]: KeyError: 'id'"),
        "a mask of another size": (lambda f: masks(f, mask_side=40), "is of 40x40, but its image of 48x48"),
        "a mask without a class": (lambda f: [Image.new("L", (48, 48)).save(file) for file in (masks(f) / "masks").iterdir()],
                                   "all pixels have the class 0; there is nothing to tell apart"),
        "a mask in colours": (lambda f: Image.new("RGB", (48, 48)).save(masks(f) / "masks/0.png"), "is a colour image (RGB)"),
        "a broken image": (lambda f: (masks(f) / "images/0.jpg").write_bytes(b"no image"), "images/0.jpg: cannot be read as an image"),
        "half an image": (lambda f: cut(masks(f) / "masks/0.png", 70), "masks/0.png: cannot be read as an image"),
        "a mask of 16 bits": (lambda f: Image.new("I;16", (48, 48), 1880).save(masks(f) / "masks/0.png"), "a pixel has the class 1880"),
        "names of another encoding": (lambda f: (masks(f) / "classes.txt").write_bytes(b"caf\xe9\nb\n"),
                                      "classes.txt: is no text in UTF-8 (invalid continuation byte at byte 3)"),
        "a class of two lines": (lambda f: voc(f, name="a\nb"), "the class 'a\\nb' has control characters"),
        "a class of other bytes": (lambda f: classes(f, names=["red", "caf\udce9"]), "the class 'caf\\udce9' has control characters, or bytes"),
        "objects that are background": (lambda f: voc(f, name="background"), "boxes have the class 'background'"),
        "a box without an end": (lambda f: voc(f, box=(1, 2, "inf", 9)), "(1, 2, inf, 9) has corners that are no numbers"),
        "a size that is no number": (lambda f: voc(f, size=("x", 64)), "its size has a width or height that is no number"),
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
                                  "objects that are background", "a box without an end", "a size that is no number", "a box of no image",
                                  "an image of two folders"])
def test_sets_that_are_none(tmp_path, what):
    make, text = wrong(what)
    make(tmp_path / "photos")
    assert text in refusal(tmp_path / "photos")

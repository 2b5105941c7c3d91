"""caffe new: what the images become in the model's folder, and what training then sees."""
import os

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe import InvalidArgument
from caffe.model_folder.new import Wishes, make, preview
from image_sets import classes, masks, picture, turned, voc_note
from programs import BINARIES, need_program


@pytest.fixture
def folder(tmp_path):
    need_program("caffe")
    need_program("convert_annoset")
    return tmp_path


def new(folder, name, **wishes):
    """Makes the model's folder `m` of the set with this name."""
    return make(folder / name, folder / "m", Wishes(**wishes), BINARIES / "caffe")


def refusal(folder, name):
    with pytest.raises(InvalidArgument) as error:
        new(folder, name)
    assert [entry.name for entry in folder.iterdir()] == [name]  # no half-made files stay
    return str(error.value)


def batch(folder, phase, monkeypatch):
    """The data and labels of the model's first batch."""
    monkeypatch.chdir(folder / "m")
    net = caffe.Net("train_val.prototxt", phase)
    net.forward(end="data")
    return net.blobs["data"].data.copy(), net.blobs["label"].data.reshape(-1, 8).copy()


def test_a_turned_photograph_is_upright_under_its_boxes(folder, monkeypatch):
    """The box is around the white square of the photograph as it is displayed, 60 x 80 pixels."""
    upright = np.zeros((80, 60, 3), np.uint8)
    upright[8:32, 6:30] = 255
    (folder / "scenes").mkdir()
    for number in range(4):
        file = folder / "scenes" / f"{number}.jpg"
        Image.fromarray(np.rot90(upright)).save(file, exif=turned(), quality=95)
        voc_note(file, (60, 80), box=(6, 8, 30, 32))
    new(folder, "scenes", side=64)
    data, labels = batch(folder, caffe.TEST, monkeypatch)
    rows, columns = np.nonzero(data[0].mean(axis=0) > data[0].mean())
    square = [columns.min() / 64, rows.min() / 64, (columns.max() + 1) / 64, (rows.max() + 1) / 64]
    assert square == pytest.approx(labels[0][3:7], abs=0.04) == [0.1, 0.1, 0.5, 0.4]


def test_a_program_that_is_not_there_is_named(folder):
    for number in range(4):
        voc_note(picture(folder / "scenes" / f"{number}.jpg"))
    with pytest.raises(caffe.Error, match="bin/convert_annoset: No such file or directory: the program is installed in the folder of `caffe`"):
        make(folder / "scenes", folder / "m", Wishes(side=64), folder / "bin" / "caffe")
    assert not (folder / "m").exists()


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "I;16", "P"])
def test_images_with_boxes_of_other_pixels(folder, monkeypatch, mode):
    for number in range(3):
        voc_note(picture(folder / f"scenes/{number}.png", mode))
    new(folder, "scenes", side=64)
    assert batch(folder, caffe.TRAIN, monkeypatch)[0].shape[1:] == (3, 64, 64)


@pytest.mark.parametrize("broken, more", [((1,), ""), ((0, 1, 2), "; so it is with ")])
def test_an_image_with_boxes_that_is_cut_off(folder, broken, more, monkeypatch):
    """Also if glog is told to be silent."""
    monkeypatch.setenv("GLOG_minloglevel", "3")
    noise = Image.fromarray(np.random.RandomState(1).randint(0, 256, (30, 40, 3)).astype(np.uint8))
    for number in range(3):
        file = folder / f"scenes/my {number}.jpg"
        file.parent.mkdir(exist_ok=True)
        noise.save(file)
        voc_note(file)
        if number in broken:
            file.write_bytes(file.read_bytes()[:-300])
    said = refusal(folder, "scenes")
    assert said.startswith(f"{folder}/scenes/my ") and ".jpg: cannot be read as an image (broken JPEG image" in said and more in said


def test_names_of_images_with_boxes_that_are_not_utf_8(folder):
    for number in range(3):
        image = picture(folder / f"scenes/{number}.png")
        voc_note(image.rename(image.with_name(f"x\udce4{number}.png")))
    plan = new(folder, "scenes", side=64)
    assert plan.halves.train_count + plan.halves.val_count == 3


def test_names_in_a_list_that_are_not_utf_8(folder):
    lines = []
    for number in range(8):
        image = picture(folder / f"photos/{number}.png")
        lines.append(f"{os.fsdecode(image.rename(image.with_name(f'{number}_{chr(0xdce4)}.png')).name)} {number % 2}\n")
    (folder / "photos/list.txt").write_text("".join(lines), errors="surrogateescape")
    (folder / "m").mkdir()
    plan = preview(folder / "photos/list.txt", folder / "m", Wishes(val=0.5), BINARIES / "caffe", count=4)
    assert plan.halves.train_count + plan.halves.val_count == 4


def test_images_with_masks_of_16_bits(folder):
    masks(folder / "cells", count=4)
    for number, file in enumerate(sorted((folder / "cells/images").iterdir())):
        pixels = np.full((48, 48), (64 * number + 9) << 8 | 77, np.uint16)
        Image.fromarray(pixels).save(file.with_suffix(".png" if number % 2 else ".tif"))
        file.unlink()
    new(folder, "cells")
    found = set()
    for file in (folder / "m/data").glob("*/images/*.png"):
        with Image.open(file) as image:
            found |= {pixel for _, pixel in image.getcolors()}
    assert found == {(level, level, level) for level in (9, 73, 137, 201)}


def test_an_image_with_a_mask_of_32_bits(folder):
    masks(folder / "cells", count=4)
    (folder / "cells/images/0.jpg").unlink()
    Image.fromarray(np.ones((48, 48), np.float32)).save(folder / "cells/images/0.tif")
    assert "images/0.tif: has pixels of 32 bits (F), which have no usual range; save it with 8 or 16 bits" in refusal(folder, "cells")


def test_images_with_masks_keep_their_names(folder):
    names = ["a b", "caf\u00e9", "x\udce4", "n" * 240]
    for number, name in enumerate(names):
        for half in ("train", "val"):
            picture(folder / "cells/images" / half / f"{name}.png")
            picture(folder / "cells/masks" / half / f"{name}.png", "L", number % 2)
    new(folder, "cells")
    kept = ["a_b", "caf\u00e9", "n" * 240, "x_"]
    for half in ("train", "val"):
        lines = (folder / f"m/data/{half}.txt").read_text(encoding="utf-8").splitlines()
        stems = [f"{number:06}_{half}_{name}"[:67] for number, name in enumerate(kept)]
        assert lines == [f"{half}/images/{stem}.png {half}/masks/{stem}.png" for stem in stems]


def test_masks_of_black_and_white(folder):
    """White is class 1 in training too, and not ignored."""
    for number in range(4):
        picture(folder / f"cells/images/{number}.png")
        picture(folder / f"cells/masks/{number}.png", "L", 255 * (number % 2))
    assert new(folder, "cells").dataset.classes == ["0", "1"]
    found = set()
    for file in (folder / "m/data").glob("*/masks/*.png"):
        with Image.open(file) as mask:
            found |= {pixel for _, pixel in mask.getcolors()}
    assert found == {0, 1}


@pytest.mark.parametrize("has_halves", [False, True])
def test_a_class_of_broken_images(folder, has_halves):
    photos = classes(folder / "photos/train" if has_halves else folder / "photos")
    if has_halves:
        classes(folder / "photos/val", count=2)
    for file in (photos / "green").iterdir():
        file.write_bytes(b"")
    assert "no image of the class 'green' can be read for training; fix its images, or remove the class" in refusal(folder, "photos")


def test_a_folder_of_macos_is_no_class(folder):
    picture(classes(folder / "photos") / "__MACOSX/red/._1.png")
    assert new(folder, "photos").dataset.classes == ["blue", "green", "red"]
    assert (folder / "m/data/train/labels.txt").read_text() == "blue\ngreen\nred\n"
    assert sorted(entry.name for entry in (folder / "m/data").iterdir()) == ["train", "val"]

"""caffe new: sets of a newcomer that cannot be used as they are, and what is said about them."""
import pytest

from caffe import InvalidArgument
from caffe.model_folder.datasets import open_dataset
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
        f"2 photographs in HEIC, which is not read: convert them to JPEG, such as {folder}/red/1.HEIC"]

"""What a folder of pictures can be: a module for each kind of set.

A module has `find(path)`, which returns a Dataset where the path is one of its kind, else None, and
raises InvalidArgument where it is one but a broken one. Adding a kind adds a file and edits no
list.
"""
from __future__ import annotations

import importlib
import pkgutil
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from ... import InvalidArgument


@dataclass
class Halves:
    """Where the two halves of an imported set are, from the model's folder, and how large they are.

    mean: of blue, green and red, of 255. more: what the task's recipe has to know besides.
    """

    train: str
    val: str
    train_count: int
    val_count: int
    mean: Tuple[float, ...] = (104.0, 117.0, 123.0)
    more: Dict[str, str] = field(default_factory=dict)


class Dataset:
    """A set of images with answers.

    task: "classification", "detection" or "segmentation". classes: their names, from label 0 on;
    where label 0 is the background, it is one of them. kind: for people.
    """

    kind = ""
    task = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.classes: List[str] = []

    def images(self) -> List[Path]:
        """All image files, for a look at their sizes."""
        raise NotImplementedError

    def import_into(self, folder: Path, options: "ImportOptions") -> Halves:
        """Makes what the data layers read, below `folder`."""
        raise NotImplementedError


@dataclass
class ImportOptions:
    """side: height and width of the stored images in pixels. val: share of the set that is kept for
    testing, in (0, 1). program: the program `caffe`; its converters lie beside it."""

    side: int
    val: float
    seed: int
    program: Path


def open_dataset(path: Path) -> Dataset:
    """The set at `path`. Raises InvalidArgument, with what there could be, where it is none."""
    if not path.exists():
        raise InvalidArgument(f"{path}: no such file or folder; give the folder of the images")
    found: Dict[str, Dataset] = {}
    kinds = []
    for module in _modules():
        kinds.append(module.KIND)
        dataset: Optional[Dataset] = module.find(path)
        if dataset is not None:
            found[module.KIND] = dataset
    if not found:
        raise InvalidArgument(f"{path}: holds no set of images that is known; give one of these: {'; '.join(kinds)}")
    if len(found) > 1:
        raise InvalidArgument(f"{path}: could be {' or '.join(found)}; leave one of them in the folder")
    return next(iter(found.values()))


def _modules():
    return [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]


def beside(files: List[Path], seed: int, val: float) -> Tuple[List[Path], List[Path]]:
    """Splits `files` in two at random: those to train with, and the share `val` of them, at least
    one, to test with. The same each time for one seed."""
    import random

    if len(files) < 2:
        raise InvalidArgument(f"{files[0].parent if files else 'the set'}: has {len(files)} images; give two or more, of which "
                              "some are kept for testing")
    order = list(files)
    random.Random(seed).shuffle(order)
    count = min(max(1, round(val * len(order))), len(order) - 1)
    return sorted(order[count:]), sorted(order[:count])


def checked_names(where: Path, names: List[str]) -> List[str]:
    """The names of classes. Raises InvalidArgument for one that no file of ours could hold: one with control characters
    or of bytes that are no UTF-8."""
    for name in names:
        if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in name):
            raise InvalidArgument(f"{where}: the class {ascii(name)} has control characters, or bytes that are no UTF-8, in its name; "
                                  "rename it")
    return names


def lines_of(file: Path) -> List[str]:
    """The lines of a text file that are not empty, without spaces at their ends. Raises InvalidArgument where it is no UTF-8."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{file}: is no text in UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}


def is_image(path: Path) -> bool:
    """Whether the name is that of an image file that is not hidden."""
    return path.suffix.lower() in IMAGES and not path.name.startswith(".")


def images_below(folder: Path) -> List[Path]:
    """Image files below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if is_image(path) and path.is_file())

"""Kinds of data sets: one module for each.

A module has `find(path)`, which returns a Dataset if the path is a set of its kind, else None, and
KIND, a description for users. It raises InvalidArgument for a broken set of its kind. It may have `explain(path)`, which is called if
no module has found a set: it raises InvalidArgument if the path looks like a set of this kind. No
list has to be edited to add a kind.
"""
from __future__ import annotations

import importlib
import pkgutil
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple, TypeVar

from ... import InvalidArgument
from ..._counted import counted
from ..files import cure_of_unread, format_of_unread, unread_below

Item = TypeVar("Item")


@dataclass
class Halves:
    """Paths of the two halves of an imported set, relative to the model's folder, and their sizes.

    mean: of blue, green and red, from 0 to 255. more: other values that the task's recipe needs.
    """

    train: str
    val: str
    train_count: int
    val_count: int
    mean: Tuple[float, ...] = (104.0, 117.0, 123.0)
    more: Dict[str, str] = field(default_factory=dict)


FOR_TRAINING, FOR_TESTING = "for training", "for testing"  # keys of Dataset.groups()


class Dataset:
    """A set of labelled images.

    task: "classification", "detection" or "segmentation". classes: their names, from label 0,
    including the background if that is label 0. kind: a description for users. left_out: for users, which files of the set are
    not used. warnings: for users, what is changed for training and may be a mistake in the set.
    """

    kind = ""
    task = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.classes: List[str] = []
        self.left_out: List[str] = []
        self.warnings: List[str] = []

    @property
    def num_shown(self) -> int:
        """The number of classes that images show: all, but for a background that stands for none."""
        return len(self.classes)

    def images(self) -> List[Path]:
        """All image files, to determine their sizes."""
        raise NotImplementedError

    def groups(self) -> Dict[str, List[Path]]:
        """Images that must not be the same, by descriptions for users, such as "of the class 'a'" or FOR_TESTING; {} if there are none."""
        return {}

    def sample(self, count: int, folder: Path) -> "Dataset":
        """A set of about `count` of the images, evenly chosen, with the same classes. folder: an empty one, which the sample may use."""
        raise NotImplementedError

    def import_into(self, folder: Path, options: "ImportOptions") -> Halves:
        """Writes the input of the data layers below `folder`."""
        raise NotImplementedError


@dataclass
class ImportOptions:
    """side: height and width of the stored images in pixels. val: share of the set to keep for testing,
    in (0, 1). program: the program `caffe`; its converters are in the same folder."""

    side: int
    val: float
    seed: int
    program: Path


def open_dataset(path: Path) -> Dataset:
    """The set at `path`. Raises InvalidArgument, which lists the possible kinds, if it is not a set."""
    if not path.exists():
        raise InvalidArgument(f"{path}: no such file or folder; give the folder of the images")
    found: Dict[str, Dataset] = {}
    modules = _modules()
    for module in modules:
        dataset: Optional[Dataset] = module.find(path)
        if dataset is not None:
            found[module.KIND] = dataset
    if not found:
        for module in modules:
            if hasattr(module, "explain"):
                module.explain(path)
        unread = unread_below(path) if path.is_dir() else []
        if unread:
            raise InvalidArgument(f"{path}: holds no images that are read, but {len(unread)} such as {unread[0]}: {cure_of_unread(unread[0])}")
        kinds = "; ".join(module.KIND for module in modules if hasattr(module, "KIND"))
        raise InvalidArgument(f"{path}: holds no set of images that is known; give one of these: {kinds}")
    if len(found) > 1:
        raise InvalidArgument(f"{path}: could be {' or '.join(found)}; leave one of them in the folder")
    dataset = next(iter(found.values()))
    if path.is_dir():
        unread = unread_below(path)
        dataset.left_out += some(unread, "photograph", f"in {format_of_unread(unread[0])}, which is not read: convert to JPEG" if unread else "")
    return dataset


def _modules():
    return [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]


def evenly(items: Sequence[Item], count: int) -> List[Item]:
    """At most `count` of the items, at equal distances."""
    return list(items) if len(items) <= count else [items[index * len(items) // count] for index in range(count)]


def beside(files: List[Path], seed: int, val: float) -> Tuple[List[Path], List[Path]]:
    """Splits `files` at random into files for training, and the share `val`, at least one, for testing.
    The result depends on the seed only."""
    import random

    if len(files) < 2:
        raise InvalidArgument(f"{files[0].parent if files else 'the set'}: has {counted(len(files), 'image')}; give two or more, of which "
                              "some are kept for testing")
    order = list(files)
    random.Random(seed).shuffle(order)
    count = min(max(1, round(val * len(order))), len(order) - 1)
    return sorted(order[count:]), sorted(order[:count])


def some(files: Sequence[Path], noun: str, rest: str) -> List[str]:
    """For Dataset.left_out: how many files are left out, and the first as an example; [] if there are no files. noun and rest: as
    "image" and "without a mask"."""
    return [f"{counted(len(files), noun)} {rest}, such as {files[0]}"] if files else []


def shown(text: str) -> str:
    """A text of a file in quotes; bytes that are not UTF-8, and control characters, as escapes."""
    return f"'{text}'" if text.isprintable() else ascii(text)


def checked_names(where: Path, names: List[str]) -> List[str]:
    """The names of classes. Raises InvalidArgument for names that our files cannot store: with control characters, or bytes
    that are not UTF-8."""
    for name in names:
        if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in name):
            raise InvalidArgument(f"{where}: the class {ascii(name)} has control characters, or bytes that are not UTF-8, in its name; "
                                  "rename it")
    return names


def lines_of(file: Path) -> List[str]:
    """The non-empty lines of a text file, stripped. Raises InvalidArgument if it is not UTF-8."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{file}: is not text in UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    return [line.strip() for line in text.splitlines() if line.strip()]

"""A folder of images per class, or such folders within `train` and `val`."""
from __future__ import annotations

from pathlib import Path
from typing import List, Optional

from ... import InvalidArgument
from . import Dataset, Halves, ImportOptions, checked_names, evenly, images_below
from ..databases import import_report, import_split, mean_of
from .coco import is_coco

KIND = "a folder with a folder of images for each class"
_TRAIN, _VAL = ("train", "training"), ("val", "valid", "validation", "test", "testing")
# Folder names used by other kinds of sets.
_OTHERS = {"annotations", "masks", "labels", "jpegimages", "images", "segmentationclass"}


def find(path: Path) -> Optional[Dataset]:
    if not path.is_dir() or _has_boxes(path):
        return None
    folders = _folders(path)
    if not folders or any(folder.name.lower() in _OTHERS for folder in folders):
        return None
    halves = {folder.name.lower(): folder for folder in folders}
    train = next((halves[name] for name in _TRAIN if name in halves), None)
    val = next((halves[name] for name in _VAL if name in halves), None)
    if train is not None and val is not None and _folders(train):
        return ClassFolders(path, train, val)
    return ClassFolders(path, path, None) if any(images_below(folder) for folder in folders) else None


def _has_boxes(path: Path) -> bool:
    return next(path.rglob("*.xml"), None) is not None or any(is_coco(file) for file in path.glob("*.json"))


def _folders(path: Path) -> List[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


class ClassFolders(Dataset):
    kind = "folders of classes"
    task = "classification"

    def __init__(self, path: Path, train: Path, val: Optional[Path]) -> None:
        super().__init__(path)
        self.train, self.val = train, val
        self.classes = checked_names(train, [folder.name for folder in _folders(train)])
        if len(self.classes) < 2:
            raise InvalidArgument(f"{train}: has one class, '{self.classes[0]}'; there is nothing to tell apart: give a folder for each "
                                  "of two classes or more")
        empty = [name for name in self.classes if not images_below(train / name)]
        if empty:
            raise InvalidArgument(f"{train}: the folder '{empty[0]}' holds no image; fill it, or remove it")
        if val is not None:
            self._check_same_classes()

    def _check_same_classes(self) -> None:
        others = [folder.name for folder in _folders(self.val)]
        if others != self.classes:
            only = sorted(set(others) ^ set(self.classes))
            raise InvalidArgument(f"{self.val}: has other classes than {self.train}: '{only[0]}' is in one of them alone; both need the "
                                  "same folders")

    def images(self) -> List[Path]:
        return images_below(self.train)

    def sample(self, count: int, folder: Path) -> Dataset:
        for name in self.classes:
            (folder / name).mkdir()
            for number, file in enumerate(evenly(images_below(self.train / name), max(2, count // len(self.classes)))):
                (folder / name / f"{number:04}{file.suffix}").symlink_to(file.resolve())
        return ClassFolders(folder, folder, None)

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        resize = f"--resize={options.side}x{options.side}"
        database = folder / "train"
        words = ["data", "import", self.train, database, resize, "--shuffle", f"--seed={options.seed}", "--json"]
        if self.val is None:
            return import_split(options, folder, *words)
        report = import_report(options, *words)
        other = import_report(options, "data", "import", self.val, folder / "val", resize, "--json")
        return Halves("data/train", "data/val", report["images"], other["images"], mean=mean_of(report))

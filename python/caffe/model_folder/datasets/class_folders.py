"""A folder of images per class, or such folders within `train` and `val`."""
from __future__ import annotations

import shutil
from pathlib import Path
from typing import Dict, List, Optional

from ... import InvalidArgument
from . import FOR_TESTING, Dataset, Halves, ImportOptions, checked_names, evenly, some
from .coco import is_coco, json_files, lacking_in
from .voc import notes_below
from .yolo import texts_next_to_images
from ..databases import import_report, import_split, mean_of, require_images
from ..files import IMAGES, cure_of_unread, files_in, folders_in, images_below, unread_below
from ..splits import by_half, half_folders, half_named

KIND = "a folder with a folder of images for each class"
# Folder names used by other kinds of sets.
_OTHERS = {"annotations", "masks", "labels", "jpegimages", "images", "segmentationclass"}


def find(path: Path) -> Optional[Dataset]:
    if not path.is_dir() or _is_other(path):
        return None
    folders, halves = folders_in(path), half_folders(path)
    train, val, _ = by_half(halves, lambda folder: half_named(folder.name))
    if halves == folders and folders and not val:
        raise InvalidArgument(f"{path}: holds '{halves[0].name}', a part of a set; give that folder by itself, or add the other part: "
                              "'train' and 'val' are for training and for testing")
    if val and (halves == folders or any(map(folders_in, train))):
        return ClassFolders(path, _only(train), _only(val))
    return ClassFolders(path, path) if any(map(images_below, folders)) else None


def _is_other(path: Path) -> bool:
    """True for a set of boxes or of masks."""
    if any(map(texts_next_to_images, (path, *half_folders(path)))):
        return True
    folders = [folder for place in (path, *half_folders(path)) for folder in folders_in(place)]
    return any(folder.name.lower() in _OTHERS for folder in folders) or bool(notes_below(path)) or \
        any(is_coco(file) or lacking_in(file) for file in json_files(path))


def _only(folders: List[Path]) -> Path:
    if len(folders) > 1:
        raise InvalidArgument(f"{folders[0]}: is for the same as {folders[1]}; keep one of them, or put their images into one folder")
    return folders[0]


class ClassFolders(Dataset):
    kind = "folders of classes"
    task = "classification"

    def __init__(self, path: Path, train: Path, val: Optional[Path] = None) -> None:
        super().__init__(path)
        self.train, self.val = train, val
        self.classes = checked_names(train, [folder.name for folder in folders_in(train)])
        if val is not None:
            self.left_out = [f"the images in {folder}; those in {train} are for training, those in {val} for testing"
                             for folder in folders_in(path) if folder not in (train, val) and images_below(folder)]
        self.left_out += some([file for suffix in IMAGES for file in files_in(train, suffix)], "image", "next to the folders of the classes")
        if not self.classes:
            raise InvalidArgument(f"{train}: has no folders; put the images of each class into a folder of their own")
        if len(self.classes) < 2:
            inside = train / self.classes[0]
            hint = f", or the folder in it, if its {len(folders_in(inside))} folders are the classes: {inside}" if len(folders_in(inside)) > 1 else ""
            raise InvalidArgument(f"{train}: has one class, '{self.classes[0]}'; there is nothing to tell apart: give a folder for each "
                                  f"of two classes or more{hint}")
        empty = [name for name in self.classes if not images_below(train / name)]
        if empty:
            unread = unread_below(train / empty[0])
            if unread:
                raise InvalidArgument(f"{train}: the folder '{empty[0]}' holds no image that is read, but {len(unread)} such as "
                                      f"{unread[0].name}: {cure_of_unread(unread[0])}")
            raise InvalidArgument(f"{train}: the folder '{empty[0]}' holds no image; fill it, or remove it")
        inner = [folder for name in self.classes for folder in folders_in(train / name) if images_below(folder)]
        if inner:
            self.warnings.append(f"images in folders within a class belong to the class, such as those in {inner[0]} to '{inner[0].parent.name}'; if "
                                 f"{inner[0].name} is a class, move its folder up")
        if val is not None:
            self._check_same_classes()

    def _check_same_classes(self) -> None:
        others = [folder.name for folder in folders_in(self.val)]
        if others != self.classes:
            only = sorted(set(others) ^ set(self.classes))
            raise InvalidArgument(f"{self.val}: has other classes than {self.train}: '{only[0]}' is in one of them alone; both need the "
                                  "same folders")

    def images(self) -> List[Path]:
        return images_below(self.train)

    def groups(self) -> Dict[str, List[Path]]:
        classes = {f"of the class '{name}'": images_below(self.train / name) for name in self.classes}
        return classes if self.val is None else {**classes, FOR_TESTING: images_below(self.val)}

    def sample(self, count: int, folder: Path) -> Dataset:
        for name in self.classes:
            (folder / name).mkdir()
            for number, file in enumerate(evenly(images_below(self.train / name), max(2, count // len(self.classes)))):
                (folder / name / f"{number:04}{file.suffix}").symlink_to(file.resolve())
        return ClassFolders(folder, folder)

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        links = folder / "links"
        resize = f"--resize={options.side}x{options.side}"
        if self.val is None:
            halves = import_split(self, options, folder, self._linked(self.train, links), resize)
        else:
            report = import_report(options, self._linked(self.train, links / "train"), folder / "train", resize, "--shuffle",
                                   f"--seed={options.seed}")
            require_images(self, report)
            other = import_report(options, self._linked(self.val, links / "val"), folder / "val", resize)
            halves = Halves("data/train", "data/val", report["images"], other["images"], mean=mean_of(report))
        shutil.rmtree(links)
        return halves

    def _linked(self, source: Path, links: Path) -> Path:
        """Makes a folder with links to the folders of the classes. `caffe data import` would take each folder as a class, also those
        that are hidden here."""
        links.mkdir(parents=True)
        for name in self.classes:
            (links / name).symlink_to((source / name).resolve())
        return links

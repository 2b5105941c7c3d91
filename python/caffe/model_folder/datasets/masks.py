"""Pairs of images and masks: `images` and `masks` with files of equal names (or VOC's `JPEGImages`
and `SegmentationClass`), also within `train` and `val`, or with such folders in them. Each pixel of a
mask is a class number, 255 for none; classes.txt or labels.txt has the class names. If masks have 0
and 255 alone, 255 is class 1."""
from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Dict, List, Optional, Set, Tuple

from ... import InvalidArgument
from ..._counted import counted
from ..files import cure_of_unread, images_below, unread_below
from ..pixels import IGNORED, classes_of, means, resized
from ..splits import by_half, half_folders, half_of_folder
from . import FOR_TESTING, FOR_TRAINING, Dataset, Halves, ImportOptions, beside, checked_names, evenly, lines_of, some

KIND = "pairs of images and masks, in folders 'images' and 'masks'"
_FOLDERS = (("images", "masks"), ("JPEGImages", "SegmentationClass"), ("images", "labels"))
_LONGEST_NAME = 60  # letters; a letter takes up to 4 bytes, and file systems take 255 bytes


def find(path: Path) -> Optional[Dataset]:
    places = [place for base in _bases(path) for place in _places(base)]
    return MaskPairs(path, places) if places else None


def _bases(path: Path) -> List[Path]:
    return [path, *half_folders(path)] if path.is_dir() else []


def _places(base: Path) -> List[Tuple[Path, Path]]:
    """The first pair of folders of images and of masks, or none."""
    pairs = [(base / images, base / masks) for images, masks in _FOLDERS if (base / images).is_dir()]
    return [(images, masks) for images, masks in pairs if images_below(masks)][:1]


def explain(path: Path) -> None:
    if any((base / "labels").is_dir() for base in _bases(path)):
        return  # of YOLO
    for base in _bases(path):
        for images, masks in _FOLDERS[:2]:
            if images_below(base / images) and not images_below(base / masks):
                raise InvalidArgument(f"{base}: has images in '{images}', but " + ("no image in" if (base / masks).is_dir() else "no folder") +
                                      f" '{masks}' for a class per pixel, and no JSON or XML files for boxes; add what the images show")


class MaskPairs(Dataset):
    kind = "images and masks"
    task = "segmentation"

    def __init__(self, path: Path, places: List[Tuple[Path, Path]]) -> None:
        super().__init__(path)
        self._masks: Dict[Path, Path] = {}
        self._names: Dict[Path, str] = {}
        without: List[Path] = []
        for images, masks in places:
            without += self._add(images, masks)
        self.left_out += some(without, "image", "without a mask")
        if len(self._masks) < 2:
            raise InvalidArgument(f"{path}: has {counted(len(self._masks), 'image')} with a mask of the same name; give two or more")
        self._train, self._val, unused = by_half(list(self._masks), lambda file: half_of_folder(file.relative_to(path)))
        self.left_out += some(unused, "image", "in no part that is used")
        values = set().union(*(classes_of(file, mask) for file, mask in self._masks.items()))
        self._white = IGNORED
        if values == {0, IGNORED}:
            self._white = 1
            self.kind = "images and masks of black and white, which is class 1"
        self.classes = self._checked_classes(values)

    def _add(self, images: Path, masks: Path) -> List[Path]:
        """Adds the pairs of two folders; returns the images without a mask."""
        files, others = _by_name(images), _by_name(masks)
        alone = sorted(set(others) - set(files))
        if alone:
            unread = [file for file in unread_below(images) if str(file.relative_to(images).with_suffix("")) == alone[0]]
            if unread:
                raise InvalidArgument(f"{others[alone[0]]}: is for the image {unread[0]}: {cure_of_unread(unread[0])}")
            raise InvalidArgument(f"{others[alone[0]]}: there is no image of this name in {images}; add it, or remove the mask")
        self._masks.update((files[name], others[name]) for name in sorted(others))
        self._names.update((files[name], name) for name in others)
        return [file for name, file in files.items() if name not in others]

    def _checked_classes(self, values: Set[int]) -> List[str]:
        """The names of the classes. values: the numbers in the masks."""
        numbers = {self._white if value == IGNORED else value for value in values} - {IGNORED}
        if len(numbers) < 2:
            raise InvalidArgument(f"{self.path}: all pixels have the class {', '.join(map(str, numbers)) or IGNORED}; there is nothing "
                                  f"to tell apart: classes are numbers from 0 to {IGNORED - 1}, and {IGNORED} (white) is none")
        count = max(numbers) + 1
        for name in ("classes.txt", "labels.txt"):
            file = self.path / name
            if file.is_file():
                lines = checked_names(file, lines_of(file))
                if len(lines) < count:
                    raise InvalidArgument(f"{file}: has {len(lines)} names, but the masks have classes up to {count - 1}")
                return lines
        if len(numbers) < count / 2:
            raise InvalidArgument(f"{self.path}: the masks have the numbers {_listed(sorted(values))}, so that most of the {count} classes from 0 to "
                                  f"{count - 1} have no pixel; number the classes from 0 on, or write a name for each of them into classes.txt")
        return [str(label) for label in range(count)]

    def images(self) -> List[Path]:
        return [*self._train, *self._val]

    def groups(self) -> Dict[str, List[Path]]:
        return {FOR_TRAINING: self._train, FOR_TESTING: self._val}

    def sample(self, count: int, folder: Path) -> Dataset:
        part = copy.copy(self)
        part._train, part._val = evenly(self._train, count), evenly(self._val, count)
        return part

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        train, val = (self._train, self._val) if self._val else beside(self._train, options.seed, options.val)
        mean = self._write(folder, "train", train, options.side)
        self._write(folder, "val", val, options.side)
        (folder / "labels.txt").write_text("".join(f"{name}\n" for name in self.classes), encoding="utf-8")
        return Halves("data/train.txt", "data/val.txt", len(train), len(val), mean=mean, more={"ignore": str(IGNORED)})

    def _write(self, folder: Path, half: str, files: List[Path], side: int) -> Tuple[float, ...]:
        """Writes resized pairs and their list; returns the means of the images' channels."""
        kinds = ("images", "masks")
        for kind in kinds:
            (folder / half / kind).mkdir(parents=True)
        lines, sums = [], (0.0, 0.0, 0.0)
        for number, file in enumerate(files):
            pictures = resized(file, self._masks[file], side, self._white)
            names = [f"{half}/{kind}/{number:06}_{_safe(self._names[file])}.png" for kind in kinds]
            for name, picture in zip(names, pictures):
                picture.save(folder / name)
            lines.append(" ".join(names) + "\n")
            sums = tuple(total + mean for total, mean in zip(sums, means(pictures[0])))
        (folder / f"{half}.txt").write_text("".join(lines), encoding="utf-8")
        return tuple(round(total / len(files), 1) for total in sums)


def _by_name(folder: Path) -> Dict[str, Path]:
    """The images below a folder by their paths without the suffix. Raises InvalidArgument if two have the same one."""
    files: Dict[str, Path] = {}
    for file in images_below(folder):
        name = str(file.relative_to(folder).with_suffix(""))
        if name in files:
            raise InvalidArgument(f"{file}: has the same name as {files[name]}, so that it is not clear which one the mask is for; rename or "
                                  "remove one of them")
        files[name] = file
    return files


def _listed(numbers: List[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f", ... {numbers[-1]}" if len(numbers) > 8 else "")


def _safe(name: str) -> str:
    """A name as it can be in a list: letters, digits, dots and dashes."""
    return re.sub(r"[^\w.-]+", "_", name)[:_LONGEST_NAME]

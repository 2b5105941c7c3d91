"""VOC's boxes: `JPEGImages` and `Annotations` with an XML file per image; or the two folders `images`
and `annotations`; or XML files next to the images. ImageSets/Main/train.txt and val.txt, if present,
assign images to training and validation, else folders `train` and `val` that they are in."""
from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Container, Dict, List, Optional

from ... import InvalidArgument
from ..annotated import Annotated, Box, Boxes, by_file, checked_size, is_set
from ..files import cure_of_unread, files_below, images_below, unread_below
from ..splits import by_half, half_of_folder
from . import Dataset, lines_of

KIND = "images with boxes as VOC has them: an XML file for each image"


def find(path: Path) -> Optional[Dataset]:
    return Voc(path) if path.is_dir() and notes_below(path) else None


def notes_below(path: Path) -> List[Path]:
    """The XML files of a set."""
    return files_below(path, {".xml"})


class Voc(Boxes):
    kind = "boxes as VOC has them"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        images = [file for file in images_below(path) if "Segmentation" not in file.parent.name]
        files: Dict[str, List[Path]] = {}
        for file in images:
            files.setdefault(file.stem, []).append(file)
        items: Dict[str, List[Annotated]] = {}
        for note in notes_below(path):
            items.setdefault(note.stem, []).append(_read(note, self._image_of(note, files.get(note.stem, []))))
        if (path / "ImageSets" / "Main").is_dir():
            self._choose_listed(items)
        else:
            self._choose_by_folder(items)
        self.check(images)

    def _choose_by_folder(self, items: Dict[str, List[Annotated]]) -> None:
        train, val, _ = by_half([item for same in items.values() for item in same],
                                lambda item: half_of_folder(item.file.relative_to(self.path)))
        self.items, self.val_items = by_file(train), by_file(val)

    def _choose_listed(self, items: Dict[str, List[Annotated]]) -> None:
        val = self._listed("val", items) or self._listed("test", items)
        train = self._listed("train", items) or [stem for stem in items if stem not in set(val)]
        self.items, self.val_items = self._chosen(items, train), self._chosen(items, val)

    def _image_of(self, note: Path, files: List[Path]) -> Path:
        """The image with the name of an XML file: the one in the same folder, else the only one, else the one in the folder
        whose path differs only in its first or last part."""
        if not files:
            unread = [file for file in unread_below(self.path) if file.stem == note.stem]
            if unread:
                raise InvalidArgument(f"{note}: is for the image {unread[0]}: {cure_of_unread(unread[0])}")
            raise InvalidArgument(f"{note}: there is no image {note.stem}.jpg or .png in {self.path}; add it, or remove the file")
        within = note.relative_to(self.path).parent.parts
        for near in ([file for file in files if file.parent == note.parent], files,
                     [file for file in files if file.relative_to(self.path).parent.parts[1:] == within[1:]],
                     [file for file in files if file.relative_to(self.path).parent.parts[:-1] == within[:-1]]):
            if len(near) == 1:
                return near[0]
        raise InvalidArgument(f"{note}: could be of {files[0]} or of {files[1]}; put it next to its image, or rename one of them")

    def _listed(self, half: str, stems: Container[str]) -> List[str]:
        file = self.path / "ImageSets" / "Main" / f"{half}.txt"
        return list(dict.fromkeys(_stem(line, stems) for line in lines_of(file))) if file.is_file() else []

    def _chosen(self, items: Dict[str, List[Annotated]], stems: List[str]) -> Dict[Path, Annotated]:
        missing = [stem for stem in stems if stem not in items]
        if missing:
            raise InvalidArgument(f"{self.path}/ImageSets/Main: names '{missing[0]}', but there is no XML file of this name")
        return by_file(item for stem in stems for item in items[stem])


def _stem(line: str, stems: Container[str]) -> str:
    """The name in a line of a list; lists of a class have 1, -1 or 0 after each name."""
    return line if line in stems else re.sub(r"\s+(-1|0|1)$", "", line)


def _read(notes: Path, image: Path) -> Annotated:
    try:
        root = ElementTree.parse(notes).getroot()
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # LookupError, ValueError: unknown encodings
        raise InvalidArgument(f"{notes}: is not valid XML: {error}; fix it, or remove it") from None
    try:
        width, height = (int(float(root.findtext(f"size/{tag}") or 0)) for tag in ("width", "height"))
    except (OverflowError, ValueError):
        raise InvalidArgument(f"{notes}: its size has a width or height that is not a number; fix it, or remove the size") from None
    boxes = []
    for node in root.iter("object"):
        try:
            corners = [float(node.findtext(f"bndbox/{tag}", "")) for tag in ("xmin", "ymin", "xmax", "ymax")]
        except ValueError:
            raise InvalidArgument(f"{notes}: an object has no bndbox with xmin, ymin, xmax and ymax") from None
        try:
            is_difficult = is_set(node.findtext("difficult"))
        except ValueError as error:
            raise InvalidArgument(f"{notes}: an object has a 'difficult' that {error}") from None
        boxes.append(Box(node.findtext("name", "").strip() or "object", *corners, is_difficult))
    return Annotated(image, *checked_size(str(notes), image, width, height), boxes, str(notes))

"""VOC's boxes: `JPEGImages` and `Annotations` with an XML file per image; or the two folders `images`
and `annotations`; or XML files next to the images. ImageSets/Main/train.txt and val.txt, if present,
assign images to training and validation."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Dict, List, Optional

from ... import InvalidArgument
from ..annotated import Annotated, Box, Boxes, size_of
from . import Dataset, images_below, lines_of

KIND = "images with boxes as VOC has them: an XML file for each image"


def find(path: Path) -> Optional[Dataset]:
    return Voc(path) if path.is_dir() and next(path.rglob("*.xml"), None) is not None else None


class Voc(Boxes):
    kind = "boxes as VOC has them"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        notes = [file for file in sorted(path.rglob("*.xml")) if not file.is_dir()]
        if not notes:
            raise InvalidArgument(f"{path}: has no XML file with boxes")
        files: Dict[str, List[Path]] = {}
        for file in images_below(path):
            if "Segmentation" not in file.parent.name:
                files.setdefault(file.stem, []).append(file)
        items: Dict[str, List[Annotated]] = {}
        for note in notes:
            items.setdefault(note.stem, []).append(_read(note, self._image_of(note, files.get(note.stem, []))))
        val = self._listed("val") or self._listed("test")
        train = self._listed("train") or [stem for stem in items if stem not in set(val)]
        self.items = self._chosen(items, train)
        self.val_items = self._chosen(items, val)
        self.check()

    def _image_of(self, note: Path, files: List[Path]) -> Path:
        """The image with the name of an XML file: the one in the same folder, else the only one, else the one in the folder
        whose path differs only in its first or last part."""
        if not files:
            raise InvalidArgument(f"{note}: there is no image {note.stem}.jpg or .png in {self.path}; add it, or remove the file")
        within = note.relative_to(self.path).parent.parts
        for near in ([file for file in files if file.parent == note.parent], files,
                     [file for file in files if file.relative_to(self.path).parent.parts[1:] == within[1:]],
                     [file for file in files if file.relative_to(self.path).parent.parts[:-1] == within[:-1]]):
            if len(near) == 1:
                return near[0]
        raise InvalidArgument(f"{note}: could be of {files[0]} or of {files[1]}; put it next to its image, or rename one of them")

    def _listed(self, half: str) -> List[str]:
        file = self.path / "ImageSets" / "Main" / f"{half}.txt"
        return [line.split()[0] for line in lines_of(file)] if file.is_file() else []

    def _chosen(self, items: Dict[str, List[Annotated]], stems: List[str]) -> Dict[Path, Annotated]:
        missing = [stem for stem in stems if stem not in items]
        if missing:
            raise InvalidArgument(f"{self.path}/ImageSets/Main: names '{missing[0]}', of which there is no XML file")
        return {item.file: item for stem in stems for item in items[stem]}


def _read(notes: Path, image: Path) -> Annotated:
    try:
        root = ElementTree.parse(notes).getroot()
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # LookupError, ValueError: unknown encodings
        raise InvalidArgument(f"{notes}: is no XML: {error}; mend it, or remove it") from None
    try:
        width, height = (int(float(root.findtext(f"size/{tag}") or 0)) for tag in ("width", "height"))
    except (OverflowError, ValueError):
        raise InvalidArgument(f"{notes}: its size has a width or height that is no number; mend it, or remove the size") from None
    if width <= 0 or height <= 0:
        width, height = size_of(image)
    boxes = []
    for node in root.iter("object"):
        try:
            corners = [float(node.findtext(f"bndbox/{tag}", "")) for tag in ("xmin", "ymin", "xmax", "ymax")]
        except ValueError:
            raise InvalidArgument(f"{notes}: an object has no bndbox with xmin, ymin, xmax and ymax") from None
        boxes.append(Box(node.findtext("name", "").strip() or "object", *corners, node.findtext("difficult", "0").strip() == "1"))
    return Annotated(image, width, height, boxes)

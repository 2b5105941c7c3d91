"""VOC's boxes: `JPEGImages` and `Annotations` with an XML file for each image; or the two folders
`images` and `annotations`, or XML files beside the images. ImageSets/Main/train.txt and val.txt
say which images are for what, where they are there."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Dict, List, Optional

from ... import InvalidArgument
from ..annotated import Annotated, Box, Boxes, size_of
from . import Dataset, images_below

KIND = "images with boxes as VOC has them: an XML file for each image"


def find(path: Path) -> Optional[Dataset]:
    return Voc(path) if path.is_dir() and next(path.rglob("*.xml"), None) is not None else None


class Voc(Boxes):
    kind = "boxes as VOC has them"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        notes = {file.stem: file for file in sorted(path.rglob("*.xml"))}
        files = {file.stem: file for file in images_below(path) if "Segmentation" not in file.parent.name}
        for stem in sorted(notes):
            if stem not in files:
                raise InvalidArgument(f"{notes[stem]}: there is no image {stem}.jpg or .png in {path}; add it, or remove the file")
        if not notes:
            raise InvalidArgument(f"{path}: has no XML file with boxes")
        items = {stem: _read(notes[stem], files[stem]) for stem in notes}
        val = self._listed("val") or self._listed("test")
        train = self._listed("train") or [stem for stem in items if stem not in set(val)]
        self.items = self._chosen(items, train)
        self.val_items = self._chosen(items, val)
        self.check()

    def _listed(self, half: str) -> List[str]:
        file = self.path / "ImageSets" / "Main" / f"{half}.txt"
        return [line.split()[0] for line in file.read_text(encoding="utf-8").splitlines() if line.strip()] if file.is_file() else []

    def _chosen(self, items: Dict[str, Annotated], stems: List[str]) -> Dict[Path, Annotated]:
        missing = [stem for stem in stems if stem not in items]
        if missing:
            raise InvalidArgument(f"{self.path}/ImageSets/Main: names '{missing[0]}', of which there is no XML file")
        return {items[stem].file: items[stem] for stem in stems}


def _read(notes: Path, image: Path) -> Annotated:
    try:
        root = ElementTree.parse(notes).getroot()
    except ElementTree.ParseError as error:
        raise InvalidArgument(f"{notes}: is no XML: {error}") from None
    width, height = (int(float(root.findtext(f"size/{tag}", "0"))) for tag in ("width", "height"))
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

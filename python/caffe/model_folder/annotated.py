"""Databases of images with boxes, made by convert_annoset."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from .. import InvalidArgument
from .databases import run
from .datasets import Dataset, Halves, ImportOptions, beside


@dataclass
class Box:
    """In pixels of the image; difficult ones are not scored."""

    name: str
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    difficult: bool = False


@dataclass
class Annotated:
    """An image file and its boxes; height and width in pixels."""

    file: Path
    width: int
    height: int
    boxes: List[Box]


class Boxes(Dataset):
    """A set of images with boxes. Subclasses fill items, and val_items where the set says itself
    what is for testing."""

    task = "detection"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.items: Dict[Path, Annotated] = {}
        self.val_items: Dict[Path, Annotated] = {}

    def check(self) -> None:
        """Sets the classes, of which 0 is the background. Raises InvalidArgument for boxes that
        are none, and where there is none at all."""
        names = set()
        for item in [*self.items.values(), *self.val_items.values()]:
            for box in item.boxes:
                _check_box(item, box)
                names.add(box.name)
        if not names:
            raise InvalidArgument(f"{self.path}: has {len(self.items)} images and no box; there is nothing to learn")
        self.classes = ["background", *sorted(names)]

    def images(self) -> List[Path]:
        return list(self.items)

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        if self.val_items:
            halves = list(self.items), list(self.val_items)
        else:
            halves = beside(list(self.items), options.seed, options.val)
        map_file = folder / "labelmap.prototxt"
        map_file.write_text("".join(f'item {{ name: "{_quoted(name)}" label: {label} display_name: "{_quoted(name)}" }}\n'
                                    for label, name in enumerate(self.classes)), encoding="utf-8")
        for half, files in zip(("train", "val"), halves):
            self._convert(folder, half, files, map_file, options)
        return Halves("data/train", "data/val", len(halves[0]), len(halves[1]), more={"label_map": "data/labelmap.prototxt"})

    def _convert(self, folder: Path, half: str, files: Sequence[Path], map_file: Path, options: ImportOptions) -> None:
        annotations = folder / "annotations"
        annotations.mkdir(exist_ok=True)
        lines = []
        for number, file in enumerate(files):
            item = self.items.get(file) or self.val_items[file]
            xml = annotations / f"{half}_{number:06}.xml"
            xml.write_text(_xml(item), encoding="utf-8")
            lines.append(f"{file.resolve()} {xml.resolve()}\n")
        listing = folder / f"{half}.txt"
        listing.write_text("".join(lines), encoding="utf-8")
        run(options.program.parent / "convert_annoset", "--anno_type=detection", "--label_type=xml", f"--label_map_file={map_file}",
            "--encoded", "--shuffle" if half == "train" else "--noshuffle", f"--shuffle_seed={options.seed}", "/", listing,
            folder / half)


def _check_box(item: Annotated, box: Box) -> None:
    where = f"{item.file}: the box of '{box.name}' ({box.xmin:g}, {box.ymin:g}, {box.xmax:g}, {box.ymax:g})"
    if not (box.xmin < box.xmax and box.ymin < box.ymax):
        raise InvalidArgument(f"{where} is empty; mend it, or remove it")
    if box.xmax <= 0 or box.ymax <= 0 or box.xmin >= item.width or box.ymin >= item.height:
        raise InvalidArgument(f"{where} lies outside of the image of {item.width}x{item.height}; mend it, or remove it")


def _xml(item: Annotated) -> str:
    """As VOC writes it, with boxes cut to the image."""
    root = ElementTree.Element("annotation")
    size = ElementTree.SubElement(root, "size")
    for tag, value in (("width", item.width), ("height", item.height), ("depth", 3)):
        ElementTree.SubElement(size, tag).text = str(value)
    for box in item.boxes:
        node = ElementTree.SubElement(root, "object")
        ElementTree.SubElement(node, "name").text = box.name
        ElementTree.SubElement(node, "difficult").text = str(int(box.difficult))
        corners = ElementTree.SubElement(node, "bndbox")
        for tag, value, most in (("xmin", box.xmin, item.width), ("ymin", box.ymin, item.height),
                                 ("xmax", box.xmax, item.width), ("ymax", box.ymax, item.height)):
            ElementTree.SubElement(corners, tag).text = f"{min(max(value, 0), most):g}"
    return ElementTree.tostring(root, encoding="unicode")


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def size_of(file: Path) -> Tuple[int, int]:
    """Width and height in pixels."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            return image.size
    except (OSError, UnidentifiedImageError) as error:
        raise InvalidArgument(f"{file}: cannot be read as an image ({error}); remove it, with its boxes") from None

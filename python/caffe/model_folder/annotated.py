"""Databases of images with boxes, made with convert_annoset."""
from __future__ import annotations

import copy
import math
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from .. import InvalidArgument
from .databases import run
from .datasets import Dataset, Halves, ImportOptions, beside, checked_names, evenly

_ORIENTATION = 0x0112  # EXIF tag; from 5 on, width and height are swapped


@dataclass
class Box:
    """A box in pixels of the image; difficult boxes are not scored."""

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
    """A set of images with boxes. Subclasses fill items, and val_items if the set defines its own
    validation images."""

    task = "detection"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.items: Dict[Path, Annotated] = {}
        self.val_items: Dict[Path, Annotated] = {}

    def check(self) -> None:
        """Sets the classes; class 0 is the background. Raises InvalidArgument for invalid boxes, and if
        there are no boxes at all."""
        names = set()
        for item in [*self.items.values(), *self.val_items.values()]:
            for box in item.boxes:
                _check_box(item, box)
                names.add(box.name)
        if not names:
            raise InvalidArgument(f"{self.path}: has {len(self.items)} images and no box; there is nothing to learn")
        self.classes = ["background", *checked_names(self.path, sorted(names))]
        if "background" in names:
            raise InvalidArgument(f"{self.path}: boxes have the class 'background', which is what lies in no box; give it another name, or "
                                  "remove the boxes")

    def images(self) -> List[Path]:
        return list(self.items)

    def sample(self, count: int, folder: Path) -> Dataset:
        part = copy.copy(self)
        part.items = dict(evenly(list(self.items.items()), count))
        part.val_items = dict(evenly(list(self.val_items.items()), count))
        return part

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
        # convert_annoset splits lines at spaces, so it gets links without spaces. The link names become record names.
        links = folder / "links"
        lines = []
        for number, file in enumerate(files):
            item = self.items.get(file) or self.val_items[file]
            name, notes = _word(file.relative_to(self.path), number), f"notes/{half}_{number:06}.xml"
            for place in (links / name, links / notes):
                place.parent.mkdir(parents=True, exist_ok=True)
            (links / name).symlink_to(file.resolve())
            (links / notes).write_text(_xml(item), encoding="utf-8")
            lines.append(f"{name} {notes}\n")
        listing = folder / f"{half}.txt"
        listing.write_text("".join(lines), encoding="utf-8")
        run(options.program.parent / "convert_annoset", "--anno_type=detection", "--label_type=xml",
            f"--label_map_file={map_file.resolve()}", "--encoded", "--shuffle" if half == "train" else "--noshuffle",
            f"--shuffle_seed={options.seed}", "./", listing.resolve(), (folder / half).resolve(), cwd=links)
        listing.unlink()
        shutil.rmtree(links)


def _check_box(item: Annotated, box: Box) -> None:
    where = f"{item.file}: the box of '{box.name}' ({box.xmin:g}, {box.ymin:g}, {box.xmax:g}, {box.ymax:g})"
    if not all(map(math.isfinite, (box.xmin, box.ymin, box.xmax, box.ymax))):
        raise InvalidArgument(f"{where} has corners that are no numbers; mend it, or remove it")
    if not (box.xmin < box.xmax and box.ymin < box.ymax):
        raise InvalidArgument(f"{where} is empty; mend it, or remove it")
    if box.xmax <= 0 or box.ymax <= 0 or box.xmin >= item.width or box.ymin >= item.height:
        raise InvalidArgument(f"{where} lies outside of the image of {item.width}x{item.height}; mend it, or remove it")


def _xml(item: Annotated) -> str:
    """XML in VOC's format, with boxes clipped to the image."""
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


def _word(path: Path, number: int) -> str:
    """A relative path without spaces; if spaces were replaced, the number keeps it unique."""
    word = "_".join(str(path).split())
    return word if word == str(path) else f"{number:06}/{word}"


def size_of(file: Path) -> Tuple[int, int]:
    """Width and height in pixels, after rotation by the image's EXIF orientation."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            return upright_size(image)
    except (OSError, Image.DecompressionBombError) as error:
        raise InvalidArgument(f"{file}: cannot be read as an image ({error}); remove it, with its boxes") from None


def upright_size(image: Any) -> Tuple[int, int]:
    """(width, height) of a PIL image after the rotation that our readers apply."""
    if image.format == "PNG" and "exif" not in image.info:
        return image.size  # getexif() would decode all pixels of a PNG
    is_turned = image.getexif().get(_ORIENTATION, 1) >= 5
    return (image.height, image.width) if is_turned else image.size

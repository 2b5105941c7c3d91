"""Databases of images with boxes, made with convert_annoset."""
from __future__ import annotations

import copy
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from .. import InvalidArgument
from .._counted import counted
from .databases import completed, require_success
from .datasets import FOR_TESTING, FOR_TRAINING, Dataset, Halves, ImportOptions, beside, checked_names, evenly, some
from .pixels import advice_on_size, size_of

_LARGEST_FRACTION = 1.5  # boxes that lie partly outside of the image have fractions above 1


@dataclass
class Box:
    """A box in pixels of the image; difficult boxes are not scored."""

    name: str
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    difficult: bool = False

    @property
    def corners(self) -> Tuple[float, float, float, float]:
        return self.xmin, self.ymin, self.xmax, self.ymax


@dataclass
class Annotated:
    """An image file and its boxes; height and width in pixels. source: the place in a file that says so, for errors."""

    file: Path
    width: int
    height: int
    boxes: List[Box]
    source: str


class Boxes(Dataset):
    """A set of images with boxes. Subclasses fill items, and val_items if the set defines its own
    validation images."""

    task = "detection"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.items: Dict[Path, Annotated] = {}
        self.val_items: Dict[Path, Annotated] = {}

    @property
    def num_shown(self) -> int:
        return len(self.classes) - 1

    def check(self, images: Sequence[Path]) -> None:
        """Sets the classes; class 0 is the background. images: all images of the set, also those without
        boxes. Raises InvalidArgument for invalid boxes, if there are no boxes at all, and if halves have an image in common."""
        common = [file for file in self.items if file in self.val_items]
        if common:
            are = "is" if len(common) == 1 else "are"
            raise InvalidArgument(f"{self.path}: {counted(len(common), 'image')} {are} both for training and for testing, such as {common[0]} (in "
                                  f"{self.items[common[0]].source} and {self.val_items[common[0]].source}); leave each in one of them")
        self.left_out += some([file for file in images if file not in self.items and file not in self.val_items],
                              "image", "not annotated, or in no part that is used")
        self._check_no_fractions()
        names, cut = set(), []
        for item in [*self.items.values(), *self.val_items.values()]:
            for box in item.boxes:
                _check_box(item, box)
                names.add(box.name)
                if _is_cut(item, box):
                    cut.append(item.file)
        if cut:
            self.warnings.append(f"{len(cut)} {'box lies' if len(cut) == 1 else 'boxes lie'} partly outside of the image and "
                                 f"{'is' if len(cut) == 1 else 'are'} cut at its border, such as in {cut[0]}")
        if not names:
            raise InvalidArgument(f"{self.path}: has {counted(len(self.items), 'image')} and no box; there is nothing to learn")
        self.classes = ["background", *checked_names(self.path, sorted(names))]
        if "background" in names:
            raise InvalidArgument(f"{self.path}: boxes have the class 'background', which is what lies in no box; give it another name, or "
                                  "remove the boxes")

    def _check_no_fractions(self) -> None:
        """Raises InvalidArgument if all boxes are as those of other formats: fractions of the image from 0 to 1."""
        boxes = [(item, box) for item in [*self.items.values(), *self.val_items.values()] for box in item.boxes]
        if boxes and all(max(map(abs, box.corners)) <= _LARGEST_FRACTION for _, box in boxes):
            item, box = boxes[0]
            raise InvalidArgument(f"{item.source}: the box of '{box.name}' ({', '.join(f'{corner:g}' for corner in box.corners)}), as all others, "
                                  f"looks like fractions of the image; {self.kind} are in pixels: multiply by the width and the height, here "
                                  f"{item.width} and {item.height}")

    def images(self) -> List[Path]:
        return list(self.items)

    def groups(self) -> Dict[str, List[Path]]:
        return {FOR_TRAINING: list(self.items), FOR_TESTING: list(self.val_items)}

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
        lines, files_of = [], {}
        for number, file in enumerate(files):
            item = self.items.get(file) or self.val_items[file]
            name, notes = _word(file.relative_to(self.path), number), f"notes/{half}_{number:06}.xml"
            for place in (links / name, links / notes):
                place.parent.mkdir(parents=True, exist_ok=True)
            (links / name).symlink_to(file.resolve())
            (links / notes).write_text(_xml(item), encoding="utf-8")
            lines.append(f"{name} {notes}\n")
            files_of[name] = file
        listing = folder / f"{half}.txt"
        listing.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
        done = completed(options.program.parent / "convert_annoset", "--anno_type=detection", "--label_type=xml", "--minloglevel=0",
                         f"--label_map_file={map_file.resolve()}", "--encoded", "--shuffle" if half == "train" else "--noshuffle",
                         f"--shuffle_seed={options.seed}", "./", listing.resolve(), (folder / half).resolve(), cwd=links)
        _require_all(files_of, done.stderr)
        require_success(done)
        listing.unlink()
        shutil.rmtree(links)


def _require_all(files_of: Dict[str, Path], log: str) -> None:
    """Raises InvalidArgument if convert_annoset left out an image. files_of: the users' files by the names in its list."""
    reasons = re.findall(r"\] Left out (?:\./)?(.*)", log)
    if reasons:
        name, _, reason = reasons[0].partition(": ")
        raise InvalidArgument(f"{files_of.get(name, name)}: cannot be read as an image ({reason}); remove it, with its boxes"
                              + (f"; so it is with {len(reasons) - 1} more" if len(reasons) > 1 else ""))


def by_file(items: Iterable[Annotated]) -> Dict[Path, Annotated]:
    """The items by their files. Raises InvalidArgument if two have the same one."""
    found: Dict[Path, Annotated] = {}
    for item in items:
        if item.file in found:
            raise InvalidArgument(f"{item.source}: is for the image {item.file}, as {found[item.file].source}; put all boxes of an image into "
                                  "one of them")
        found[item.file] = item
    return found


def is_set(value: Any) -> bool:
    """A flag such as "difficult" as a number, a boolean or text; None and "" are False. Raises ValueError for other values."""
    flags = {"": False, "none": False, "0": False, "false": False, "1": True, "true": True}
    word = str(value).strip().lower()
    if word not in flags:
        raise ValueError(f"is {value!r}; give 0 or 1")
    return flags[word]


def checked_size(source: str, file: Path, width: int, height: int) -> Tuple[int, int]:
    """Width and height of an image as it is displayed. Raises InvalidArgument if the ones that its boxes come with are others; 0 is
    unknown."""
    size = size_of(file)
    if size == (width, height) or width <= 0 or height <= 0:
        return size
    advice = advice_on_size(file, (width, height), "give the image that the boxes were drawn on, or correct the boxes together with the size")
    raise InvalidArgument(f"{source}: says that {file} is of {width}x{height}, but it is of {size[0]}x{size[1]}; {advice}")


def _check_box(item: Annotated, box: Box) -> None:
    where = f"{item.file}: the box of '{box.name}' ({', '.join(f'{corner:g}' for corner in box.corners)})"
    if not all(map(math.isfinite, box.corners)):
        raise InvalidArgument(f"{where} has corners that are not numbers; fix it, or remove it")
    if not (box.xmin < box.xmax and box.ymin < box.ymax):
        raise InvalidArgument(f"{where} is empty; fix it, or remove it")
    if box.xmax <= 0 or box.ymax <= 0 or box.xmin >= item.width or box.ymin >= item.height:
        raise InvalidArgument(f"{where} lies outside of the image of {item.width}x{item.height}; fix it, or remove it")


def _is_cut(item: Annotated, box: Box) -> bool:
    """True if more than a pixel, which may be rounding, lies outside of the image."""
    return max(-box.xmin, -box.ymin, box.xmax - item.width, box.ymax - item.height) > 1


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

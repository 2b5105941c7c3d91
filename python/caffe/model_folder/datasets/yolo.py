"""YOLO's boxes: folders `images` and `labels`, also within `train` and `val`, or with such folders in them. Each image may have a
text file of the same name with a line `class x y width height` for each box: the centre and the size, as fractions of the image.
Names of classes are in `names` of data.yaml, or in classes.txt."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Optional

from ... import InvalidArgument
from ..annotated import Annotated, Box, Boxes, by_file
from ..files import IMAGES, files_below, files_in, images_below
from ..pixels import size_of
from ..splits import by_half, half_folders, half_of_folder
from . import Dataset, lines_of, shown
from .coco import is_coco, json_files
from .voc import notes_below

KIND = "images with boxes as YOLO has them, in folders 'images' and 'labels'"


def find(path: Path) -> Optional[Dataset]:
    """Sets that also have boxes as COCO or VOC has them are sets of those."""
    if path.is_dir() and (notes_below(path) or any(map(is_coco, json_files(path)))):
        return None
    bases = [base for base in [path, *half_folders(path)] if (base / "images").is_dir()] if path.is_dir() else []
    bases = [base for base in bases if _texts(base) and not images_below(base / "labels")]
    return Yolo(path, bases) if bases else None


def explain(path: Path) -> None:
    texts = [text for base in [path, *half_folders(path)] for text in texts_next_to_images(base)] if path.is_dir() else []
    if texts:
        raise InvalidArgument(f"{texts[0]}: lies next to its image; if these are labels of YOLO, put the images into a folder 'images' and the "
                              "text files into a folder 'labels'")


def texts_next_to_images(folder: Path) -> List[Path]:
    """The text files in a folder that have the name of an image there."""
    return [text for text in files_in(folder, ".txt") if any(text.with_suffix(suffix).is_file() for suffix in IMAGES)]


def _texts(base: Path) -> List[Path]:
    return [file for file in files_below(base / "labels", {".txt"}) if file.name != "classes.txt"]


class Yolo(Boxes):
    kind = "boxes as YOLO has them"

    def __init__(self, path: Path, bases: List[Path]) -> None:
        super().__init__(path)
        names = _names([folder for base in [path, *bases] for folder in (base, base / "labels")])
        images, items = [], []
        for base in bases:
            of_name = {file.relative_to(base / "images").with_suffix(""): file for file in images_below(base / "images")}
            images += of_name.values()
            for text in _texts(base):
                file = of_name.get(text.relative_to(base / "labels").with_suffix(""))
                if file is None:
                    raise InvalidArgument(f"{text}: there is no image of this name in {base / 'images'}; add it, or remove the file")
                items.append(_read(text, file, names))
        train, val, unused = by_half(items, lambda item: half_of_folder(item.file.relative_to(path)))
        self.items, self.val_items = by_file(train), by_file(val)
        self.left_out = [f"{len(unused)} images for testing, because others are for validation"] if unused else []
        self.check([file for file in images if file not in {item.file for item in unused}])


def _read(text: Path, file: Path, names: Dict[int, str]) -> Annotated:
    width, height = size_of(file)
    boxes = []
    for number, line in enumerate(lines_of(text), start=1):
        try:
            label, x, y, w, h = (float(word) for word in line.split())
        except ValueError:
            raise InvalidArgument(f"{text}:{number}: {shown(line)} is not a line 'class x y width height'; polygons and key points are not "
                                  "read") from None
        if label < 0 or not label.is_integer() or names and label not in names or max(abs(x), abs(y), w, h) > 2:
            raise InvalidArgument(f"{text}:{number}: {shown(line)} has the class {label:g} and fractions of the image up to {max(x, y, w, h):g}; "
                                  f"classes are {f'0 to {max(names)}' if names else 'numbers from 0 on'}, fractions 0 to 1")
        boxes.append(Box(names.get(int(label), str(int(label))), (x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height))
    return Annotated(file, width, height, boxes, str(text))


def _names(folders: List[Path]) -> Dict[int, str]:
    """The names by label: of the first data.yaml or classes.txt; {} without one."""
    for folder in folders:
        if (folder / "data.yaml").is_file():
            text = "\n".join(line.partition(" #")[0] for line in (folder / "data.yaml").read_text(encoding="utf-8").splitlines())
            found = re.search(r"^names:\s*(\[[^\]]*\]|\{[^}]*\}|(?:\n[ \t]*(?:-|\d+:)[^\n]*)+)", text, re.MULTILINE)
            if found is None:
                raise InvalidArgument(f"{folder / 'data.yaml'}: has no names of classes; add them, as in names: [cat, dog]")
            words = [word for word in re.split(r"[,\n]", found[1].strip("[]{} \n")) if word.strip()]
            return {label: re.sub(r"^\s*(?:-\s|\d+:)", "", word).strip(" \t'\"") for label, word in enumerate(words)}
        if (folder / "classes.txt").is_file():
            return dict(enumerate(lines_of(folder / "classes.txt")))
    return {}

"""YOLO's boxes, a text file for each image with lines `class x y width height`, are not read: says what to do with them."""
from __future__ import annotations

from pathlib import Path
from typing import List

from ... import InvalidArgument
from ..files import IMAGES, files_below, files_in
from ..splits import half_folders


def find(_path: Path) -> None:
    return None


def explain(path: Path) -> None:
    for base in [path, *half_folders(path)] if path.is_dir() else []:
        texts = texts_next_to_images(base) or (files_below(base / "labels", {".txt"}) if (base / "images").is_dir() else [])
        if texts:
            raise InvalidArgument(f"{texts[0]}: belongs to an image, as labels of YOLO do, which are not read; convert them to COCO's JSON or to "
                                  "VOC's XML files, which annotation programs export")


def texts_next_to_images(folder: Path) -> List[Path]:
    """The text files in a folder that have the name of an image there."""
    return [text for text in files_in(folder, ".txt") if any(text.with_suffix(suffix).is_file() for suffix in IMAGES)]

"""COCO's boxes: a JSON file with images, annotations and categories, beside the images or in
`annotations`. Two files whose names have "train" and "val" in them are the two halves."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from ... import InvalidArgument
from ..annotated import Annotated, Box, Boxes, size_of
from . import Dataset, images_below

KIND = "images with boxes as COCO has them: a JSON file with images, annotations and categories"


def find(path: Path) -> Optional[Dataset]:
    if path.is_file():
        return Coco(path.parent, [path]) if path.suffix.lower() == ".json" else None
    files = [file for file in sorted([*path.glob("*.json"), *path.glob("annotations/*.json")]) if _is_coco(file)]
    return Coco(path, files) if files else None


def _is_coco(file: Path) -> bool:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"images", "annotations", "categories"} <= set(content)


class Coco(Boxes):
    kind = "boxes as COCO has them"

    def __init__(self, path: Path, files: List[Path]) -> None:
        super().__init__(path)
        images = {file.name: file for file in images_below(path)}
        val = [file for file in files if "val" in file.stem or "test" in file.stem]
        train = [file for file in files if file not in val] or files
        if len(train) > 1 or (len(val) > 1 and val != train):
            raise InvalidArgument(f"{path}: has {len(files)} files of COCO's kind ({', '.join(file.name for file in files)}); keep one, or "
                                  "one with 'train' and one with 'val' in its name")
        self.items = _read(train[0], images)
        if val and val != train:
            self.val_items = _read(val[0], images)
        self.check()


def _read(file: Path, images: Dict[str, Path]) -> Dict[Path, Annotated]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        names = {entry["id"]: entry["name"] for entry in content["categories"]}
        items: Dict[Any, Annotated] = {}
        for entry in content["images"]:
            path = images.get(Path(entry["file_name"]).name)
            if path is None:
                raise InvalidArgument(f"{file}: names the image '{entry['file_name']}', which is not there")
            width, height = entry.get("width", 0), entry.get("height", 0)
            if not width or not height:
                width, height = size_of(path)
            items[entry["id"]] = Annotated(path, width, height, [])
        for entry in content["annotations"]:
            xmin, ymin, width, height = entry["bbox"]
            items[entry["image_id"]].boxes.append(Box(str(names[entry["category_id"]]), xmin, ymin, xmin + width, ymin + height,
                                                      bool(entry.get("iscrowd", 0))))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{file}: is not as COCO's files are: {type(error).__name__}: {error}") from None
    return {item.file: item for item in items.values()}

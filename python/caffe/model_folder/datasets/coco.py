"""COCO's boxes: a JSON file with images, annotations and categories, next to the images or in
`annotations`. Two files with "train" and "val" in their names are the two halves."""
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
    files = [file for file in sorted([*path.glob("*.json"), *path.glob("annotations/*.json")]) if is_coco(file)]
    return Coco(path, files) if files else None


def is_coco(file: Path) -> bool:
    """True if the file is JSON with the keys of COCO's files."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"images", "annotations", "categories"} <= set(content)


class Coco(Boxes):
    kind = "boxes as COCO has them"

    def __init__(self, path: Path, files: List[Path]) -> None:
        super().__init__(path)
        images: Dict[str, List[Path]] = {}
        for file in images_below(path):
            images.setdefault(file.name, []).append(file)
        val = [file for file in files if "val" in file.stem or "test" in file.stem]
        train = [file for file in files if file not in val] or files
        if len(train) > 1 or (len(val) > 1 and val != train):
            raise InvalidArgument(f"{path}: has {len(files)} files of COCO's kind ({', '.join(file.name for file in files)}); keep one, or "
                                  "one with 'train' and one with 'val' in its name")
        self.items = _read(train[0], path, images)
        if val and val != train:
            self.val_items = _read(val[0], path, images)
        self.check()


def _read(file: Path, folder: Path, images: Dict[str, List[Path]]) -> Dict[Path, Annotated]:
    place = "the file"
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
        names = {}
        for number, entry in enumerate(content["categories"]):
            place = f"categories[{number}]"
            names[entry["id"]] = str(entry["name"])
        items: Dict[Any, Annotated] = {}
        for number, entry in enumerate(content["images"]):
            place = f"images[{number}]"
            path = _image_of(file, folder, entry["file_name"], images)
            width, height = int(entry.get("width") or 0), int(entry.get("height") or 0)
            if width <= 0 or height <= 0:
                width, height = size_of(path)
            if entry["id"] in items:
                raise InvalidArgument(f"{file}: {place} has the id {entry['id']!r} of another image; give each its own")
            items[entry["id"]] = Annotated(path, width, height, [])
        for number, entry in enumerate(content["annotations"]):
            place = f"annotations[{number}]"
            for field, known in (("image_id", items), ("category_id", names)):
                if entry[field] not in known:
                    raise InvalidArgument(f"{file}: {place} has the {field} {entry[field]!r}, which no {field[:-3]} of the file has")
            xmin, ymin, width, height = map(float, entry["bbox"])
            items[entry["image_id"]].boxes.append(Box(names[entry["category_id"]], xmin, ymin, xmin + width, ymin + height,
                                                      bool(entry.get("iscrowd", 0))))
    except InvalidArgument:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidArgument(f"{file}: is not as COCO's files are: {place}: {type(error).__name__}: {error}") from None
    return {item.file: item for item in items.values()}


def _image_of(file: Path, folder: Path, name: str, images: Dict[str, List[Path]]) -> Path:
    """The image of the set whose path ends with the name."""
    parts = Path(name).parts
    found = images.get(parts[-1], []) if parts else []
    same = [path for path in found if path.relative_to(folder).parts[-len(parts):] == parts] or found
    if not same:
        raise InvalidArgument(f"{file}: names the image '{name}', which is not there")
    if len(same) > 1:
        raise InvalidArgument(f"{file}: names the image '{name}', which could be {same[0]} or {same[1]}; give file_name with its folder")
    return same[0]

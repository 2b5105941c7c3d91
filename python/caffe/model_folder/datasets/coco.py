"""COCO's boxes: a JSON file with images, annotations and categories, next to the images, in
`annotations`, or in `train` and `val`. Files with "train" and "val" in their names, or in such
folders, are the two halves."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ... import InvalidArgument
from ..annotated import Annotated, Box, Boxes, by_file, checked_size, is_set
from ..files import cure_of_unread, files_in, format_of_unread, images_below
from ..splits import by_half, half_folders, half_of_folder, half_of_words
from . import Dataset

KIND = "images with boxes as COCO has them: a JSON file with images, annotations and categories"
_FIELDS = ("images", "annotations", "categories")


def find(path: Path) -> Optional[Dataset]:
    if path.is_file():
        return Coco(path.parent, [path]) if path.suffix.lower() == ".json" else None
    files = [file for file in json_files(path) if is_coco(file)]
    return Coco(path, files) if files else None


def explain(path: Path) -> None:
    for file in json_files(path) if path.is_dir() else []:
        if lacking_in(file):
            raise InvalidArgument(f"{file}: lacks '{lacking_in(file)}', without which it has no boxes as COCO has them; add what is missing")


def lacking_in(file: Path) -> str:
    """The key that a JSON file lacks to be as COCO's; "" if it lacks none, or two."""
    try:
        content = _content(file)
    except InvalidArgument:
        return ""
    lacking = [name for name in _FIELDS if name not in content] if isinstance(content, dict) else []
    return lacking[0] if len(lacking) == 1 else ""


def json_files(path: Path) -> List[Path]:
    """The JSON files of a folder that may describe its images."""
    return [file for place in (path, path / "annotations", *half_folders(path)) for file in files_in(place, ".json")]


def is_coco(file: Path) -> bool:
    """True if the file is JSON with the keys of COCO's files. Raises InvalidArgument if it is not JSON, but has one of the keys."""
    try:
        content = _content(file)
    except InvalidArgument:
        if any(f'"{name}"'.encode() in file.read_bytes() for name in _FIELDS):
            raise
        return False
    return isinstance(content, dict) and set(_FIELDS) <= set(content)


def _content(file: Path) -> Any:
    """The content of a JSON file, in UTF-8, -16 or -32. Raises InvalidArgument if it is not JSON."""
    try:
        return json.loads(file.read_bytes())
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{file}:{error.lineno}:{error.colno}: is not valid JSON ({error.msg}); fix it, or remove it") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{file}: is not text in {error.encoding} ({error.reason} at byte {error.start}); save it as UTF-8") from None


class Coco(Boxes):
    kind = "boxes as COCO has them"

    def __init__(self, path: Path, files: List[Path]) -> None:
        super().__init__(path)
        train, val, unused = by_half(files, lambda file: _half_of(path, file))
        if len(train) > 1 or len(val) > 1:
            raise InvalidArgument(f"{path}: has {len(files)} files of COCO's kind ({', '.join(file.name for file in files)}); keep one, or "
                                  "one with 'train' and one with 'val' in its name")
        images = _Images(path)
        self.items = by_file(_read(train[0], images))
        if val:
            self.val_items = by_file(_read(val[0], images))
        self.left_out = [f"{file}, because {val[0]} is for testing" for file in unused]
        self.check(images.files)


def _half_of(path: Path, file: Path) -> str:
    return half_of_words(file.stem) or half_of_folder(file.relative_to(path))


class _Images:
    """The image files of a set, which JSON files name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = images_below(path)
        self._by_name: Dict[str, List[Path]] = {}
        for file in self.files:
            self._by_name.setdefault(file.name, []).append(file)
        self._folders = {folder.relative_to(path).parts for folder in {file.parent for file in self.files}}

    def find(self, notes: Path, name: str) -> Path:
        """The image whose path ends with the name. If the name has a folder that the set does not have, or if images of several
        folders have the name: an image next to the JSON file, in a folder of its half, or the only one."""
        parts = Path(name).parts
        same = [file for file in self._by_name.get(Path(name).name, [])
                if _ends_with(self._within(file), parts) or not self._has_folder(parts[:-1])]
        half = _half_of(self.path, notes)
        for near in ([file for file in same if file.parent == notes.parent],
                     [file for file in same if half and half_of_folder(file.relative_to(self.path)) == half], same):
            if len(near) == 1:
                return near[0]
        if not same and format_of_unread(Path(name)):
            raise InvalidArgument(f"{notes}: names the image '{name}': {cure_of_unread(Path(name))}; then give the new names in the file")
        if not same:
            raise InvalidArgument(f"{notes}: names the image '{name}', which is not there; add it, or remove it from the file")
        raise InvalidArgument(f"{notes}: names the image '{name}', which could be {same[0]} or {same[1]}; give file_name with its folder")

    def _within(self, file: Path) -> Tuple[str, ...]:
        return file.relative_to(self.path).parts

    def _has_folder(self, parts: Tuple[str, ...]) -> bool:
        return bool(parts) and any(_ends_with(folder, parts) for folder in self._folders)


def _ends_with(parts: Tuple[str, ...], end: Tuple[str, ...]) -> bool:
    return parts[-len(end):] == end


def _read(notes: Path, images: _Images) -> List[Annotated]:
    content = _content(notes)
    if not isinstance(content, dict) or not set(_FIELDS) <= set(content):
        raise InvalidArgument(f"{notes}: is not as COCO's files are: it needs the fields {', '.join(_FIELDS)}")
    names: Dict[Any, str] = {}
    for entry in _entries(notes, content, "categories"):
        key, name = entry.field("id"), entry.field("name")
        if not isinstance(name, str) or not name.strip():
            raise entry.error(f"has the name {name!r}, which is not text; give the class a name")
        if names.setdefault(key, name) != name:
            raise entry.error(f"has the id {key!r} of '{names[key]}', but the name '{name}'; give each category its own id")
    items: Dict[Any, Annotated] = {}
    for entry in _entries(notes, content, "images"):
        key = entry.field("id")
        if key in items:
            raise entry.error(f"has the id {key!r} of another image; give each its own")
        items[key] = _image(entry, notes, images)
    for entry in _entries(notes, content, "annotations"):
        image = entry.known("image_id", items)
        image.boxes.append(_box(entry, entry.known("category_id", names)))
    return list(items.values())


class _Entry:
    """An object of one of the lists, and the words for errors: the file, the list and the position."""

    def __init__(self, place: str, fields: Any) -> None:
        self.place, self.fields = place, fields
        if not isinstance(fields, dict):
            raise self.error(f"is {fields!r}, not an object with fields; fix it, or remove it")

    def error(self, text: str) -> InvalidArgument:
        return InvalidArgument(f"{self.place} {text}")

    def field(self, name: str) -> Any:
        """The value of a field; an id is a number or text."""
        if name not in self.fields:
            raise self.error(f"has no field '{name}'; add it, or remove the entry")
        value = self.fields[name]
        if name.endswith("id") and not isinstance(value, (int, float, str)):
            raise self.error(f"has the {name} {value!r}; give a number")
        return value

    def known(self, name: str, entries: Dict[Any, Any]) -> Any:
        """The entry with the id that a field has."""
        key = self.field(name)
        if key not in entries:
            raise self.error(f"has the {name} {key!r}, which no {name[:-3]} of the file has")
        return entries[key]


def _entries(notes: Path, content: Dict[str, Any], name: str) -> Iterator[_Entry]:
    if not isinstance(content[name], list):
        raise InvalidArgument(f"{notes}: '{name}' is not a list; give a list of objects")
    return (_Entry(f"{notes}: {name}[{number}]", fields) for number, fields in enumerate(content[name]))


def _image(entry: _Entry, notes: Path, images: _Images) -> Annotated:
    name = entry.field("file_name")
    if not isinstance(name, str):
        raise entry.error(f"has the file_name {name!r}, which is not text; give the name of an image")
    path = images.find(notes, name)
    try:
        width, height = (int(entry.fields.get(side) or 0) for side in ("width", "height"))
    except (TypeError, ValueError, OverflowError):
        raise entry.error(f"has the width {entry.fields.get('width')!r} and the height {entry.fields.get('height')!r}; give numbers of "
                          "pixels") from None
    return Annotated(path, *checked_size(entry.place, path, width, height), [], entry.place)


def _box(entry: _Entry, name: str) -> Box:
    corners = entry.field("bbox")
    try:
        xmin, ymin, width, height = map(float, corners)
    except (TypeError, ValueError, OverflowError):
        raise entry.error(f"has the bbox {corners!r}; give four numbers of pixels: left, top, width, height") from None
    try:
        is_crowd = is_set(entry.fields.get("iscrowd"))
    except ValueError as error:
        raise entry.error(f"has an iscrowd that {error}") from None
    return Box(name, xmin, ymin, xmin + width, ymin + height, is_crowd)

"""Files and folders of a set of images, without hidden ones."""
from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Collection, List

IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
# Formats of photographs that are not read, which users take for images all the same.
_UNREAD = {".heic": "HEIC", ".heif": "HEIC", ".hif": "HEIC", ".avif": "AVIF", ".jxl": "JPEG XL", ".jp2": "JPEG 2000", ".dng": "a camera's raw format",
           ".cr2": "a camera's raw format", ".cr3": "a camera's raw format", ".nef": "a camera's raw format", ".arw": "a camera's raw format"}


def is_hidden(name: str) -> bool:
    """True for names that begin with a dot, and for the folder that macOS adds to archives."""
    return name.startswith(".") or name == "__MACOSX"


def files_below(folder: Path, suffixes: Collection[str]) -> List[Path]:
    """The files below a folder with one of the suffixes (in lower case), sorted. Links to folders are not followed."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        found += [Path(place, name) for name in names if not is_hidden(name) and os.path.splitext(name)[1].lower() in suffixes]
    return sorted(file for file in found if file.is_file())


def images_below(folder: Path) -> List[Path]:
    """Image files below a folder, sorted."""
    return files_below(folder, IMAGES)


def unread_below(folder: Path) -> List[Path]:
    """Photographs below a folder in formats that are not read, sorted."""
    return files_below(folder, _UNREAD)


def format_of_unread(file: Path) -> str:
    """The name of the format of a photograph that is not read, such as "HEIC"; "" for other files."""
    return _UNREAD.get(file.suffix.lower(), "")


def cure_of_unread(file: Path) -> str:
    """Advice for an error about such a photograph."""
    return f"{format_of_unread(file)} is not read; convert it to JPEG, as with ImageMagick: mogrify -format jpg {shlex.quote(f'*{file.suffix}')}"


def files_in(folder: Path, suffix: str) -> List[Path]:
    """The files of a folder with a suffix, sorted; none if there is no such folder."""
    return sorted(file for file in folder.glob(f"*{suffix}") if not is_hidden(file.name) and file.is_file())


def folders_in(folder: Path) -> List[Path]:
    """The folders in a folder, sorted."""
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not is_hidden(entry.name))

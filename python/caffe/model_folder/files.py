"""Files and folders of a set of images, without hidden ones."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Collection, List

IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}


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


def files_in(folder: Path, suffix: str) -> List[Path]:
    """The files of a folder with a suffix, sorted; none if there is no such folder."""
    return sorted(file for file in folder.glob(f"*{suffix}") if not is_hidden(file.name) and file.is_file())


def folders_in(folder: Path) -> List[Path]:
    """The folders in a folder, sorted."""
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not is_hidden(entry.name))

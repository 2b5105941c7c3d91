"""Names of folders and files that say which part of a set is for training and which is for testing."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Callable, List, Sequence, Tuple, TypeVar

from .files import folders_in

Item = TypeVar("Item")

_NAMES = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val", "eval": "val", "test": "test",
          "testing": "test"}


def half_named(name: str) -> str:
    """"train", "val" or "test" for names such as Training, valid or test2017; "" for others."""
    return _NAMES.get(name.lower().rstrip("0123456789"), "")


def half_of_folder(relative: Path) -> str:
    """The half that the folders of a file's path name, "" if none does."""
    return next(filter(None, map(half_named, relative.parts[:-1])), "")


def half_of_words(stem: str) -> str:
    """The half that a word of a file's name names, "" if none does."""
    return next(filter(None, map(half_named, re.findall("[a-z]+", stem.lower()))), "")


def half_folders(path: Path) -> List[Path]:
    """The folders in a folder that have the names of halves."""
    return [folder for folder in folders_in(path) if half_named(folder.name)]


def by_half(items: Sequence[Item], half_of: Callable[[Item], str]) -> Tuple[List[Item], List[Item], List[Item]]:
    """(for training, for testing, left out). Items of "val" are for testing, else those of "test"; items of no half are for
    training. If all items would be in one half, there are no halves: all are for training."""
    val, test = ([item for item in items if half_of(item) == half] for half in ("val", "test"))
    train = [item for item in items if half_of(item) not in ("val", "test")]
    if not train or not (val or test):
        return list(items), [], []
    return (train, val, test) if val else (train, test, [])

"""Finds the same photograph under several classes, or for training and for testing."""
from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Dict, List

from .datasets import FOR_TESTING, Dataset


def warnings_of(dataset: Dataset) -> List[str]:
    """A warning for each kind of duplicates in the set, with their number and an example."""
    of_content: Dict[bytes, Dict[str, Path]] = {}
    groups = dataset.groups()
    for group, files in _of_equal_sizes(groups).items():
        for file in files:
            of_content.setdefault(hashlib.sha256(file.read_bytes()).digest(), {}).setdefault(group, file)
    halves, classes = [], []
    for places in of_content.values():
        if len(places) > 1:
            (halves if FOR_TESTING in places else classes).append(places)
    return _warning(halves, "for training and for testing, so that tests are too good") + _warning(classes, "in two classes")


def _warning(found: List[Dict[str, Path]], what: str) -> List[str]:
    if not found:
        return []
    one, other = list(found[0].values())[:2]
    return [f"{len(found)} {'photograph is' if len(found) == 1 else 'photographs are'} {what}, such as {one}, which is {other}; leave one of them"]


def _of_equal_sizes(groups: Dict[str, List[Path]]) -> Dict[str, List[Path]]:
    """The files that exist and whose size a file of another group has; others need not be read."""
    sizes: Dict[int, Dict[str, List[Path]]] = {}
    for group, files in groups.items():
        for file in files:
            if file.is_file():
                sizes.setdefault(file.stat().st_size, {}).setdefault(group, []).append(file)
    found: Dict[str, List[Path]] = {}
    for members in sizes.values():
        if len(members) > 1:
            for group, files in members.items():
                found.setdefault(group, []).extend(files)
    return found

"""A text file with lines `path label`, with paths relative to its folder."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Set

from ... import InvalidArgument
from ..._counted import counted
from ..databases import import_split
from ..files import IMAGES, format_of_unread
from . import Dataset, Halves, ImportOptions, checked_names, evenly, lines_of, shown

KIND = "a list, a text file with lines 'path label'"
_MOST_CLASSES = 1_000_000
_ARCHIVES = {".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar"}
_BEGINNING = 4096  # bytes of a file that tell if it is text


def find(path: Path) -> Optional[Dataset]:
    return ImageList(path) if path.is_file() and path.suffix.lower() != ".json" else None


def _require_text(path: Path) -> None:
    """Raises InvalidArgument for files that users give instead of a folder: an image, an archive, or another binary file."""
    if path.suffix.lower() in IMAGES or format_of_unread(path):
        raise InvalidArgument(f"{path}: is an image; give the folder of the images")
    if path.suffix.lower() in _ARCHIVES:
        raise InvalidArgument(f"{path}: is an archive; unpack it, and give the folder that it holds")
    with path.open("rb") as file:
        if b"\0" in file.read(_BEGINNING):
            raise InvalidArgument(f"{path}: is not a text file; give the folder of the images, or {KIND}")


class ImageList(Dataset):
    kind = "a list of images"
    task = "classification"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._paths: List[Path] = []
        self._written: List[Path] = []
        self._labels: List[int] = []
        _require_text(path)
        for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines(), start=1):
            if not line.strip():
                continue
            name, _, label = line.strip().rpartition(" ")
            if not name or not (label.isascii() and label.isdigit()):
                raise InvalidArgument(f"{path}:{number}: {shown(line.strip())} is not a line 'path label'; labels are numbers from 0 on")
            if len(label) > 9 or int(label) >= _MOST_CLASSES:
                raise InvalidArgument(f"{path}:{number}: the label is {label}; labels are numbers of classes, from 0 on without gaps, and "
                                      f"below {_MOST_CLASSES}")
            self._written.append(Path(name.strip()))
            self._paths.append(path.parent / self._written[-1])
            self._labels.append(int(label))
        labels = set(self._labels)
        if len(labels) < 2:
            raise InvalidArgument(f"{path}: has {counted(len(labels), 'class', 'classes')}; there is nothing to tell apart: list images of "
                                  "two classes or more")
        absolute = sum(name.is_absolute() for name in self._written)
        if 0 < absolute < len(self._written):
            begin = "begins" if absolute == 1 else "begin"
            raise InvalidArgument(f"{path}: {absolute} of {len(self._written)} paths {begin} with a slash; write all of them so, or none")
        self._check_no_gaps(labels)
        self.classes = self._names(max(labels) + 1)

    def _check_no_gaps(self, labels: Set[int]) -> None:
        missing = next(label for label in range(len(labels) + 1) if label not in labels)
        if missing < max(labels):
            raise InvalidArgument(f"{self.path}: has {len(labels)} labels from {min(labels)} to {max(labels)}, but no line has the label {missing}; "
                                  "number the classes from 0 on without gaps")

    def _names(self, count: int) -> List[str]:
        """Names from a file classes.txt or labels.txt next to the list; else the labels."""
        for name in ("classes.txt", "labels.txt"):
            file = self.path.parent / name
            if file.is_file():
                lines = checked_names(file, lines_of(file))
                if len(lines) != count:
                    raise InvalidArgument(f"{file}: has {len(lines)} names, but the labels of {self.path.name} go to {count - 1}; give "
                                          f"{count} names, or remove the file")
                return lines
        return [str(label) for label in range(count)]

    def images(self) -> List[Path]:
        return self._paths

    def groups(self) -> Dict[str, List[Path]]:
        found: Dict[str, List[Path]] = {}
        for file, label in zip(self._paths, self._labels):
            found.setdefault(f"of the class '{self.classes[label]}'", []).append(file)
        return found

    def sample(self, count: int, folder: Path) -> Dataset:
        by_label: Dict[int, List[Path]] = {}
        for file, label in zip(self._paths, self._labels):
            by_label.setdefault(label, []).append(file)
        lines = [f"{file.resolve()} {label}\n" for label, files in sorted(by_label.items())
                 for file in evenly(files, max(2, count // len(by_label)))]
        (folder / "list.txt").write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
        (folder / "classes.txt").write_text("".join(f"{name}\n" for name in self.classes), encoding="utf-8")
        return ImageList(folder / "list.txt")

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        # Absolute paths are used unchanged; others are relative to the list's folder.
        root = ["--root=/"] if all(path.is_absolute() for path in self._written) else []
        halves = import_split(self, options, folder, self.path, *root, f"--resize={options.side}x{options.side}")
        for half in ("train", "val"):
            (folder / half / "labels.txt").write_text("".join(f"{name}\n" for name in self.classes), encoding="utf-8")
        return halves

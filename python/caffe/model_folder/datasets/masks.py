"""Pairs of images and masks: `images` and `masks` with files of equal names (or VOC's `JPEGImages`
and `SegmentationClass`). Each pixel of a mask is a class number, 255 for none; classes.txt or
labels.txt has the class names."""
from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from ... import InvalidArgument
from ..files import images_below
from ..pixels import size_of
from . import Dataset, Halves, ImportOptions, beside, checked_names, evenly, lines_of

KIND = "pairs of images and masks, in folders 'images' and 'masks'"
IGNORED = 255
_FOLDERS = (("images", "masks"), ("JPEGImages", "SegmentationClass"), ("images", "labels"))


def find(path: Path) -> Optional[Dataset]:
    for images, masks in _FOLDERS:
        if (path / images).is_dir() and (path / masks).is_dir() and images_below(path / masks):
            return MaskPairs(path, path / images, path / masks)
    return None


class MaskPairs(Dataset):
    kind = "images and masks"
    task = "segmentation"

    def __init__(self, path: Path, images: Path, masks: Path) -> None:
        super().__init__(path)
        files = {str(file.relative_to(images).with_suffix("")): file for file in images_below(images)}
        others = {str(file.relative_to(masks).with_suffix("")): file for file in images_below(masks)}
        pairs = {name: (files[name], others[name]) for name in sorted(files) if name in others}
        without = sorted(set(others) - set(files))
        if without:
            raise InvalidArgument(f"{others[without[0]]}: there is no image of this name in {images}; add it, or remove the mask")
        if len(pairs) < 2:
            raise InvalidArgument(f"{path}: has {len(pairs)} images with a mask of the same name; give two or more")
        self.without_mask = len(files) - len(pairs)
        self._pairs: Dict[Path, Path] = dict(pairs.values())
        values = set()
        for file, mask in self._pairs.items():
            values |= _values(file, mask)
        values.discard(IGNORED)
        if len(values) < 2:
            raise InvalidArgument(f"{masks}: all pixels have the class {', '.join(map(str, values)) or IGNORED}; there is nothing to tell "
                                  f"apart: classes are numbers from 0 to {IGNORED - 1}, and {IGNORED} (white) is none")
        self.classes = self._names(max(values) + 1)

    def _names(self, count: int) -> List[str]:
        for name in ("classes.txt", "labels.txt"):
            file = self.path / name
            if file.is_file():
                lines = checked_names(file, lines_of(file))
                if len(lines) < count:
                    raise InvalidArgument(f"{file}: has {len(lines)} names, but the masks have classes up to {count - 1}")
                return lines
        return [str(label) for label in range(count)]

    def images(self) -> List[Path]:
        return list(self._pairs)

    def sample(self, count: int, folder: Path) -> Dataset:
        part = copy.copy(self)
        part._pairs = dict(evenly(list(self._pairs.items()), count))
        return part

    def import_into(self, folder: Path, options: ImportOptions) -> Halves:
        halves = beside(list(self._pairs), options.seed, options.val)
        sums, count = [0.0, 0.0, 0.0], 0
        for half, files in zip(("train", "val"), halves):
            lines = []
            for number, file in enumerate(files):
                image, mask = _resized(file, self._pairs[file], options.side)
                names = [folder / half / kind / f"{number:06}.png" for kind in ("images", "masks")]
                for name, picture in zip(names, (image, mask)):
                    name.parent.mkdir(parents=True, exist_ok=True)
                    picture.save(name)
                lines.append(f"{half}/images/{number:06}.png {half}/masks/{number:06}.png\n")
                if half == "train":
                    sums = [total + mean for total, mean in zip(sums, _means(image))]
                    count += 1
            (folder / f"{half}.txt").write_text("".join(lines), encoding="utf-8")
        (folder / "labels.txt").write_text("".join(f"{name}\n" for name in self.classes), encoding="utf-8")
        return Halves("data/train.txt", "data/val.txt", len(halves[0]), len(halves[1]),
                      mean=tuple(round(total / count, 1) for total in sums), more={"ignore": str(IGNORED)})


def _values(file: Path, mask: Path) -> set:
    """The classes in a mask. Raises InvalidArgument if its size differs from the image's, or if it is not a mask."""
    width, height = size_of(file)
    with _opened(mask) as labels:
        if (width, height) != labels.size:
            raise InvalidArgument(f"{mask}: is of {labels.width}x{labels.height}, but its image of {width}x{height}; a mask "
                                  "has a class for each pixel")
        return set(np.unique(_classes(mask, labels)).tolist())


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Opens an image file. Raises InvalidArgument if it cannot be read, also while it is used."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            yield image
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:  # Pillow raises SyntaxError for broken PNGs
        raise InvalidArgument(f"{file}: cannot be read as an image ({error}); remove the pair") from None


def _classes(mask: Path, labels: Any) -> np.ndarray:
    """The class of each pixel, uint8: a gray value or a palette index. Raises InvalidArgument if the image is neither, or if
    a value exceeds a byte."""
    if labels.mode not in ("L", "P", "1", "I", "I;16"):
        raise InvalidArgument(f"{mask}: is a colour image ({labels.mode}); a mask has the number of a class in each pixel: save it "
                              "gray, or with a palette")
    classes = np.asarray(labels)
    if classes.max(initial=0) > IGNORED or classes.min(initial=0) < 0:
        raise InvalidArgument(f"{mask}: a pixel has the class {classes.max() if classes.max() > IGNORED else classes.min()}; classes are "
                              f"numbers from 0 to {IGNORED - 1}, and {IGNORED} is none")
    return classes.astype(np.uint8)


def _resized(file: Path, mask: Path, side: int) -> Tuple:
    """Image and mask, resized to side x side pixels; classes of the mask are not interpolated."""
    from PIL import Image, ImageOps

    with _opened(file) as image:
        picture = ImageOps.exif_transpose(image).convert("RGB").resize((side, side), Image.BILINEAR)
    with _opened(mask) as labels:
        return picture, Image.fromarray(_classes(mask, labels)).resize((side, side), Image.NEAREST)


def _means(image) -> Tuple[float, ...]:
    """Means of blue, green and red."""
    from PIL import ImageStat

    return tuple(reversed(ImageStat.Stat(image).mean))

"""Sizes and pixels of images and masks, read with Pillow."""
from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Iterator, Set, Tuple

import numpy as np

from .. import InvalidArgument
from .._packages import need

IGNORED = 255
_ORIENTATION = 0x0112  # EXIF tag; from 5 on, width and height are swapped
_GRAY_OF_16_BITS = ("I", "I;16", "I;16B", "I;16L")  # Pillow reads PNG as I


def size_of(file: Path) -> Tuple[int, int]:
    """Width and height in pixels, after rotation by the image's EXIF orientation."""
    with _opened(file) as image:
        return _upright_size(image)


def advice_on_size(file: Path, size: Tuple[int, int], usual: str) -> str:
    """Advice for an error: boxes or a mask are for an image of `size`, which is not the displayed one."""
    with _opened(file) as image:
        is_unturned = _swaps_sides(image) and image.size == size
    return ("the image's EXIF orientation swaps width and height, and these are for the picture without it: remove the orientation "
            "(exiftool -Orientation= FILE)" if is_unturned else usual)


def classes_of(file: Path, mask: Path) -> Set[int]:
    """The numbers in the mask of an image. Raises InvalidArgument if its size differs from the image's, or if it is not a mask."""
    width, height = size_of(file)
    with _opened(mask) as labels:
        if (width, height) != labels.size:
            advice = advice_on_size(file, labels.size, "a mask has a class for each pixel")
            raise InvalidArgument(f"{mask}: is of {labels.width}x{labels.height}, but its image of {width}x{height}; {advice}")
        return set(np.unique(_classes(mask, labels)).tolist())


def resized(file: Path, mask: Path, side: int, white: int) -> Tuple[Any, Any]:
    """Image and mask, resized to side x side pixels; classes of the mask are not interpolated. white: the class of pixels that are 255."""
    images = need("PIL.Image")

    with _opened(file) as image:
        picture = _colours(file, _upright(image)).resize((side, side), images.BILINEAR)
    with _opened(mask) as labels:
        classes = _classes(mask, labels)
    classes[classes == IGNORED] = white
    return picture, images.fromarray(classes).resize((side, side), images.NEAREST)


def means(image: Any) -> Tuple[float, ...]:
    """Means of blue, green and red."""
    return tuple(reversed(need("PIL.ImageStat").Stat(image).mean))


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Opens an image file. Raises InvalidArgument if it cannot be read, also while it is used."""
    images = need("PIL.Image")
    try:
        with images.open(file) as image:
            yield image
    except (OSError, SyntaxError, images.DecompressionBombError) as error:  # Pillow raises SyntaxError for broken PNGs
        raise InvalidArgument(f"{file}: cannot be read as an image ({error}); remove it, with its mask or boxes") from None


def _upright_size(image: Any) -> Tuple[int, int]:
    """(width, height) of a PIL image after the rotation that our readers apply."""
    if image.format == "TIFF":
        return _upright(image).size
    return (image.height, image.width) if _swaps_sides(image) else image.size


def _upright(image: Any) -> Any:
    """The image as displayed. Pillow turns a TIFF itself when it reads the pixels."""
    if image.format == "TIFF":
        image.load()
        return image
    return need("PIL.ImageOps").exif_transpose(image)


def _swaps_sides(image: Any) -> bool:
    if image.format == "PNG" and "exif" not in image.info:
        return False  # getexif() would decode all pixels of a PNG
    return image.getexif().get(_ORIENTATION, 1) >= 5


def _colours(file: Path, image: Any) -> Any:
    """The image as RGB. Of 16 bits the upper 8 are used, as by our C++ readers."""
    images = need("PIL.Image")

    if image.mode in _GRAY_OF_16_BITS:
        pixels = np.asarray(image)
        if pixels.min(initial=0) >= 0 and pixels.max(initial=0) < 1 << 16:
            return images.fromarray((pixels >> 8).astype(np.uint8)).convert("RGB")
    elif image.mode != "F":
        return image.convert("RGB")
    raise InvalidArgument(f"{file}: has pixels of 32 bits ({image.mode}), which have no usual range; save it with 8 or 16 bits")


def _classes(mask: Path, labels: Any) -> np.ndarray:
    """The class of each pixel, uint8: a gray value or a palette index. Raises InvalidArgument if the image is neither, or if
    a value exceeds a byte."""
    if labels.format == "JPEG":
        raise InvalidArgument(f"{mask}: is a JPEG, whose compression changes the numbers of classes; save masks as PNG")
    if labels.mode not in ("L", "P", "1", *_GRAY_OF_16_BITS):
        raise InvalidArgument(f"{mask}: is a colour image ({labels.mode}); a mask has the number of a class in each pixel: save it "
                              "gray, or with a palette")
    classes = np.asarray(labels)
    if classes.max(initial=0) > IGNORED or classes.min(initial=0) < 0:
        raise InvalidArgument(f"{mask}: a pixel has the class {classes.max() if classes.max() > IGNORED else classes.min()}; classes are "
                              f"numbers from 0 to {IGNORED - 1}, and {IGNORED} is none")
    return classes.astype(np.uint8)

"""Sizes of images, read with Pillow."""
from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Iterator, Tuple

from .. import InvalidArgument

_ORIENTATION = 0x0112  # EXIF tag; from 5 on, width and height are swapped


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


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Opens an image file. Raises InvalidArgument if it cannot be read, also while it is used."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            yield image
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:  # Pillow raises SyntaxError for broken PNGs
        raise InvalidArgument(f"{file}: cannot be read as an image ({error}); remove it, with its mask or boxes") from None


def _upright_size(image: Any) -> Tuple[int, int]:
    """(width, height) of a PIL image after the rotation that our readers apply."""
    return (image.height, image.width) if _swaps_sides(image) else image.size


def _swaps_sides(image: Any) -> bool:
    if image.format == "PNG" and "exif" not in image.info:
        return False  # getexif() would decode all pixels of a PNG
    return image.getexif().get(_ORIENTATION, 1) >= 5

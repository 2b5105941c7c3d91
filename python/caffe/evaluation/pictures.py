"""Small pictures for pages: data URIs, and boxes and masks drawn on images."""
from __future__ import annotations

import base64
import colorsys
import io
from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy as np

from .._packages import need

LARGEST = 320  # longer side of a picture, in pixels
_SMALL = 96  # smaller pictures are enlarged without smoothing


class Outline(NamedTuple):
    """box: (xmin, ymin, xmax, ymax) as fractions of the image. colour: red, green, blue. is_dashed: for
    objects that were not found."""

    box: Sequence[float]
    text: str
    colour: Tuple[int, int, int]
    is_dashed: bool = False


def data_uri(image: Any) -> str:
    """A PIL image as a data URI: JPEG, or PNG if it is small."""
    memory = io.BytesIO()
    if max(image.size) <= 2 * _SMALL:
        image.save(memory, "PNG", optimize=True)
        kind = "png"
    else:
        image.save(memory, "JPEG", quality=82)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(memory.getvalue()).decode()}"


def sized(pixels: np.ndarray, largest: int = LARGEST, least: int = _SMALL) -> Any:
    """A PIL image of (H, W, 3) bytes, shrunk if it is too large, enlarged by a whole factor if too small."""
    images = need("PIL.Image")
    image = images.fromarray(pixels)
    longest = max(image.size)
    if longest > largest:
        side = tuple(max(1, round(extent * largest / longest)) for extent in image.size)
        return image.resize(side, images.BILINEAR)
    factor = -(-least // longest)
    return image if factor <= 1 else image.resize((image.width * factor, image.height * factor), images.NEAREST)


def with_outlines(pixels: np.ndarray, outlines: Sequence[Outline]) -> Any:
    """The image with outlined boxes and their texts."""
    drawing, fonts = need("PIL.ImageDraw"), need("PIL.ImageFont")
    image = sized(pixels, least=LARGEST - 64)
    draw, font = drawing.Draw(image), fonts.load_default()
    for outline in outlines:
        left, top, right, bottom = (float(np.clip(place, 0, 1)) * extent for place, extent in
                                    zip(outline.box, (image.width, image.height) * 2))
        right, bottom = max(right, left), max(bottom, top)
        _rectangle(draw, (left, top, right, bottom), outline)
        if outline.text:
            # Pillow's default font has only the first 256 characters.
            text = outline.text.encode("latin-1", "replace").decode("latin-1")
            area = draw.textbbox((left + 2, max(top - 11, 0)), text, font=font)
            draw.rectangle(area, fill=outline.colour)
            draw.text(area[:2], text, fill=(255, 255, 255), font=font)
    return image


def _rectangle(draw: Any, box: Tuple[float, ...], outline: Outline) -> None:
    left, top, right, bottom = box
    if not outline.is_dashed:
        draw.rectangle(box, outline=outline.colour, width=2)
        return
    for begin in np.arange(left, right, 8):
        for y in (top, bottom):
            draw.line((begin, y, min(begin + 4, right), y), fill=outline.colour, width=2)
    for begin in np.arange(top, bottom, 8):
        for x in (left, right):
            draw.line((x, begin, x, min(begin + 4, bottom)), fill=outline.colour, width=2)


def colours(count: int) -> List[Tuple[int, int, int]]:
    """Distinguishable colours for classes, as far as possible; class 0 is gray."""
    found = [(90, 90, 90)]
    for k in range(1, count):
        part = colorsys.hsv_to_rgb(k * 0.618034 % 1, 0.55 + 0.4 * (k % 2), 0.95 - 0.25 * (k // 2 % 2))
        found.append(tuple(round(255 * value) for value in part))
    return found


def with_mask(pixels: np.ndarray, mask: np.ndarray, palette: Sequence[Tuple[int, int, int]], share: float = 0.6) -> np.ndarray:
    """The image in gray, blended with the colour of each pixel's class; `share` is the colour's weight.
    Pixels whose class is not in the palette keep their own colours.

    pixels: (H, W, 3), uint8. mask: (H, W), whole numbers. Returns (H, W, 3), uint8.
    """
    covered = pixels.astype(np.float32)
    has_class = np.isin(mask, np.arange(len(palette)))
    covered[has_class] = (covered[has_class] @ np.array([0.299, 0.587, 0.114], np.float32))[:, None]
    for label, colour in enumerate(palette):
        covered[mask == label] = (1 - share) * covered[mask == label] + share * np.array(colour, np.float32)
    return np.rint(covered).astype(np.uint8)


def side_by_side(parts: Sequence[np.ndarray], gap: int = 4) -> np.ndarray:
    """Images of equal height in a row, with white gaps between them."""
    height = parts[0].shape[0]
    white = np.full((height, gap, 3), 255, np.uint8)
    row: List[np.ndarray] = []
    for part in parts:
        row += [part, white]
    return np.concatenate(row[:-1], axis=1)

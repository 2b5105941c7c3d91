#!/usr/bin/env python3
"""Draws a landscape, content.png, and strokes of paint, style.png, into this folder.

    make_pictures.py [--seed 1]      needs NumPy and Pillow
"""
import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

FOLDER = Path(__file__).parent
SIDE = 256  # drawn in this size, and then made half as large, which smooths edges


def landscape():
    """A house and a tree before hills, below the sun."""
    shades = np.linspace(0, 1, SIDE)[:, None, None]
    sky = np.array([90, 150, 220]) * (1 - shades) + np.array([225, 235, 240]) * shades
    image = Image.fromarray(np.broadcast_to(sky, (SIDE, SIDE, 3)).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    draw.ellipse((185, 20, 230, 65), fill=(250, 215, 90))
    at = np.arange(SIDE)
    for height, width, colour in ((150, 90, (110, 140, 160)), (180, 60, (100, 150, 80)), (205, 140, (70, 120, 50))):
        top = height - 22 * np.sin(at / width * 2 + height)
        draw.polygon([*zip(at.tolist(), top.tolist()), (SIDE, SIDE), (0, SIDE)], fill=colour)
    draw.rectangle((60, 130, 130, 210), fill=(200, 175, 140))
    draw.polygon([(48, 132), (95, 85), (142, 132)], fill=(150, 60, 45))
    draw.rectangle((85, 165, 106, 210), fill=(85, 55, 40))
    for left in (67, 112):
        draw.rectangle((left, 145, left + 12, 158), fill=(70, 100, 140))
    draw.rectangle((192, 150, 202, 215), fill=(95, 65, 40))
    draw.ellipse((165, 90, 230, 165), fill=(45, 95, 45))
    return image


def strokes(random):
    """Thousands of short strokes that follow eddies, in a few colours."""
    image = Image.new("RGB", (SIDE, SIDE), (20, 40, 100))
    draw = ImageDraw.Draw(image)
    palette = np.array([[25, 50, 120], [45, 90, 170], [110, 160, 205], [235, 200, 80], [250, 235, 170], [15, 25, 60]])
    eddies = random.uniform(0, SIDE, (5, 2))
    for _ in range(6000):
        place = random.uniform(0, SIDE, 2)
        away = place - eddies
        near = np.exp(-(away ** 2).sum(1) / 3000)[:, None]
        turn = (np.stack([-away[:, 1], away[:, 0]], 1) * near).sum(0) + [6, 2]
        step = turn / np.linalg.norm(turn) * random.uniform(6, 12)
        shade = 3 * near.max() * random.uniform(0.5, 1.5) + random.uniform(0, 1.5)
        colour = palette[min(int(shade), 4)] + random.normal(0, 10, 3)
        draw.line((*(place - step), *(place + step)), fill=tuple(int(value) for value in np.clip(colour, 0, 255)), width=random.integers(3, 6))
    return image


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name, image in (("content", landscape()), ("style", strokes(np.random.default_rng(options.seed)))):
        image.resize((SIDE // 2, SIDE // 2), Image.LANCZOS).save(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Renders digits as a substitute for MNIST without a network: same files, same format.

  scripts/make_digits.py FOLDER [--train 12000] [--test 2000] [--sheet FILE.png]

Each digit is a few strokes. For each image, one of several ways to write the digit is bent, slanted, rotated, scaled
and shifted, drawn with a pen of random thickness, and gets noise. The same arguments give the same images. Needs
Python 3 and NumPy.
"""
import argparse
import pathlib
import struct
import zlib

import numpy as np

SIZE = 28
PEN_STEPS = 28  # segments per digit, to which every way of writing is resampled


def line(*points):
    return np.array(points, float)


def arc(x, y, rx, ry, start, end, steps=14):
    """An arc from angle start to end in degrees: 0 points to the right and 90 down (the y axis points down)."""
    angles = np.radians(np.linspace(start, end, steps))
    return np.stack([x + rx * np.cos(angles), y + ry * np.sin(angles)], axis=1)


def join(*strokes):
    return np.concatenate(strokes)


# Ways to write each digit: lists of strokes, each a polyline in the unit square.
WAYS = [
    [[arc(.5, .5, .30, .45, -90, 270, 28)],
     [arc(.5, .5, .38, .42, -70, 290, 28)],
     [arc(.5, .5, .24, .46, -110, 255, 28)]],
    [[line((.5, .05), (.5, .95))],
     [line((.32, .22), (.54, .05), (.54, .95))],
     [line((.34, .24), (.54, .05), (.54, .95)), line((.32, .95), (.76, .95))]],
    [[join(arc(.5, .30, .28, .25, -170, 40), line((.2, .95), (.82, .95)))],
     [join(arc(.48, .28, .28, .23, -160, 60), arc(.32, .84, .13, .09, -60, -330, 12), line((.5, .92), (.85, .90)))],
     [join(line((.2, .10), (.74, .08)), arc(.46, .30, .32, .22, -30, 50, 8), line((.18, .94), (.84, .93)))]],
    [[join(arc(.46, .28, .28, .23, -150, 90), arc(.46, .72, .32, .23, -90, 150))],
     [join(line((.2, .07), (.74, .07), (.44, .42)), arc(.46, .68, .31, .26, -90, 150))],
     [join(arc(.48, .29, .24, .22, -170, 75, 12), arc(.48, .71, .30, .24, -75, 160, 12))]],
    [[line((.62, .95), (.62, .05), (.14, .66), (.88, .66))],
     [line((.26, .05), (.20, .55), (.80, .55)), line((.70, .10), (.66, .95))],
     [join(line((.24, .06)), arc(.42, .42, .24, .14, 180, 60, 8), line((.72, .48))), line((.74, .05), (.62, .95))]],
    [[join(line((.80, .06), (.30, .06), (.26, .45)), arc(.46, .67, .32, .27, -120, 140))],
     [join(line((.30, .08), (.28, .46)), arc(.44, .68, .32, .26, -110, 130)), line((.30, .08), (.84, .06))],
     [join(line((.76, .10), (.38, .12), (.26, .44)), arc(.42, .66, .34, .24, -90, 110), line((.16, .90)))]],
    [[join(arc(.86, .60, .62, .55, -95, -175, 10), arc(.5, .70, .26, .24, 180, -180, 20))],
     [join(line((.66, .05), (.30, .50)), arc(.5, .70, .24, .25, 200, -160, 22))],
     [join(arc(.70, .50, .48, .45, -80, -180, 8), arc(.48, .68, .27, .26, 150, -200, 22))]],
    [[line((.16, .08), (.82, .08), (.42, .95))],
     [line((.16, .08), (.82, .08), (.42, .95)), line((.34, .50), (.74, .50))],
     [join(line((.18, .20), (.22, .08), (.80, .08)), arc(1.0, .95, .50, .80, -115, -178, 10))]],
    [[arc(.5, .27, .23, .22, 90, 450, 18), arc(.5, .72, .29, .24, -90, 270, 20)],
     [join(arc(.5, .28, .25, .22, -40, -270, 12), arc(.5, .73, .28, .23, -90, 180, 12),
           arc(.5, .73, .28, .23, 180, 230, 4), line((.70, .16)))],
     [arc(.48, .29, .20, .24, 90, 450, 18), arc(.5, .74, .27, .21, -90, 270, 20)]],
    [[join(arc(.48, .30, .26, .25, 0, -360, 20), line((.74, .30), (.66, .95)))],
     [join(arc(.46, .30, .27, .24, 10, -350, 20), arc(.30, .45, .44, .50, -10, 80, 10))],
     [arc(.48, .30, .25, .24, 0, 360, 20), line((.74, .10), (.72, .95))]],
]


def resample(strokes):
    """PEN_STEPS segments of about equal length: arrays (PEN_STEPS, 2) of start and end points."""
    lengths = [np.linalg.norm(np.diff(stroke, axis=0), axis=1) for stroke in strokes]
    total = sum(length.sum() for length in lengths)
    shares = [max(1, round(PEN_STEPS * length.sum() / total)) for length in lengths]
    shares[int(np.argmax(shares))] += PEN_STEPS - sum(shares)
    begins, ends = [], []
    for stroke, length, share in zip(strokes, lengths, shares):
        at = np.concatenate([[0], np.cumsum(length)])
        wanted = np.linspace(0, at[-1], share + 1)
        points = np.stack([np.interp(wanted, at, stroke[:, k]) for k in (0, 1)], axis=1)
        begins.append(points[:-1])
        ends.append(points[1:])
    return np.concatenate(begins), np.concatenate(ends)


# Axes: digit, way, start or end, segment, x or y.
TABLE = np.array([[resample(way) for way in ways] for ways in WAYS])


def pose(random, count):
    """Random parameters per image, with which place() moves points."""
    turn = random.normal(0, .13, count)
    slant = random.normal(.08, .16, count)
    width = 19 * np.clip(random.normal(.82, .12, count), .45, 1.15)
    height = 19 * np.clip(random.normal(1, .09, count), .7, 1.2)
    shift = random.normal(0, 1.3, (count, 2))
    bend = random.normal(0, .045, (count, 2, 2, 2))      # wave amplitude per axis: along x and y, sine and cosine
    wave = random.uniform(1.5, 4.5, (count, 2, 2))
    return turn, slant, width, height, shift, bend, wave


def place(points, posed):
    """Maps points (count, n, 2) from the unit square to pixel coordinates."""
    turn, slant, width, height, shift, bend, wave = posed
    moved = points.copy()
    for axis in (0, 1):
        for along in (0, 1):
            angle = wave[:, axis, along, None] * points[:, :, along]
            moved[:, :, axis] += bend[:, axis, along, 0, None] * np.sin(angle)
            moved[:, :, axis] += bend[:, axis, along, 1, None] * np.cos(angle)
    x = (moved[:, :, 0] - .5) * width[:, None]
    y = (moved[:, :, 1] - .5) * height[:, None]
    x = x - slant[:, None] * y
    cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
    centre = (SIZE - 1) / 2
    return np.stack([cos * x - sin * y + centre + shift[:, :1], sin * x + cos * y + centre + shift[:, 1:]], axis=2)


def distance(begin, end):
    """Distance of every pixel from the nearest segment: (count, SIZE * SIZE)."""
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), axis=-1).reshape(-1, 2).astype(np.float32)
    nearest = np.full((len(begin), SIZE * SIZE), np.inf, np.float32)
    for k in range(begin.shape[1]):
        along = (end[:, k] - begin[:, k])[:, None].astype(np.float32)
        out = grid[None] - begin[:, k, None].astype(np.float32)
        t = np.clip((out * along).sum(2) / np.maximum((along * along).sum(2), 1e-6), 0, 1)
        away = out - t[:, :, None] * along
        nearest = np.minimum(nearest, (away * away).sum(2))
    return np.sqrt(nearest)


def render(random, labels):
    count = len(labels)
    ways = random.integers(0, TABLE.shape[1], count)
    begin, end = TABLE[labels, ways, 0], TABLE[labels, ways, 1]
    posed = pose(random, count)
    thickness = np.clip(random.normal(1.25, .35, (count, 1)), .6, 2.3)
    softness = random.uniform(.7, 1.3, (count, 1))
    ink = np.clip((thickness - distance(place(begin, posed), place(end, posed))) / softness + .5, 0, 1)
    ink *= random.uniform(.75, 1, (count, 1))
    noise = random.normal(0, 1, ink.shape) * random.uniform(0, .09, (count, 1))
    specks = (random.random(ink.shape) < .004) * random.random(ink.shape) * .7
    return np.round(255 * np.clip(ink + noise + specks, 0, 1)).astype(np.uint8).reshape(count, SIZE, SIZE)


def make(seed, count, block=500):
    random = np.random.Generator(np.random.PCG64(seed))
    labels = random.permutation(np.arange(count) % 10)
    images = [render(random, labels[i:i + block]) for i in range(0, count, block)]
    return np.concatenate(images), labels.astype(np.uint8)


def write_idx(path, array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.tobytes())


def write_png(path, gray):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + row.tobytes() for row in gray)
    head = struct.pack(">IIBBBBB", gray.shape[1], gray.shape[0], 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def sheet(images, labels, columns=24):
    rows = [np.concatenate(list(images[labels == digit][:columns]), axis=1) for digit in range(10)]
    return np.concatenate(rows, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=12000, help="training images (12000)")
    parser.add_argument("--test", type=int, default=2000, help="test images (2000)")
    parser.add_argument("--sheet", type=pathlib.Path, help="also write a PNG with some of each digit")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, seed, count in (("train", 1, options.train), ("t10k", 2, options.test)):
        images, labels = make(seed, count)
        write_idx(options.folder / f"{name}-images-idx3-ubyte", images)
        write_idx(options.folder / f"{name}-labels-idx1-ubyte", labels)
        if name == "train" and options.sheet:
            write_png(options.sheet, sheet(images, labels))


if __name__ == "__main__":
    main()

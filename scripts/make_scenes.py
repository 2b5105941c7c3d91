#!/usr/bin/env python3
"""Draws scenes of simple objects, to train detectors and segmentation nets without a download.

  scripts/make_scenes.py FOLDER [--images N] [--side PIXELS] [--seed N]
  scripts/make_scenes.py FOLDER --classes NAME,NAME... [--images N] [--side PIXELS] [--seed N]

FOLDER/boxes has images and instances.json in COCO's format; FOLDER/masks has images, masks (a class per
pixel) and classes.txt of the same scenes. `caffe new` takes either. Scenes have one to five discs,
squares and triangles of any colour and size, which may overlap partly, on two-coloured backgrounds with
noise. The same N, side and seed give the same scenes.

With --classes, FOLDER/NAME has N images of a single object of this class, for a classifier. The classes
are disc, square, triangle, cross and star.
"""
import argparse
import json
import pathlib
import sys

try:
    import numpy as np
    from PIL import Image, ImageDraw
except ImportError as error:
    sys.exit(f"make_scenes.py: needs NumPy and Pillow, and {sys.executable} cannot import them ({error}); run it with /usr/bin/python3 "
             "and Debian's packages: apt-get install python3-numpy python3-pil")

CLASSES = ("disc", "square", "triangle")  # of scenes
SHAPES = (*CLASSES, "cross", "star")  # that --classes may name
MOST = 5
SMALLEST, LARGEST = 0.15, 0.4  # sides of objects, relative to the scene's
LEAST_SEEN = 0.4  # visible share of an object's area below which it has no box


def outline(kind, centre, size, turn):
    """Corners of an object; a disc has 40. Every second corner of a star, every third of a cross, is nearer to the centre."""
    radii = {"disc": [1] * 40, "square": [1] * 4, "triangle": [1] * 3, "cross": [1, 1, 0.35] * 4, "star": [1, 0.4] * 5}[kind]
    angles = np.arange(len(radii)) * 2 * np.pi / len(radii)
    if kind == "cross":
        angles = np.add.outer(np.arange(4) * np.pi / 2, [-0.25, 0.25, np.pi / 4]).ravel()
    return [(centre[0] + radius * size / 2 * np.cos(turn + angle), centre[1] + radius * size / 2 * np.sin(turn + angle))
            for radius, angle in zip(radii, angles)]


def ground(random, side):
    """A background with a gradient between two colours, and noise."""
    first, second = random.uniform(30, 225, (2, 3))
    angle = random.uniform(0, 2 * np.pi)
    y, x = np.mgrid[:side, :side] / side - 0.5
    share = np.clip(0.5 + np.cos(angle) * x + np.sin(angle) * y, 0, 1)[..., None]
    pixels = first * share + second * (1 - share) + random.normal(0, 6, (side, side, 1))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def far(colour, others):
    """True if a colour is distinguishable from the others."""
    return all(np.abs(colour - other).sum() > 120 for other in others)


def put(random, image, kind, smallest, largest):
    """Draws an object whose size is between two shares of the image's side; returns its pixels."""
    side = image.width
    size = side * random.uniform(smallest, largest)
    centre = random.uniform(size / 2, side - size / 2, 2)
    near = np.asarray(image, dtype=float)[int(centre[1]), int(centre[0])]
    colour = random.uniform(0, 255, 3)
    while not far(colour, [near]):
        colour = random.uniform(0, 255, 3)
    corners = outline(kind, centre, size, random.uniform(0, 2 * np.pi))
    ImageDraw.Draw(image).polygon(corners, fill=tuple(int(value) for value in colour))
    own = Image.new("1", (side, side))
    ImageDraw.Draw(own).polygon(corners, fill=1)
    return np.asarray(own)


def scene(random, side):
    """An image, its mask, and (class, box in pixels) of each object."""
    image = ground(random, side)
    drawn = []
    for _ in range(random.randint(1, MOST + 1)):
        label = random.randint(len(CLASSES))
        drawn.append((label, put(random, image, CLASSES[label], SMALLEST, LARGEST)))
    return image, *seen(drawn, side)


def make_folders(folders):
    for folder in folders:
        if folder.exists():
            sys.exit(f"make_scenes.py: {folder} already exists; choose another folder or delete this one")
    for folder in folders:
        folder.mkdir(parents=True)


def write_classes(options):
    """A folder of images for each class, with one large object per image."""
    random = np.random.RandomState(options.seed)
    make_folders([options.folder / kind for kind in options.classes])
    for number in range(options.images):
        for kind in options.classes:
            image = ground(random, options.side)
            put(random, image, kind, LARGEST, 2 * LARGEST)
            image.save(options.folder / kind / f"{number:05}.png")
    print(f"{options.folder}: {options.images} images of each of {len(options.classes)} classes")


def seen(drawn, side):
    """Visible parts of the objects: the mask, and the boxes of those that are visible enough."""
    mask, boxes = np.zeros((side, side), np.uint8), []
    free = np.ones((side, side), bool)
    for label, own in reversed(drawn):
        left = own & free
        mask[left] = label + 1
        free &= ~own
        if left.sum() >= LEAST_SEEN * max(own.sum(), 1):
            rows, columns = np.where(left.any(1))[0], np.where(left.any(0))[0]
            boxes.append((label, (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)))
    return Image.fromarray(mask), boxes


def kinds(names):
    found = list(dict.fromkeys(names.split(",")))
    if wrong := [name for name in found if name not in SHAPES]:
        raise argparse.ArgumentTypeError(f"there is no class '{wrong[0]}'; the classes are {', '.join(SHAPES)}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=1200, help="how many (1200)")
    parser.add_argument("--side", type=int, default=128, help="height and width in pixels (128)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--classes", type=kinds, metavar="NAME,NAME...", help="write a folder of images for each of these classes")
    options = parser.parse_args()
    if options.images < 2 or options.side < 32:
        sys.exit(f"make_scenes.py: --images is {options.images} and --side {options.side}; give 2 images and 32 pixels or more")
    if options.classes:
        write_classes(options)
        return
    make_folders([options.folder / name for name in ("boxes", "masks/images", "masks/masks")])
    random = np.random.RandomState(options.seed)
    images, annotations = [], []
    for number in range(options.images):
        image, mask, boxes = scene(random, options.side)
        name = f"{number:05}.png"
        image.save(options.folder / "boxes" / name)
        image.save(options.folder / "masks" / "images" / name)
        mask.save(options.folder / "masks" / "masks" / name)
        images.append({"id": number, "file_name": name, "width": options.side, "height": options.side})
        for label, (left, top, right, bottom) in boxes:
            annotations.append({"id": len(annotations) + 1, "image_id": number, "category_id": label + 1, "iscrowd": 0,
                                "bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)})
    categories = [{"id": label, "name": name} for label, name in enumerate(CLASSES, start=1)]
    (options.folder / "boxes" / "instances.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    (options.folder / "masks" / "classes.txt").write_text("".join(f"{name}\n" for name in ("ground", *CLASSES)))
    print(f"{options.folder}: {options.images} scenes with {len(annotations)} things")


if __name__ == "__main__":
    main()

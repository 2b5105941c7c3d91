#!/usr/bin/env python3
"""Makes square images of one size: resizes the shorter side to it and keeps the centre.

  tools/extra/resize_and_crop_images.py --input_folder FROM --output_folder TO [--output_side_length 256]
                                        [--file LIST] [--workers N]

Processes all images below FROM, or those in LIST, one per line (a label after the name is ignored). Files in TO have the
same names. Images that cannot be read are listed at the end, and the exit status is then 1. Needs Pillow; shows progress
if tqdm is installed.
"""
import argparse
import multiprocessing
import os
import pathlib
import sys

from PIL import Image

try:
    from tqdm import tqdm
except ImportError:  # no progress bar
    def tqdm(items, **_):
        return items

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def resize_and_crop(image, side):
    """The centre square of a PIL image, side x side pixels."""
    short = min(image.size)
    left, top = (image.width - short) / 2, (image.height - short) / 2
    return image.resize((side, side), Image.Resampling.BICUBIC, box=(left, top, left + short, top + short))


def convert(job):
    """Reads, resizes and writes one image; returns an error text, or None."""
    source, target, side = job
    try:
        with Image.open(source) as image:
            # JPEG has neither palettes nor transparency; other formats keep theirs.
            plain = image.convert("L" if image.mode == "L" else "RGB") if target.suffix.lower() in (".jpg", ".jpeg") else image
            result = resize_and_crop(plain, side)
        target.parent.mkdir(parents=True, exist_ok=True)
        result.save(target, **({"quality": 95} if target.suffix.lower() in (".jpg", ".jpeg") else {}))
    except (OSError, ValueError) as error:
        return f"{source}: {error}"
    return None


def names_of(folder, list_file):
    if list_file:
        lines = pathlib.Path(list_file).read_text(encoding="utf-8").splitlines()
        return [line.split()[0] for line in lines if line.strip()]
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input_folder", required=True, type=pathlib.Path)
    parser.add_argument("--output_folder", required=True, type=pathlib.Path)
    parser.add_argument("--output_side_length", type=int, default=256, help="pixels (default 256)")
    parser.add_argument("--file", help="list of names below the input folder")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one per processor)")
    args = parser.parse_args()
    if args.output_side_length < 1:
        parser.error(f"--output_side_length {args.output_side_length} must be at least 1")
    names = names_of(args.input_folder, args.file)
    if not names:
        sys.exit(f"resize_and_crop_images.py: no images ({' '.join(sorted(SUFFIXES))}) in {args.input_folder}")
    jobs = [(args.input_folder / name, args.output_folder / name, args.output_side_length) for name in names]
    with multiprocessing.Pool(max(1, min(args.workers, len(jobs)))) as pool:
        results = list(tqdm(pool.imap_unordered(convert, jobs, chunksize=8), total=len(jobs), unit="image", disable=None))
    failures = sorted(result for result in results if result)
    written = len(jobs) - len(failures)
    print(f"Wrote {written} {'image' if written == 1 else 'images'} to {args.output_folder}")
    for failure in failures:
        print(f"not converted: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"resize_and_crop_images.py: {error}")

#!/usr/bin/env python3
"""Scores windows of images, like R-CNN; writes one row per window.

  python/detect.py INPUT OUTPUT --crop_mode=list --model_def deploy.prototxt --pretrained_model net.caffemodel

INPUT: with --crop_mode=list a CSV file with columns filename, ymin, xmin, ymax, xmax (pixels); with selective_search a CSV
file with a column filename, or a text file with one name per line. OUTPUT: .csv with filename, the window and class0, class1
...; or .h5 with datasets filename, window (N, 4) and prediction (N, classes). Needs Pillow, and h5py for .h5.
"""
import argparse
import csv
import pathlib
import sys
import time

import find_caffe  # noqa: F401  (before caffe)
import caffe
import numpy as np
from image_options import add_image_options, image_settings, progress

RCNN = pathlib.Path(__file__).resolve().parent.parent / "models" / "bvlc_reference_rcnn_ilsvrc13"
COORDINATES = ("ymin", "xmin", "ymax", "xmax")


def read_table(path, columns):
    """The rows of a CSV file as dicts; for a text file, its lines as filenames."""
    with open(path, newline="", encoding="utf-8") as file:
        if pathlib.Path(path).suffix == ".txt":
            return [{"filename": line.strip()} for line in file if line.strip()]
        table = csv.DictReader(file)
        missing = [name for name in columns if name not in (table.fieldnames or ())]
        if missing:
            raise caffe.InvalidArgument(f"{path} has no column {missing[0]}; it needs {', '.join(columns)}")
        return list(table)


def windows_of(path):
    """(filename, windows) for each file, in the order of each file's first row."""
    found = {}
    for number, row in enumerate(read_table(path, ("filename", *COORDINATES)), 2):
        try:
            found.setdefault(row["filename"], []).append([float(row[name]) for name in COORDINATES])
        except (KeyError, TypeError, ValueError):
            raise caffe.InvalidArgument(f"{path}:{number}: a window is four numbers, {', '.join(COORDINATES)}") from None
    return list(found.items())


def write_csv(path, found):
    classes = [f"class{i}" for i in range(np.size(found[0]["prediction"]) if found else 0)]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["filename", *COORDINATES, *classes])
        for one in found:
            writer.writerow([one["filename"], *one["window"], *np.ravel(one["prediction"])])


def write_hdf5(path, found):
    import h5py
    with h5py.File(path, "w") as file:
        file["filename"] = np.array([one["filename"] for one in found], dtype=h5py.string_dtype())
        file["window"] = np.array([one["window"] for one in found], np.float32).reshape(-1, 4)
        file["prediction"] = np.array([np.ravel(one["prediction"]) for one in found], np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input_file", help="images, with their windows")
    parser.add_argument("output_file", help=".csv or .h5 file")
    parser.add_argument("--model_def", default=str(RCNN / "deploy.prototxt"), help="net (default R-CNN)")
    parser.add_argument("--pretrained_model", default=str(RCNN / "bvlc_reference_rcnn_ilsvrc13.caffemodel"), help="weights")
    parser.add_argument("--crop_mode", default="selective_search", choices=("selective_search", "list"),
                        help="where windows come from")
    parser.add_argument("--context_pad", type=int, default=16, help="surroundings, in pixels of the net's input")
    add_image_options(parser)
    args = parser.parse_args()

    write = {".csv": write_csv, ".h5": write_hdf5, ".hdf5": write_hdf5}.get(pathlib.Path(args.output_file).suffix)
    if write is None:
        raise caffe.InvalidArgument(f"{args.output_file}: the result is a .csv or an .h5 file")
    if args.crop_mode == "list":
        jobs = windows_of(args.input_file)
    else:
        jobs = list(dict.fromkeys(row["filename"] for row in read_table(args.input_file, ("filename",))))
    detector = caffe.Detector(args.model_def, args.pretrained_model, context_pad=args.context_pad,
                              **image_settings(args, args.model_def))
    detect = detector.detect_windows if args.crop_mode == "list" else detector.detect_selective_search
    start, found = time.monotonic(), []
    for job in progress(jobs, len(jobs)):
        found += detect([job])
    print(f"Processed {len(found)} windows in {time.monotonic() - start:.3f} s.")
    write(args.output_file, found)
    print(f"Saved to {args.output_file}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, caffe.Error) as error:
        sys.exit(f"detect.py: {error}")

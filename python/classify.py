#!/usr/bin/env python3
"""Classifies images; writes an array (images, classes) of scores.

  python/classify.py INPUT OUTPUT.npy --model_def deploy.prototxt --pretrained_model net.caffemodel

INPUT: an image, a folder of images (with extension --ext, in the order of their names), or a .npy file with an array (N, H, W, C)
of values in [0, 1]. Needs Pillow; shows progress if tqdm is installed.
"""
import argparse
import pathlib
import sys
import time

import find_caffe  # noqa: F401  (before caffe)
import caffe
import numpy as np
from image_options import add_image_options, image_settings, progress

CAFFENET = pathlib.Path(__file__).resolve().parent.parent / "models" / "bvlc_reference_caffenet"
AT_ONCE = 32  # images in memory, each with up to ten crops


def read_inputs(source, extension):
    """The number of images, and a generator of them."""
    source = pathlib.Path(source)
    if source.suffix == ".npy":
        images = np.load(source)
        if images.ndim != 4:
            raise caffe.InvalidArgument(f"{source} has an array of shape {images.shape}; it must be (N, H, W, C)")
        return len(images), iter(images)
    files = sorted(source.glob(f"*.{extension}")) if source.is_dir() else [source]
    if not files:
        raise caffe.InvalidArgument(f"{source} has no file *.{extension}; --ext names other suffixes")
    return len(files), (caffe.io.load_image(file) for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input_file", help="image, folder or .npy file")
    parser.add_argument("output_file", help=".npy file for the scores")
    parser.add_argument("--model_def", default=str(CAFFENET / "deploy.prototxt"), help="net (default CaffeNet)")
    parser.add_argument("--pretrained_model", default=str(CAFFENET / "bvlc_reference_caffenet.caffemodel"), help="weights")
    parser.add_argument("--center_only", action="store_true", help="the centre, not the mean over ten crops")
    parser.add_argument("--images_dim", default="256,256", help="height,width to which images are resized before cropping")
    parser.add_argument("--ext", default="jpg", help="suffix of a folder's images")
    add_image_options(parser)
    args = parser.parse_args()

    count, images = read_inputs(args.input_file, args.ext)
    dims = [int(text) for text in args.images_dim.split(",")]
    classifier = caffe.Classifier(args.model_def, args.pretrained_model, image_dims=dims,
                                  **image_settings(args, args.model_def))
    print(f"Classifying {count} inputs.")
    start, scores, batch = time.monotonic(), [], []
    for number, image in enumerate(progress(images, count), 1):
        batch.append(image)
        if len(batch) == AT_ONCE or number == count:
            scores.append(classifier.predict(batch, not args.center_only))
            batch = []
    print(f"Done in {time.monotonic() - start:.2f} s.")
    print(f"Saving results into {args.output_file}")
    with open(args.output_file, "wb") as file:  # np.save would append .npy to a file name
        np.save(file, np.concatenate(scores))


if __name__ == "__main__":
    try:
        main()
    except (OSError, caffe.Error) as error:
        sys.exit(f"classify.py: {error}")

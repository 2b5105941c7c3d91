"""Options shared by classify.py and detect.py: how images become a net's input."""
import pathlib

import caffe
import numpy as np
from caffe.proto import caffe_pb2

IMAGENET_MEAN = "104,117,123"  # means of ImageNet's training images, blue first


def progress(items, count):
    """The items, with a progress bar in a terminal if tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, total=count, unit="image", disable=None)


def add_image_options(parser):
    parser.add_argument("--gpu", action="store_true", help="use a GPU")
    parser.add_argument("--mean_file", default=IMAGENET_MEAN,
                        help="what is subtracted: a .npy or .binaryproto file, numbers by channel, or '' for nothing "
                             f"(default {IMAGENET_MEAN}: ImageNet's)")
    parser.add_argument("--input_scale", type=float, help="factor after the mean")
    parser.add_argument("--raw_scale", type=float, default=255.0, help="factor before the mean (default 255)")
    parser.add_argument("--channel_swap", default="2,1,0",
                        help="the image's channel for each of the input's (default 2,1,0: RGB to BGR)")


def image_settings(args, model_def):
    """The arguments of Classifier and Detector: mean, input_scale, raw_scale, channel_swap."""
    caffe.set_mode_gpu() if args.gpu else caffe.set_mode_cpu()
    return {"mean": read_mean(args.mean_file, model_def), "input_scale": args.input_scale, "raw_scale": args.raw_scale,
            "channel_swap": [int(text) for text in args.channel_swap.split(",")] if args.channel_swap else None}


def read_mean(source, model_def):
    """An array (C,), or (C, H, W) if that is the size of the net's input. A mean of another size is averaged over its pixels,
    because it is for whole images. None for ''."""
    if not source:
        return None
    suffix = pathlib.Path(source).suffix
    if suffix == ".npy":
        mean = np.load(source)
    elif suffix == ".binaryproto":
        mean = caffe.io.blobproto_to_array(caffe_pb2.BlobProto.FromString(pathlib.Path(source).read_bytes()))
        mean = mean.reshape(mean.shape[-3:])
    else:
        return np.array([float(text) for text in source.split(",")], np.float32)
    net = caffe.Net(model_def, caffe.TEST)
    if mean.ndim == 3 and mean.shape != tuple(net.blobs[net.inputs[0]].shape[1:]):
        mean = mean.mean(axis=(1, 2))
    return mean.astype(np.float32)

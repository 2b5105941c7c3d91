#!/usr/bin/env python3
"""Writes torch_nets/*.json: the nets of scripts/caffe-gpu-check in the form that benchmarks/peer builds in PyTorch.

  benchmarks/gpu/torch_nets.py [--check]

The machine to check has PyTorch but neither protobuf nor protoc, so definitions are shipped as JSON: steps, and the shapes
of weights and of a batch of one image. --check lists files that are out of date.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from peer import definition  # noqa: E402

FOLDER = ROOT / "benchmarks" / "gpu" / "torch_nets"
NETS = {"alexnet": "benchmarks/nets/alexnet.prototxt", "googlenet": "benchmarks/nets/googlenet.prototxt",
        "inception_v3": "models/inception_v3/train_val.prototxt", "mobilenet_v2": "models/mobilenet_v2/train_val.prototxt",
        "resnet50": "benchmarks/nets/resnet50.prototxt", "vgg16": "models/vgg16/train_val.prototxt"}


def text_of(name):
    net = definition.training_net(ROOT / NETS[name], batch=1)
    image = next(layer.input_param.shape[0].dim for layer in net.layer if layer.type == "Input")
    content = {"image": list(image)[1:], "weights": definition.weight_shapes(net), "steps": definition.steps(net)}
    return json.dumps(content, separators=(",", ":")) + "\n"


def main():
    stale = []
    for name in NETS:
        file, text = FOLDER / f"{name}.json", text_of(name)
        if "--check" not in sys.argv:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(f"{', '.join(stale)}: not what benchmarks/gpu/torch_nets.py writes; run it")


if __name__ == "__main__":
    main()

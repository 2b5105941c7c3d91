#!/usr/bin/env python3
"""Measures the cost of each model of models/: weights, arithmetic, planned memory, speed of inference and training.

  benchmarks/zoo.py [FOLDER...] [--batch 16] [--iterations 3] [--build build/cpu-release] [--output FILE] [--table FILE]

FOLDER is below models/ (all of them). Both nets of a model run on constant data in batches of --batch; a training step is
one forward and backward pass. Prints JSON; --table instead makes Markdown from a file that --output wrote.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import step_time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.proto import caffe_pb2  # noqa: E402
from google.protobuf import text_format  # noqa: E402


def constant_data(net, batch):
    """The net with `batch` constant images instead of its data; detectors get one box of class 0 per image, or an empty grid."""
    data = caffe_pb2.LayerParameter(name="data", type="DummyData")
    for layer in list(net.layer):
        if layer.type == "Input":
            layer.input_param.shape[0].dim[0] = batch
            continue
        if layer.type in ("Data", "ImageData", "AnnotatedData"):
            side = layer.transform_param.crop_size or layer.transform_param.resize_param.height
            labels = [1, 1, batch, 8] if net.layer[-1].type == "MultiBoxLoss" else [batch]
            shapes = [[batch, 3, side, side], labels] if side else []
        elif layer.type == "DetectNetTransformation":
            grid = layer.detectnet_groundtruth_param
            height, width = grid.image_size_y, grid.image_size_x
            shapes = [[batch, 3, height, width],
                      [batch, 8 + len(grid.object_class), height // grid.stride, width // grid.stride]]
        else:
            continue
        net.layer.remove(layer)
        if shapes and not data.top:
            data.top.extend(layer.top)
            for shape in shapes:
                data.dummy_data_param.shape.add(dim=shape)
                data.dummy_data_param.data_filler.add(type="constant", value=0)
    if data.top:
        net.layer.insert(0, data)
    return net


def measure(caffe, path, batch, iterations, phase, folder):
    net = constant_data(text_format.Parse(path.read_text(encoding="utf-8"), caffe_pb2.NetParameter()), batch)
    file = pathlib.Path(folder) / "net.prototxt"
    file.write_text(str(net), encoding="utf-8")
    output = step_time.run(caffe, "plan", f"--model={file}", f"--phase={phase}", "--json")
    plan, _ = json.JSONDecoder().raw_decode(output[output.index("{"):])
    products = sum(step["flops"] for step in plan["steps"]
                   if step["direction"] == "forward" and step["op"].split("[")[0] in ("Conv", "Gemm"))
    log = step_time.run(caffe, "time", f"--model={file}", f"--phase={phase}", f"--iterations={iterations}")
    return plan, products / 2 / batch, statistics.median(step_time.step_times_ms(log))


def report(caffe, folder, batch, iterations):
    train = next(path for name in ("train_val", "train", "deploy") if (path := folder / f"{name}.prototxt").exists())
    with tempfile.TemporaryDirectory() as scratch:
        plan, products, _ = measure(caffe, folder / "deploy.prototxt", batch, 1, "TEST", scratch)
        result = {"parameters": plan["parameter_count"], "multiply_adds_per_image": round(products),
                  "use_bytes": plan["memory"]["total"]}
        if train.stem != "deploy":
            plan, _, step = measure(caffe, train, batch, iterations, "TRAIN", scratch)
            result.update(train_bytes=plan["memory"]["total"], train_images_per_s=round(batch / step * 1000, 1))
    return result


def table(result):
    yield "| model | weights | multiply-adds | MiB, use | MiB, training | images/s, training |\n|---|---|---|---|---|---|"
    for name, r in result["models"].items():
        mib = [f"{r[key] / 2**20:,.0f}" if key in r else "-" for key in ("use_bytes", "train_bytes")]
        yield (f"| `{name}` | {r['parameters'] / 1e6:.2f} M | {r['multiply_adds_per_image'] / 1e9:.2f} G | {mib[0]} | "
               f"{mib[1]} | {r.get('train_images_per_s', '-')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--output", type=pathlib.Path, help="a file for the JSON, besides standard output")
    parser.add_argument("--table", type=pathlib.Path, help="print this file as a table")
    options = parser.parse_args()
    if options.table:
        print("\n".join(table(json.loads(options.table.read_text(encoding="utf-8")))))
        return
    folders = [ROOT / "models" / f for f in options.folders] or sorted(
        path.parent for path in (ROOT / "models").rglob("deploy.prototxt"))
    models = {}
    for folder in folders:
        print(folder.relative_to(ROOT), file=sys.stderr)
        models[str(folder.relative_to(ROOT / "models"))] = report(
            options.build.resolve() / "bin" / "caffe", folder, options.batch, options.iterations)
    result = {"machine": {"processor": step_time.processor(), "cores": os.cpu_count(),
                          "load_before": round(os.getloadavg()[1], 2)}, "batch": options.batch, "models": models}
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

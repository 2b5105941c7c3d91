#!/usr/bin/env python3
"""Compares speed and memory of inference in Cortado, onnxruntime, OpenVINO, OpenCV and PyTorch.

  benchmarks/peer_environment.sh                        once: the peers into build/peer-venv
  benchmarks/peer_inference_time.py [NET...] [--batch 1,32] [--variants V,...] [--rounds 5] [--seconds 1] [--output FILE]

NET: resnet50, mobilenet_v2, squeezenet, ssd300, vgg16 (all): the deploy nets of models/ with random weights and batch statistics of
mean 0 and variance 1. The others read the files of `caffe export --onnx` (and --int8); PyTorch's net is built from the same
prototxt. Each variant runs in its own process, and the processes take turns, --seconds at a time. Prints medians, the
fastest pass, peak memory of the process, the time from file to first result, and the difference of the outputs from Cortado's
in float; then JSON. Reports why a framework cannot run a net.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from peer import definition
from step_time import processor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
NETS = {"resnet50": "models/resnet50", "mobilenet_v2": "models/mobilenet_v2", "squeezenet": "models/squeezenet",
        "ssd300": "models/VGGNet/VOC0712/SSD_300x300", "vgg16": "models/vgg16"}
VARIANTS = ("cortado-fp32", "onnxruntime-fp32", "openvino-fp32", "opencv-fp32", "torch-fp32", "torch-fp32+compile",
            "cortado-bf16", "openvino-bf16", "torch-bf16", "torch-bf16+compile",
            "cortado-int8", "onnxruntime-int8", "openvino-int8")
PREPARE = """
import json, pathlib, sys
import numpy as np
import caffe
import caffe.onnx
from caffe.calibration import calibrate

folder = pathlib.Path(sys.argv[1])
caffe.init_log(2)
caffe.set_random_seed(1)
net = caffe.Net(str(folder / "net.prototxt"), caffe.TEST)
for layer in net.layers:
    if layer.type == "BatchNorm":
        layer.blobs[0].data[...] = 0
        layer.blobs[1].data[...] = layer.blobs[2].data[...] = 1
net.save(str(folder / "net.caffemodel"))
np.savez(folder / "weights.npz", **{f"{name}.{i}": blob.data for name, blobs in net.params.items() for i, blob in enumerate(blobs)})
name = net.inputs[0]
random = np.random.default_rng(1)


def feed(net):
    net.blobs[name].data[...] = random.normal(0, 1, net.blobs[name].data.shape)


feed(net)
np.save(folder / "input.npy", net.blobs[name].data)
calibrate(net, feed=feed, iterations=-(-32 // net.blobs[name].data.shape[0]), method="min-max").save(str(folder / "calibration.json"))
caffe.onnx.export(net, str(folder / "net.onnx"), check=False)
caffe.onnx.export(net, str(folder / "int8.onnx"), check=False, int8=str(folder / "calibration.json"))
"""


class Worker:
    """A process of one variant; `error` says why there is none."""

    def __init__(self, options, folder, variant):
        self.framework, _, self.kind = variant.partition("-")
        self.replies, self.error = [], None
        python = sys.executable if self.framework == "cortado" else str(options.peer_python)
        environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "PYTHONDONTWRITEBYTECODE": "1",
                       "TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build" / "peer-inductor")}
        if self.framework == "cortado":
            environment["PYTHONPATH"] = str(options.build / "python")
        self._log = (folder / f"{variant}.log").open("w+")
        self._process = subprocess.Popen(
            [python, str(HERE / "peer" / "inference_worker.py"), self.framework, self.kind, str(folder), str(options.threads)],
            text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        self.ready = self._answer()

    def _answer(self):
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self._process.wait()
        self._log.seek(0)
        said = [line.strip() for line in self._log if line.strip()] or [f"ended with status {self._process.returncode}"]
        self.error = said[-1][:200]
        return None

    def passes(self, count):
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        reply = self._answer()
        if reply:
            self.replies.append(reply)

    def finish(self):
        self._process.stdin.close()
        self._process.wait()
        self._log.close()

    def summary(self, folder, wanted):
        if self.error:
            return {"error": self.error}
        taken = [ms for reply in self.replies for ms in reply["ms"]]
        found = np.load(folder / f"outputs-{self.framework}-{self.kind}.npy")
        difference = (float(np.abs(found - wanted).max() / np.abs(wanted).max()) if found.shape == wanted.shape else None)
        return {"ms": round(statistics.median(taken), 2), "ms_best": round(min(taken), 2), "passes": len(taken),
                "first_ms": round(self.ready["first_ms"], 1), "peak_bytes": self.replies[-1]["peak_bytes"],
                "difference": difference}


def prepare(options, folder, net, batch):
    parsed = definition.text_format.Parse((ROOT / NETS[net] / "deploy.prototxt").read_text(encoding="utf-8"),
                                          definition.caffe_pb2.NetParameter())
    parsed.layer[0].input_param.shape[0].dim[0] = batch
    if parsed.layer[-1].type == "Softmax":  # which says little of random scores
        del parsed.layer[-1]
    (folder / "net.prototxt").write_text(str(parsed), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(options.build / "python")}
    done = subprocess.run([str(options.export_python), "-c", PREPARE, str(folder)], env=environment, text=True, capture_output=True,
                          check=False)
    if done.returncode:
        sys.exit(f"{net}: {done.stderr[-3000:]}")
    try:
        (folder / "steps.json").write_text(json.dumps(definition.steps(parsed)), encoding="utf-8")
    except (KeyError, ValueError) as error:  # the layers of detection
        print(f"{net}: no net for PyTorch: {error}", file=sys.stderr)


def measure(options, net, batch):
    with tempfile.TemporaryDirectory(prefix="peer-") as scratch:
        folder = pathlib.Path(scratch)
        prepare(options, folder, net, batch)
        workers = []
        for variant in options.variants:
            if not variant.startswith("torch") or (folder / "steps.json").exists():
                print(f"{net}, batch {batch}: starting {variant}", file=sys.stderr)
                workers.append(Worker(options, folder, variant))
        for worker in workers * options.rounds:
            if not worker.error:
                each = (worker.replies[-1]["ms"][-1] if worker.replies else worker.ready["first_ms"]) / 1000
                worker.passes(max(1, int(options.seconds / each)) if worker.replies else 1)
        for worker in workers:
            worker.finish()
        first = next((w for w in workers if not w.error), None)
        wanted = np.load(folder / f"outputs-{first.framework}-{first.kind}.npy")
        return {f"{w.framework}-{w.kind}": w.summary(folder, wanted) for w in workers}


def table(net, batch, result):
    yield f"{net}, batch {batch:<6} {'ms':>9} {'best':>9} {'images/s':>9} {'peak MiB':>9} {'first ms':>9} {'difference':>10}"
    for variant, r in result.items():
        if "error" in r:
            yield f"  {variant:<18} {r['error']}"
            continue
        difference = "other rows" if r["difference"] is None else f"{r['difference']:.1e}"
        yield (f"  {variant:<18} {r['ms']:>9.2f} {r['ms_best']:>9.2f} {batch / r['ms'] * 1000:>9.1f} "
               f"{r['peak_bytes'] / 2**20:>9.0f} {r['first_ms']:>9.0f} {difference:>10}")


def versions(options):
    code = ("import cv2, onnxruntime, openvino, torch; "
            "print(f'onnxruntime {onnxruntime.__version__}, OpenVINO {openvino.__version__}, OpenCV {cv2.__version__}, "
            "PyTorch {torch.__version__}')")
    return subprocess.run([options.peer_python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET")
    parser.add_argument("--batch", default="1,32", help="numbers of images")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="of " + ", ".join(VARIANTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each variant in a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--peer-python", type=pathlib.Path, default=ROOT / "build" / "peer-venv" / "bin" / "python")
    parser.add_argument("--export-python", type=pathlib.Path, default=ROOT / "build" / "onnx-venv" / "bin" / "python",
                        help="has package onnx and the version that package caffe is built for")
    parser.add_argument("--output", type=pathlib.Path, help="a file for the JSON, besides standard output")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.variants, options.batch = options.variants.split(","), [int(word) for word in options.batch.split(",")]
    for given, known in ((options.nets, NETS), (options.variants, VARIANTS)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"{unknown[0]} is none of {', '.join(known)}")
    return options


def main():
    options = parse_arguments()
    result = {"processor": processor(), "threads": options.threads, "load_before": round(os.getloadavg()[1], 2),
              "peers": versions(options), "nets": {}}
    print(f"{result['processor']}, {options.threads} threads, {result['peers']}")
    for net in options.nets or NETS:
        for batch in options.batch:
            measured = result["nets"][f"{net}-{batch}"] = measure(options, net, batch)
            print("\n".join(table(net, batch, measured)), flush=True)
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the files that a release has to leave readable, with the programs of that release.

  scripts/keep_files.py BUILD FOLDER     say, build/cpu-release tests/kept/VERSION

BUILD is a build folder with the programs and the Python package. tests/smoke/test_kept_files.py reads
the files of every folder in tests/kept; docs/upgrading.md makes the promise. Run it for each release,
and commit the folder.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

NET = """
name: "kept"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.0078125 mean_value: 128 } data_param { source: "images_lmdb" batch_size: 4 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.0078125 mean_value: 128 } data_param { source: "images_lmdb" batch_size: 4 backend: LMDB } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc" inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" include { phase: TEST } }
"""
SOLVER = """
net: "train_val.prototxt" type: "%s" base_lr: 0.01 momentum: 0.9 lr_policy: "step" gamma: 0.5 stepsize: 4 max_iter: 8 display: 2 test_interval: 4 test_iter: 2
snapshot: 8 snapshot_prefix: "%s" snapshot_format: %s random_seed: 1 solver_mode: CPU
"""
# Solver types have different states.
SOLVERS = {"sgd": ("SGD", "BINARYPROTO"), "adam": ("Adam", "BINARYPROTO"), "hdf5": ("SGD", "HDF5")}
SAVE = """
import json, subprocess, sys
import numpy as np
import caffe
net = caffe.Net("deploy.prototxt", caffe.TEST, weights="sgd_iter_8.caffemodel")
data = (np.arange(net.blobs["data"].count) % 17 / 8.0 - 1).reshape(net.blobs["data"].shape).astype(np.float32)
data.tofile("input.raw")
int8 = subprocess.run([sys.argv[1], "int8.cortado", "input.raw"], text=True, capture_output=True, check=True).stdout
json.dump({"prob": net.forward(data=data)["prob"].tolist(), "int8": [[float(line) for line in int8.splitlines()[1:]]]}, open("outputs.json", "w"))
"""


def picture(number):
    """A PPM of 12 x 12 pixels, darker for even numbers."""
    pixels = bytes((number * 37 + index * 11) % 90 + (150 if number % 2 else 10) for index in range(12 * 12 * 3))
    return b"P6\n12 12\n255\n" + pixels


def _forget_this_machine(file):
    """Replaces paths and the host's name in a run.json."""
    content = json.loads(file.read_text())
    for session in content["sessions"]:
        session.update(folder="/kept", host="host", command="caffe " + session["command"].partition(" ")[2])
    file.write_text(json.dumps(content, indent=1))


def main(build, folder):
    build, folder = pathlib.Path(build).resolve(), pathlib.Path(folder)
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(build / "python"), "GLOG_minloglevel": "1", "PYTHON": sys.executable}

    def run(program, *words):
        subprocess.run([str(build / "bin" / program), *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    (folder / "train_val.prototxt").write_text(NET)
    for number in range(8):
        (folder / f"{number}.ppm").write_bytes(picture(number))
    (folder / "list.txt").write_text("".join(f"{number}.ppm {number % 2}\n" for number in range(8)))
    run("convert_imageset", "./", "list.txt", "images_lmdb")
    for name, (kind, form) in SOLVERS.items():
        (folder / f"{name}_solver.prototxt").write_text(SOLVER % (kind, name, form))
        run("caffe", "train", f"--solver={name}_solver.prototxt", f"--run_dir={name}_run")
    run("caffe", "deploy", "train_val.prototxt", "--output=deploy.prototxt")
    weights = "--weights=sgd_iter_8.caffemodel"
    run("caffe", "calibrate", "train_val.prototxt", weights, "--iterations=8", "--output=calibration.json")
    run("caffe", "compile", "deploy.prototxt", weights, "--output=float.cortado")
    run("caffe", "compile", "deploy.prototxt", weights, "--precision=int8", "--calibration=calibration.json", "--output=int8.cortado")
    subprocess.run([sys.executable, "-c", SAVE, build / "bin" / "cortado_run"], cwd=folder, env=environment, check=True)
    if "sweep" in subprocess.run([build / "bin" / "caffe", "help"], text=True, capture_output=True, check=False).stdout:
        run("caffe", "sweep", "sgd_solver.prototxt", "base_lr=0.001..0.1:log", "--trials=2", "--metric=loss", "--pruner=none")
    for trial in folder.glob("sweep/[0-9]*/*"):  # a trial's files are those of a training
        shutil.rmtree(trial) if trial.is_dir() else trial.unlink()
    for file in folder.rglob("run.json"):
        _forget_this_machine(file)
    for waste in (*folder.glob("*.ppm"), *folder.rglob("lock.mdb"), *folder.rglob("trace.json"), *folder.rglob("*.tfevents.*"), *folder.glob("sweep/*.html"),
                  *folder.glob("sweep/*lock"), folder / "list.txt", folder / "input.raw"):
        waste.unlink()
    version = json.loads((folder / "sgd_run" / "run.json").read_text())["sessions"][0].get("cortado", "")
    print(f"{folder}: files of {version}, {sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()):,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

"""A process of peer_inference_time.py: runs one net in one framework on request.

  inference_worker.py FRAMEWORK TYPE FOLDER THREADS

FOLDER holds net.prototxt, net.caffemodel, net.onnx, int8.onnx, calibration.json and input.npy. Each line of standard input is
a number of passes; the answer has the time of each. A pass goes from arrays to arrays. outputs-FRAMEWORK-TYPE.npy gets the
first output of the first pass.
"""
import pathlib
import sys
import time

import numpy as np

import worker

WARM_UP = 3


def cortado(folder, kind, threads):
    """Runs the plan that the programs use."""
    import caffe

    caffe.init_log(2)
    net = caffe.Net(str(folder / "net.prototxt"), caffe.TEST, weights=str(folder / "net.caffemodel"), keep_all=False, precision=kind,
                    calibration=str(folder / "calibration.json") if kind == "int8" else None)
    name = net.inputs[0]

    def forward(images):
        net.blobs[name].data[...] = images
        return net.forward()[net.outputs[0]]
    return forward


def onnxruntime(folder, kind, threads):
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(str(folder / ("int8.onnx" if kind == "int8" else "net.onnx")), options,
                                       providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda images: session.run(None, {name: images})[0]


def openvino(folder, kind, threads):
    import openvino as ov

    core = ov.Core()
    precision = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}[kind]
    model = core.compile_model(str(folder / ("int8.onnx" if kind == "int8" else "net.onnx")), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"})
    request = model.create_infer_request()

    def forward(images):
        request.infer({0: images})
        return request.get_output_tensor(0).data
    return forward


def opencv(folder, kind, threads):
    import cv2

    cv2.setNumThreads(threads)
    net = cv2.dnn.readNetFromONNX(str(folder / "net.onnx"))

    def forward(images):
        net.setInput(images)
        return net.forward()
    return forward


def torch(folder, kind, threads):
    """Channels-last; with torch.compile for types that end with +compile."""
    import contextlib

    import torch as pytorch
    from torch_net import InferenceNet

    pytorch.set_num_threads(threads)
    kind, _, is_compiled = kind.partition("+")
    net = InferenceNet.of(folder).to(memory_format=pytorch.channels_last).eval()
    call = pytorch.compile(net) if is_compiled else net

    def forward(images):
        with pytorch.inference_mode(), pytorch.autocast("cpu", pytorch.bfloat16) if kind == "bf16" else contextlib.nullcontext():
            return call(pytorch.from_numpy(images).to(memory_format=pytorch.channels_last)).float().numpy()
    return forward


def main():
    framework, kind, folder, threads = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
    images = np.load(folder / "input.npy")
    start = time.perf_counter()
    forward = {one.__name__: one for one in (cortado, onnxruntime, openvino, opencv, torch)}[framework](folder, kind, threads)
    np.save(folder / f"outputs-{framework}-{kind}.npy", np.array(forward(images)))
    first_ms = (time.perf_counter() - start) * 1000
    for _ in range(WARM_UP - 1):
        forward(images)
    worker.say(first_ms=first_ms, peak_bytes=worker.memory_bytes("VmHWM"))
    for line in sys.stdin:
        taken = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            forward(images)
            taken.append((time.perf_counter() - begin) * 1000)
        worker.say(ms=taken, peak_bytes=worker.memory_bytes("VmHWM"))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Answers over HTTP: `caffe serve` beside MLServer with onnxruntime, at equal load.

  benchmarks/peer_environment.sh && build/peer-venv/bin/pip install mlserver
  benchmarks/peer_serving.py --net resnet50 --rounds 3                                        JSON

Both serve the same net with random weights and the same protocol (Open Inference Protocol, version 2, tensors as JSON), and take up
to 16 requests together. `clients` connections ask without a pause. For each server: requests per second, and the milliseconds within
which 50 and 99 of 100 are answered; medians of the rounds, in which the servers take turns. `binary` is `caffe serve` with
tensors as bytes, which MLServer does not take.
"""
import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAX_BATCH = 16
WEIGHTS = """
import sys
import caffe
caffe.set_random_seed(1)
net = caffe.Net(sys.argv[1], caffe.TEST)
for layer in net.layers:
    if layer.type == "BatchNorm":
        layer.blobs[0].data[...] = 0
        layer.blobs[1].data[...] = layer.blobs[2].data[...] = 1
net.save(sys.argv[2])
"""

# caffe export writes a fixed batch.
ANY_BATCH = """
import sys
import numpy
import onnx
model = onnx.load(sys.argv[1])
batch = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
for constant in model.graph.initializer:
    values = onnx.numpy_helper.to_array(constant)
    if constant.name in shapes and values[0] == batch:
        constant.CopyFrom(onnx.numpy_helper.from_array(numpy.array([-1, *values[1:]], values.dtype), constant.name))
for value in (*model.graph.input, *model.graph.output):
    value.type.tensor_type.shape.dim[0].dim_param = "N"
del model.graph.value_info[:]
onnx.save(model, sys.argv[1])
"""


def body_of(shape, binary):
    """A request for one item, and its headers."""
    import random

    random.seed(1)
    count = 1
    for extent in shape:
        count *= extent
    values = [round(random.uniform(-100, 100), 2) for _ in range(count)]
    tensor = {"name": "data", "datatype": "FP32", "shape": list(shape)}
    if not binary:
        content = json.dumps({"inputs": [{**tensor, "data": values}]}).encode()
        return content, {"Content-Type": "application/json"}
    import array

    chunk = array.array("f", values).tobytes()
    header = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": len(chunk)}}], "parameters": {"binary_data_output": True}}).encode()
    return header + chunk, {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))}


async def ask(port, path, content, headers, until, times):
    """One connection that asks until a time, and notes the seconds of each answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n"
    request = (head + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode() + content
    while time.monotonic() < until:
        begin = time.monotonic()
        writer.write(request)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        answer = await reader.readexactly(int(fields["content-length"]))
        if " 200 " not in lines[0]:
            raise RuntimeError(f"{lines[0]}: {answer[:300]!r}")
        times.append(time.monotonic() - begin)
    writer.close()


def load(port, path, content, headers, clients, seconds):
    """Requests per second, and milliseconds of the median and of the slowest hundredth."""
    async def run():
        times = []
        for warm in (True, False):
            times.clear()
            until = time.monotonic() + (seconds / 4 if warm else seconds)
            await asyncio.gather(*(ask(port, path, content, headers, until, times) for _ in range(clients)))
        return times

    times = sorted(asyncio.run(run()))
    return {"per_second": len(times) / seconds, "p50": times[len(times) // 2] * 1e3, "p99": times[min(len(times) - 1, len(times) * 99 // 100)] * 1e3}


@contextlib.contextmanager
def serving(words, port, **more):
    """A server that is ready. It is ended afterwards."""
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more) as process:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5).close()
                    break
                except (urllib.error.URLError, OSError):
                    if process.poll() is not None:
                        raise RuntimeError(f"{words[0]} has ended with status {process.returncode}") from None
                    time.sleep(0.2)
            yield
        finally:
            process.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="resnet50", help="a folder of models/")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--port", type=int, default=8170)
    parser.add_argument("--caffe", default=ROOT / "build" / "cpu-release" / "bin" / "caffe", help="the program")
    parser.add_argument("--python", default=sys.executable, help="interpreter with FastAPI and others, for caffe serve")
    parser.add_argument("--peer", default=ROOT / "build" / "peer-venv" / "bin" / "mlserver", help="the program mlserver")
    options = parser.parse_args()
    environment = {**os.environ, "PYTHON": str(options.python)}
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        net = ROOT / "models" / options.net / "deploy.prototxt"
        weights, onnx = place / "net.caffemodel", place / "net.onnx"
        package = pathlib.Path(options.caffe).resolve().parents[1] / "python"
        subprocess.run([options.python, "-c", WEIGHTS, net, weights], check=True, env={**environment, "PYTHONPATH": str(package)}, capture_output=True)
        subprocess.run([options.caffe, "export", net, f"--weights={weights}", f"--output={onnx}"], check=True, env=environment, capture_output=True)
        subprocess.run([options.python, "-c", ANY_BATCH, onnx], check=True)
        shape = input_shape(net)
        (place / "settings.json").write_text(json.dumps({"http_port": options.port + 1, "grpc_port": options.port + 2, "metrics_port": options.port + 3,
                                                         "parallel_workers": 0, "debug": False}))
        (place / "model-settings.json").write_text(json.dumps({
            "name": "net", "implementation": "mlserver_onnx.OnnxModel", "max_batch_size": MAX_BATCH, "max_batch_time": 0.001,
            "parameters": {"uri": str(onnx)}}))
        servers = {
            "cortado": ([options.caffe, "serve", f"net={net}", f"--weights={weights}", f"--port={options.port}", f"--max_batch={MAX_BATCH}"], options.port, False),
            "binary": ([options.caffe, "serve", f"net={net}", f"--weights={weights}", f"--port={options.port}", f"--max_batch={MAX_BATCH}"], options.port, True),
            "mlserver": ([options.peer, "start", place], options.port + 1, False)}
        results = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, (words, port, binary) in servers.items():
                with serving(words, port, env={**environment, "PYTHONPATH": str(ROOT / "benchmarks" / "peer")} if name == "mlserver" else environment):
                    content, headers = body_of(shape, binary)
                    results[name].append(load(port, "/v2/models/net/infer", content, headers, options.clients, options.seconds))
    medians = {name: {key: round(statistics.median(one[key] for one in rounds), 2) for key in rounds[0]} for name, rounds in results.items()}
    print(json.dumps({"net": options.net, "clients": options.clients, "rounds": options.rounds, "seconds": options.seconds, **medians,
                      "ratio": {key: round(medians["cortado"]["per_second"] / medians["mlserver"]["per_second"] if key == "per_second"
                                           else medians["mlserver"][key] / medians["cortado"][key], 3) for key in ("per_second", "p50", "p99")}}, indent=1))


def input_shape(net):
    """That of the net's input for one item."""
    import re

    dims = [int(number) for number in re.findall(r"dim:\s*(\d+)", net.read_text(encoding="utf-8").partition("}")[0] + "}")][:4]
    return (1, *dims[1:])


if __name__ == "__main__":
    main()

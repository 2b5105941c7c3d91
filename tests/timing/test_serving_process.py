"""`caffe serve` as a process: Triton's client, many clients at once, slow ones, and its end."""
import concurrent.futures
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

for package in ("fastapi", "uvicorn", "tritonclient.http"):
    pytest.importorskip(package)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serving"))

import numpy as np  # noqa: E402
import tritonclient.http as triton  # noqa: E402

import caffe  # noqa: E402
from serving_nets import CLASSES, write_net  # noqa: E402

PACKAGE = pathlib.Path(caffe.__file__).resolve().parents[1]


@pytest.fixture
def files(tmp_path):
    return write_net(tmp_path, "classes", CLASSES)


def model(name, net, weights):
    return [f"--model={name}", f"--net={net}", f"--weights={weights}", "--labels=", "--info="]


def start(files, *options):
    """A server, and its host and port."""
    words = [*model("classes", *files), "--port", "0", *options]
    code = f"import sys; from caffe.serving.__main__ import main; sys.exit(main({words!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    line = process.stdout.readline()
    return process, re.search(r"http://([\d.]+:\d+)/v2/models/classes", line)[1]


@pytest.fixture
def server(files):
    process, address = start(files)
    yield process, address
    process.kill()
    process.wait()


def infer(address, images):
    with triton.InferenceServerClient(address) as client:
        data = triton.InferInput("data", list(images.shape), "FP32")
        data.set_data_from_numpy(images)
        return client.infer("classes", [data]).as_numpy("prob")


def test_tritons_client(server, files):
    address = server[1]
    images = np.random.default_rng(1).normal(size=(3, 2, 3, 3)).astype(np.float32)
    with triton.InferenceServerClient(address) as client:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("classes")
        assert client.get_model_metadata("classes")["inputs"][0]["shape"] == [-1, 2, 3, 3]
        assert client.get_model_config("classes")["max_batch_size"] == 16
        assert client.get_model_repository_index()[0]["name"] == "classes"
        named = triton.InferInput("data", [1, 2, 3, 3], "FP32")
        named.set_data_from_numpy(images[:1], binary_data=False)
        best = client.infer("classes", [named], outputs=[triton.InferRequestedOutput("prob", class_count=1)]).as_numpy("prob")
    net = caffe.Net(*files, caffe.TEST)
    net.blobs["data"].reshape(3, 2, 3, 3)
    wanted = net.forward(data=images)["prob"]
    np.testing.assert_allclose(infer(address, images), wanted, rtol=1e-5)
    assert best[0][0].decode().split(":")[1] == str(wanted[0].argmax())


def test_many_at_once(server):
    """Every client gets the answer to its own question."""
    images = np.random.default_rng(1).normal(size=(64, 2, 3, 3)).astype(np.float32)
    alone = infer(server[1], images)
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        together = list(clients.map(lambda index: infer(server[1], images[index:index + 1 + index % 3]), range(60)))
    for index, found in enumerate(together):
        np.testing.assert_allclose(found, alone[index:index + 1 + index % 3], rtol=1e-5)


def test_clients_that_do_not_finish(server):
    """Those that send half a request, or nothing, keep nobody from an answer."""
    host, port = server[1].split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]
    for index, connection in enumerate(slow):
        connection.sendall(b"" if index % 2 else b"POST /v2/models/classes/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
    assert infer(server[1], np.zeros((1, 2, 3, 3), np.float32)).shape == (1, 5)
    for connection in slow:
        connection.close()
    assert infer(server[1], np.zeros((1, 2, 3, 3), np.float32)).shape == (1, 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_by_a_signal(server, number):
    process, address = server
    infer(address, np.zeros((1, 2, 3, 3), np.float32))
    process.send_signal(number)
    assert process.wait(300) in (0, -number)


def test_a_port_that_is_taken(server, files):
    port = server[1].split(":")[1]
    words = [*model("classes", *files), "--port", port]
    code = f"import sys; from caffe.serving.__main__ import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 1
    assert f"caffe serve: cannot listen on 127.0.0.1, port {port}: Address already in use; give another --port, or 0 for any that is free" in done.stderr

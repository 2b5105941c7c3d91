"""What clients send, and what they get."""
import asyncio
import json

import numpy as np
import pytest
import uvicorn
from fastapi.testclient import TestClient

from caffe._listening import local_hosts
from caffe.serving import Batcher
from caffe.serving.app import Limits, Server
from caffe.serving.connections import protocol_of
from test_batcher import Gate

TENSOR = {"name": "data", "datatype": "FP32", "shape": [1, 2, 3, 3], "data": [0] * 18}


@pytest.fixture(scope="module")
def server(classes, fixed):
    server = Server([classes, fixed])
    yield server
    server.close()


@pytest.fixture(scope="module")
def client(server):
    return TestClient(server.app)


def infer(client, *tensors, model="classes", **message):
    return client.post(f"/v2/models/{model}/infer", json={"inputs": list(tensors), **message})


def tensor(**changes):
    return {**TENSOR, **changes}


def test_what_the_server_tells(client):
    assert client.get("/").json()["models"] == {"classes": "/v2/models/classes", "fixed": "/v2/models/fixed"}
    assert client.get("/v2").json()["extensions"] == ["binary_tensor_data", "classification", "model_repository"]
    for address in ("/v2/health/live", "/v2/health/ready", "/v2/models/classes/ready", "/v2/models/fixed/versions/1/ready"):
        assert client.get(address).status_code == 200
    told = client.get("/v2/models/classes").json()
    assert told["inputs"] == [{"name": "data", "datatype": "FP32", "shape": [-1, 2, 3, 3]}]
    assert told["outputs"] == [{"name": "prob", "datatype": "FP32", "shape": [-1, 5]}]
    assert told["parameters"] == {"labels": ["ape", "bee", "cow", "dog", "emu"]}
    assert client.get("/v2/models/classes/versions/1/config").json()["max_batch_size"] == 8
    assert [one["name"] for one in client.post("/v2/repository/index").json()] == ["classes", "fixed"]


@pytest.mark.parametrize("datatype", ["FP32", "FP64", "INT8", "INT64", "UINT8", "BOOL"])
def test_numbers_as_json(client, classes, datatype):
    values = np.arange(36).reshape(2, 2, 3, 3) % 2
    answer = infer(client, tensor(shape=[2, 2, 3, 3], datatype=datatype, data=values.tolist()), id="seven").json()
    wanted = classes.run(classes.nets(), [{"data": values.astype(np.float32)}], [2])[0]["prob"]
    assert answer["id"] == "seven" and answer["model_name"] == "classes"
    assert answer["outputs"][0]["shape"] == [2, 5]
    assert np.array_equal(np.array(answer["outputs"][0]["data"], np.float32), wanted.reshape(-1))


@pytest.mark.parametrize("datatype, dtype", [("FP32", "<f4"), ("FP16", "<f2"), ("UINT8", "u1"), ("INT32", "<i4")])
def test_numbers_as_bytes(client, classes, datatype, dtype):
    values = np.arange(18).reshape(1, 2, 3, 3)
    chunk = values.astype(dtype).tobytes()
    header = json.dumps({"inputs": [{"name": "data", "datatype": datatype, "shape": [1, 2, 3, 3],
                                     "parameters": {"binary_data_size": len(chunk)}}], "parameters": {"binary_data_output": True}}).encode()
    answer = client.post("/v2/models/classes/infer", content=header + chunk, headers={"Inference-Header-Content-Length": str(len(header))})
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert json.loads(answer.content[:length])["outputs"][0]["parameters"] == {"binary_data_size": 20}
    wanted = classes.run(classes.nets(), [{"data": values.astype(np.float32)}], [1])[0]["prob"]
    assert answer.content[length:] == wanted.tobytes()


def test_names_of_the_best_classes(client):
    answer = infer(client, tensor(data=list(range(18))), outputs=[{"name": "prob", "parameters": {"classification": 2}}]).json()
    best = answer["outputs"][0]
    assert best["datatype"] == "BYTES" and best["shape"] == [1, 2]
    (first, label, name), (second, _, _) = (text.split(":") for text in best["data"])
    assert float(first) >= float(second) and ["ape", "bee", "cow", "dog", "emu"][int(label)] == name


def test_a_model_without_batches(client):
    answer = infer(client, {"name": "b", "datatype": "FP32", "shape": [2, 3], "data": [1] * 6},
                   {"name": "a", "datatype": "FP32", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, 6]]}, model="fixed").json()
    assert answer["outputs"][0]["data"] == [2, 3, 4, 5, 6, 7]


def test_numbers_that_json_has_not(client):
    assert infer(client, tensor(data=[3e38] * 18)).json()["outputs"][0]["data"] == [None] * 5


@pytest.mark.parametrize("message, text", [
    ("", "the body is not valid JSON"),
    ("[]", "the body is not a JSON object"),
    ("[" * 100000, "the body is not valid JSON"),
    ("{}", "the request has no list 'inputs'"),
    ({"inputs": []}, "the request has no list 'inputs'"),
    ({"inputs": [7]}, "inputs[0] is not a JSON object"),
    ({"inputs": [tensor(name="date")]}, "input 'date' is none of the model; it has data"),
    ({"inputs": [TENSOR, TENSOR]}, "input 'data' is given twice"),
    ({"inputs": [tensor(datatype="BYTES")]}, "datatype is BYTES; give one of FP32"),
    ({"inputs": [tensor(datatype=["FP32"])]}, "datatype is ['FP32']; give one of FP32"),
    ({"inputs": [tensor(shape=7)]}, "shape is 7; give a list of whole numbers"),
    ({"inputs": [tensor(shape=[1, 2, 3, -3])]}, "shape is [1, 2, 3, -3]; give a list of whole numbers"),
    ({"inputs": [tensor(shape=[1, 2, 3, True])]}, "give a list of whole numbers"),
    ({"inputs": [tensor(shape=[1, 2, 3])]}, "the shape is [1, 2, 3]; the model takes [-1, 2, 3, 3], where -1 is 1 or more"),
    ({"inputs": [tensor(shape=[0, 2, 3, 3], data=[])]}, "the shape is [0, 2, 3, 3]; the model takes"),
    ({"inputs": [tensor(shape=[10 ** 15, 2, 3, 3])]}, "has 18 numbers; its shape [1000000000000000, 2, 3, 3] says 18000000000000000"),
    ({"inputs": [tensor(data=[0] * 17)]}, "has 17 numbers; its shape [1, 2, 3, 3] says 18"),
    ({"inputs": [tensor(data=["0"] * 18)]}, "cannot read its data: they are not numbers"),
    ({"inputs": [tensor(data=[[0] * 9, [0] * 8])]}, "cannot read its data"),
    ({"inputs": [tensor(data=[None] * 18)]}, "cannot read its data"),
    ({"inputs": [tensor(data={"a": 1})]}, "cannot read its data"),
    ({"inputs": [tensor(data=None)]}, "cannot read its data"),
    ({"inputs": [{key: value for key, value in TENSOR.items() if key != "data"}]}, "has neither data nor binary_data_size"),
    ({"inputs": [tensor(parameters=7)]}, "parameters is not a JSON object"),
    ({"inputs": [tensor(parameters={"binary_data_size": 72})]}, "binary_data_size is 72, but 0 bytes are left in the body"),
    ({"inputs": [tensor(parameters={"binary_data_size": -4})]}, "binary_data_size is -4; give a whole number from 0 on"),
    ({"inputs": [tensor(datatype="INT8", data=[300] + [0] * 17)]}, "300 is not a valid int8, which takes whole numbers from -128 to 127"),
    ({"inputs": [tensor(datatype="INT8", data=[3.5] * 18)]}, "3.5 is not a valid int8"),
    ({"inputs": [tensor(datatype="UINT8", data=[-1] * 18)]}, "-1 is not a valid uint8, which takes whole numbers from 0 to 255"),
    ({"inputs": [tensor(datatype="UINT64", data=[-1] * 18)]}, "-1 is not a valid uint64"),
    ({"inputs": [tensor(datatype="INT64", data=[2 ** 63] * 18)]}, "9223372036854775808 is not a valid int64"),
    ({"inputs": [tensor(datatype="INT64", data=[2.0 ** 63] * 18)]}, "9.223372036854776e+18 is not a valid int64"),
    ({"inputs": [tensor(datatype="BOOL", data=[7] * 18)]}, "7 is not a valid bool, which takes 0 and 1"),
    ({"inputs": [tensor(datatype="FP16", data=[70000] * 18)]}, "70000 is not a valid float16, which ends at 65504"),
    ({"inputs": [tensor(datatype="FP64", data=[1e300] * 18)]}, "1e+300 is not a valid float32"),
    ({"inputs": [tensor(shape=[4097, 2, 3, 3], data=[0] * 18 * 4097)]}, "the request has 4097 items; at most 4096 are possible"),
    ({"inputs": [TENSOR], "outputs": [{"name": "prob"}, {"name": "prob"}]}, "output 'prob' is given twice"),
    ({"inputs": [TENSOR], "outputs": []}, "'outputs' is not a list of outputs"),
    ({"inputs": [TENSOR], "outputs": [{"name": "fc"}]}, "output 'fc': the model has no such output; it has prob"),
    ({"inputs": [TENSOR], "outputs": ["prob"]}, "outputs[0] is not a JSON object"),
    ({"inputs": [TENSOR], "outputs": [{"name": "prob", "parameters": {"classification": "2"}}]}, "classification is 2; give a whole number"),
    ({"inputs": [TENSOR], "parameters": []}, "parameters is not a JSON object"),
])
def test_requests_that_are_wrong(client, message, text):
    answer = client.post("/v2/models/classes/infer", content=message if isinstance(message, str) else json.dumps(message))
    assert answer.status_code == 400
    assert text in answer.json()["error"]
    assert infer(client, TENSOR).status_code == 200


@pytest.mark.parametrize("length, text", [
    ("x", "Inference-Header-Content-Length is 'x'; give a number of bytes"), ("-1", "is '-1'; give a number of bytes"),
    ("0", "Inference-Header-Content-Length is 0, but the body has"), ("9" * 30, "but the body has"), ("9" * 5000, "give a number of bytes"), ("5", "the body is not valid JSON")])
def test_lengths_that_are_wrong(client, length, text):
    answer = client.post("/v2/models/classes/infer", content=json.dumps({"inputs": [TENSOR]}), headers={"Inference-Header-Content-Length": length})
    assert answer.status_code == 400 and text in answer.json()["error"]


def test_bytes_that_belong_to_no_tensor(client):
    header = json.dumps({"inputs": [TENSOR]}).encode()
    answer = client.post("/v2/models/classes/infer", content=header + b"more", headers={"Inference-Header-Content-Length": str(len(header))})
    assert answer.status_code == 400 and "4 bytes after the last tensor belong to none" in answer.json()["error"]


def test_bytes_that_are_no_numbers(client):
    header = json.dumps({"inputs": [{**TENSOR, "parameters": {"binary_data_size": 71}}]}).encode()
    answer = client.post("/v2/models/classes/infer", content=header + bytes(71), headers={"Inference-Header-Content-Length": str(len(header))})
    assert answer.status_code == 400 and "has 71 bytes, not a multiple of 4" in answer.json()["error"]


@pytest.mark.parametrize("address, text", [
    ("/v2/models/nets", "there is no model 'nets'; there are classes, fixed"),
    ("/v2/models/classes/versions/2", "model 'classes' has version 1 only, not '2'"),
    ("/v3", "there is nothing at /v3"), ("/../../etc/passwd", "there is nothing at"), ("/%2e%2e/%2e%2e/etc/passwd", "there is nothing at")])
def test_addresses_that_there_are_not(client, address, text):
    answer = client.get(address)
    assert answer.status_code == 404 and text in answer.json()["error"]


def test_requests_that_are_too_large(classes):
    server = Server([classes], Limits(body=1000))
    client = TestClient(server.app)
    assert infer(client, TENSOR).status_code == 200
    for content in (b"x" * 1001, iter([b"x" * 600, b"x" * 600])):  # announced, and not
        answer = client.post("/v2/models/classes/infer", content=content)
        assert answer.status_code == 413 and "more than 1000 bytes" in answer.json()["error"]
    server.close()


def test_callers_without_the_token(classes):
    server = Server([classes], token="secret")
    client = TestClient(server.app)
    for headers in ({}, {"Authorization": "Bearer public"}, {"Authorization": "Bearer secreté".encode("latin-1")}):
        answer = client.get("/metrics", headers=headers)
        assert answer.status_code == 401 and answer.json()["error"] == "give the token: Authorization: Bearer TOKEN"
    assert client.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == 200
    assert client.get("/v2/health/ready").status_code == 200 and client.get("/v2/models/classes/ready").status_code == 401
    server.close()


def test_pages_of_other_sites(client):
    answer = client.post("/v2/models/classes/infer", json={"inputs": [TENSOR]}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403 and "requests from pages of http://evil.example are refused" in answer.json()["error"]
    assert client.get("/v2", headers={"Origin": "http://testserver"}).status_code == 200


def test_other_names_of_this_machine(classes):
    server = Server([classes], hosts=local_hosts("127.0.0.1", 8000))
    client = TestClient(server.app)
    for host, status in (("127.0.0.1:8000", 200), ("localhost:8000", 200), ("[::1]:8000", 200), ("evil.example:8000", 403), ("127.0.0.1", 403)):
        answer = client.get("/v2", headers={"Host": host, "Origin": f"http://{host}"})
        assert answer.status_code == status
        if status == 403:
            assert f"this server is not reached as '{host}', but as 127.0.0.1:8000" in answer.json()["error"]
    server.close()
    assert "127.0.0.1" in local_hosts("localhost", 80) and local_hosts("0.0.0.0", 8000) is None


@pytest.mark.parametrize("begun", [b"", b"GET /v2 HTTP/1.1\r\nHost: ", b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\nGET"])
def test_headers_that_do_not_arrive(classes, begun):
    """The client sends no more; the server closes the connection, or this never ends."""
    server = Server([classes])

    async def ask():
        config = uvicorn.Config(server.app, lifespan="off", log_level="critical")
        config.load()
        state = uvicorn.server.ServerState()
        listening = await asyncio.get_running_loop().create_server(lambda: protocol_of(0.01)(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname()[:2])
        writer.write(begun)
        await reader.read()  # to the end of the connection
        writer.close()
        listening.close()

    asyncio.run(ask())
    server.close()


def test_methods_that_there_are_not(client):
    answer = client.delete("/v2")
    assert answer.status_code == 405 and answer.json()["error"] == "/v2 does not take DELETE"
    assert client.head("/v2/health/ready").status_code == 200


def test_figures_for_prometheus(classes):
    server = Server([classes])
    client = TestClient(server.app)
    infer(client, TENSOR)
    infer(client, tensor(shape=[2, 2, 3, 3], data=[0] * 36))
    infer(client, tensor(data=[]))
    text = client.get("/metrics").text
    for line in ('cortado_requests_total{model="classes",status="200"} 2.0', 'cortado_requests_total{model="classes",status="400"} 1.0',
                 'cortado_items_total{model="classes"} 3.0', 'cortado_batch_items_count{model="classes"} 2.0',
                 'cortado_queue_requests{model="classes"} 0.0'):
        assert line in text
    server.close()


class Connection:
    """A client that sends a request, and then what the test says."""

    def __init__(self, body, *events):
        self._events = [{"type": "http.request", "body": body, "more_body": False}, *events]
        self.sent = []

    async def receive(self):
        return self._events.pop(0) if self._events else await asyncio.Future()

    async def send(self, message):
        self.sent.append(message)

    def run(self, app, address):
        scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": address, "raw_path": address.encode(), "query_string": b"",
                 "headers": [], "scheme": "http", "server": ("test", 80), "client": ("test", 1)}
        asyncio.run(app(scope, self.receive, self.send))
        return self.sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in self.sent[1:]))


class GateModel(Gate):
    """A gate whose answers are those of a model."""
    labels = ()

    def __init__(self):
        super().__init__()
        self.outputs = self.inputs


VALUES = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode()


def test_clients_that_have_gone():
    gate = GateModel()
    server = Server([gate])
    status, _ = Connection(VALUES, {"type": "http.disconnect"}).run(server.app, "/v2/models/gate/infer")
    assert status == 499
    assert 'cortado_requests_total{model="gate",status="499"} 1.0' in server.metrics.text().decode()
    gate.open.release(2)
    server.close()


def test_answers_that_do_not_come():
    gate = GateModel()
    server = Server([gate], Limits(wait_seconds=0))
    status, message = Connection(VALUES).run(server.app, "/v2/models/gate/infer")
    assert status == 504 and message["error"] == "there is no answer after 0 s"
    gate.open.release(2)
    server.close()


def test_requests_that_do_not_arrive():
    server = Server([GateModel()], Limits(read_seconds=0))
    silent = Connection(b"")
    silent._events.clear()  # pylint: disable=protected-access
    status, message = silent.run(server.app, "/v2/models/gate/infer")
    assert status == 408 and message["error"] == "the request took more than 0 s to arrive"
    server.close()


def test_too_many_that_wait():
    gate = GateModel()
    server = Server([gate], Limits(queue=0), start=lambda model, observe: Batcher(model, max_queue=0, observe=observe))
    connection = Connection(VALUES)
    status, message = connection.run(server.app, "/v2/models/gate/infer")
    assert status == 503 and message["error"] == "0 requests wait for 'gate'; ask again later"
    assert (b"retry-after", b"1") in connection.sent[0]["headers"]
    server.close()


@pytest.mark.parametrize("address, text", [
    ("fixed/image", "model 'fixed' does not take images"), ("classes/image", "the net reads 2 channels; an image has 1 or 3")])
def test_models_that_take_no_images(client, address, text):
    answer = client.post(f"/v2/models/{address}", content=b"")
    assert answer.status_code == 400 and text in answer.json()["error"]

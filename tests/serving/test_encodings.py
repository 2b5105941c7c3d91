"""Requests and answers that are compressed."""
import gzip
import json
import tracemalloc
import zlib

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tritonclient.http import InferenceServerClient

from caffe.serving.answers import Refusal
from caffe.serving.app import Limits, Server
from caffe.serving.encodings import expanded

WISH = json.dumps({"inputs": [{"name": "data", "datatype": "FP32", "shape": [1, 2, 3, 3], "data": [0] * 18}]}).encode()


@pytest.fixture(scope="module")
def client(classes):
    server = Server([classes], Limits(body=1000))
    yield TestClient(server.app)
    server.close()


def ask(client, content, encoding, address="infer"):
    return client.post(f"/v2/models/classes/{address}", content=content, headers={"Content-Encoding": encoding} if encoding else {})


@pytest.mark.parametrize("encoding, compress", [("gzip", gzip.compress), ("GZIP", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress),
                                                ("identity", bytes), ("", bytes)])
def test_requests_that_are_compressed(client, encoding, compress):
    answer = ask(client, compress(WISH), encoding)
    assert answer.status_code == 200 and answer.json()["outputs"][0]["shape"] == [1, 5]


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_several_gzip_members(client, encoding):
    answer = ask(client, gzip.compress(WISH[:40]) + gzip.compress(b"") + gzip.compress(WISH[40:]), encoding)
    assert answer.status_code == 200 and answer.json()["outputs"][0]["shape"] == [1, 5]
    assert expanded(b"".join(map(gzip.compress, (bytes(70_000), b"a" * 70_000))), "gzip", 1 << 20) == bytes(70_000) + b"a" * 70_000
    assert ask(client, zlib.compress(WISH) * 2, "deflate").status_code == 400


def test_the_bounds_of_several_gzip_members(client):
    answer = ask(client, gzip.compress(bytes(600)) * 2, "gzip")
    assert answer.status_code == 413 and "more than 1000 bytes when it is expanded" in answer.json()["error"]
    assert expanded(gzip.compress(bytes(500)) * 2, "gzip", 1000) == bytes(1000)
    with pytest.raises(Refusal, match="more than 10000 gzip members; send one"):
        expanded(gzip.compress(b"") * 10_001, "gzip", 1000)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_tritons_way_to_compress(client, algorithm):
    """The length in the header is that of the JSON before it is compressed."""
    values = np.arange(18, dtype="<f4").tobytes()
    header = json.dumps({"inputs": [{"name": "data", "datatype": "FP32", "shape": [1, 2, 3, 3], "parameters": {"binary_data_size": len(values)}}]}).encode()
    body = (gzip.compress if algorithm == "gzip" else zlib.compress)(header + values)
    answer = client.post("/v2/models/classes/infer", content=body, headers={
        "Content-Encoding": algorithm, "Inference-Header-Content-Length": str(len(header))})
    assert answer.status_code == 200
    parsed = InferenceServerClient.parse_response_body(answer.content, header_length=None)
    assert parsed.as_numpy("prob").shape == (1, 5)


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd"])
@pytest.mark.parametrize("address", ["infer", "image"])
def test_unknown_encodings(client, encoding, address):
    answer = ask(client, WISH, encoding, address)
    assert answer.status_code == 415 and answer.headers["accept-encoding"] == "gzip, deflate"
    assert answer.json()["error"] == f"Content-Encoding is '{encoding}'; send gzip, deflate, or the body as it is"


@pytest.mark.parametrize("content, text", [
    (WISH, "the body is not valid gzip, which Content-Encoding says: "), (zlib.compress(WISH), "the body is not valid gzip"),
    (gzip.compress(WISH)[:-1], "the body ends in the middle of its gzip data; it has "), (b"", "the body ends in the middle of its gzip data; it has 0 bytes"),
    (gzip.compress(WISH)[:-8] + bytes(8), "the body is not valid gzip"), (gzip.compress(WISH) + b"more", "the body has 4 bytes after the end of its gzip data"),
    (gzip.compress(WISH) + gzip.compress(b" ")[:-1], "the body ends in the middle of its gzip data")])
def test_damaged_bodies(client, content, text):
    answer = ask(client, content, "gzip")
    assert answer.status_code == 400 and text in answer.json()["error"]


@pytest.mark.parametrize("size, status", [(1000, 400), (1001, 413), (900_000, 413)])
def test_a_body_that_is_large_when_expanded(client, size, status):
    body = gzip.compress(bytes(size))
    assert len(body) < 1000
    answer = ask(client, body, "gzip")
    assert answer.status_code == status
    if status == 413:
        assert answer.json()["error"] == "the request has more than 1000 bytes when it is expanded, which is the limit (--max_request_mb)"


def test_the_memory_of_a_bomb():
    bomb = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    for members in (bomb, gzip.compress(b"") + bomb):
        with pytest.raises(Refusal, match="more than 1048576 bytes when it is expanded"):
            expanded(members, "gzip", 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("body, most", [(gzip.compress(bytes(1 << 20)), None), (gzip.compress(bytes(2 << 20)), 1 << 20)])
def test_bodies_that_grow_more_than_a_hundredfold(body, most):
    if most is None:
        assert len(expanded(body, "gzip", 64 << 20)) == 1 << 20
    else:
        with pytest.raises(Refusal, match=f"more than {most} bytes when it is expanded, from the {len(body)} that were sent; send it as it is"):
            expanded(body, "gzip", 64 << 20)

"""Who may use the studio."""
import asyncio

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from caffe._listening import local_hosts
from caffe.studio.__main__ import query_of
from caffe.studio.guard import Guard

HOSTS = {"127.0.0.1:8050", "localhost:8050", "[::1]:8050"}
COOKIE = {"Cookie": "cortado_studio_8050=secret"}


def client(hosts=HOSTS):
    return TestClient(Guard(PlainTextResponse("inside"), "secret", 8050, hosts), base_url="http://127.0.0.1:8050", follow_redirects=False)


def test_the_printed_address_opens_the_page():
    browser = client()
    answer = browser.get("/runs/a?token=secret&x=1")
    assert answer.status_code == 303 and answer.headers["location"] == "/runs/a?x=1"
    assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=strict" in answer.headers["set-cookie"]
    assert browser.get("/runs/a").text == "inside"


@pytest.mark.parametrize("token", ["a+b", "x y&z", "a;b", '"q"', "\u00fc", "\u732b", "100%"])
def test_any_token_can_be_printed_and_kept(token):
    browser = TestClient(Guard(PlainTextResponse("inside"), token, 8050, HOSTS), base_url="http://127.0.0.1:8050", follow_redirects=False)
    assert browser.get(f"/{query_of(token)}").status_code == 303
    assert browser.get("/").text == "inside"


def test_browsers_leave_out_the_usual_port():
    hosts = local_hosts("127.0.0.1", 80)
    browser = TestClient(Guard(PlainTextResponse("inside"), "secret", 80, hosts), base_url="http://127.0.0.1:80", follow_redirects=False)
    assert browser.get("/?token=secret").status_code == 303
    assert browser.get("/", headers={"Host": "localhost:80"}).text == "inside"
    assert "localhost" not in local_hosts("127.0.0.1", 8050)


@pytest.mark.parametrize("headers", [{}, {"Cookie": "cortado_studio_8050=public"}, {"Cookie": "cortado_studio_8051=secret"}, {"Cookie": ";;=;\x7f"}])
def test_browsers_without_the_token(headers):
    answer = client().get("/", headers=headers)
    assert answer.status_code == 401 and answer.text == "open the address that caffe studio has printed: it has the token"


@pytest.mark.parametrize("token", ["", "public", "secret ", "s%C3%A9cret"])
def test_wrong_tokens(token):
    answer = client().get(f"/?token={token}")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8050", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:8050"])
def test_other_names_of_this_machine(host):
    answer = client().get("/?token=secret", headers={**COOKIE, "Host": host})
    assert answer.status_code == 403 and answer.text == f"this studio is not reached as {host}"
    assert client(hosts=None).get("/", headers={**COOKIE, "Host": host}).status_code == 200


@pytest.mark.parametrize("origin, status", [("http://evil.example", 403), ("null", 403), ("http://127.0.0.1:8051", 403), ("http://127.0.0.1:8050", 200)])
def test_pages_of_other_sites(origin, status):
    assert client().post("/", headers={**COOKIE, "Origin": origin}).status_code == status


@pytest.mark.parametrize("headers, is_open", [
    ([(b"cookie", b"cortado_studio_8050=secret")], True), ([], False), ([(b"cookie", b"cortado_studio_8050=secret"), (b"origin", b"http://evil.example")], False)])
def test_web_sockets(headers, is_open):
    reached, sent = [], []

    async def inside(scope, receive, send):
        reached.append(scope["type"])

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "query_string": b"token=secret", "headers": [(b"host", b"127.0.0.1:8050"), *headers]}
    asyncio.run(Guard(inside, "secret", 8050, HOSTS)(scope, receive, send))
    assert (reached, sent) == ((["websocket"], []) if is_open else ([], [{"type": "websocket.close", "code": 1008}]))

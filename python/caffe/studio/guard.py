"""Admits the browser of the user who has started the studio, and nobody else."""
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse

from .._listening import foreign_origin, is_same


class Guard:
    """ASGI middleware. Refuses, also for web sockets:

    * other names of this machine in Host, with which a page of another site could reach a server on 127.0.0.1 (DNS rebinding)
    * requests that pages of other sites send
    * browsers without the token, which the address that the studio prints has; they get it as a cookie once

    hosts: names and numbers with the port, as in a browser's address, that are accepted; None: all
    """

    def __init__(self, app, token, port, hosts):
        self._app, self._token, self._hosts = app, token, hosts
        self._mark = quote(token, safe="")  # in cookies, which have no letters but those of ASCII
        self._cookie = f"cortado_studio_{port}"  # browsers send cookies to all ports of a host

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        answer = self._answer(scope, Headers(scope=scope))
        if answer is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await answer(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    def _answer(self, scope, headers):
        """A refusal, the redirection that sets the cookie, or None."""
        host = headers.get("host", "")
        if self._hosts is not None and host not in self._hosts:
            return PlainTextResponse(f"this studio is not reached as {host[:100]}", 403)
        if origin := foreign_origin(headers):
            return PlainTextResponse(f"requests from pages of {origin} are refused", 403)
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        given = dict(query).get("token")
        if given is not None and scope["type"] == "http" and is_same(given, self._token):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(self._cookie, self._mark, httponly=True, samesite="strict")
            return answer
        if not is_same(self._cookie_in(headers), self._mark):
            return PlainTextResponse("open the address that caffe studio has printed: it has the token", 401)
        return None

    def _cookie_in(self, headers):
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return found.value if found else ""

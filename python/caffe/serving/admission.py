"""Refuses callers before their request is read."""
from starlette.datastructures import Headers

from .._listening import foreign_origin, is_same
from .answers import Refusal

_PROBES = ("/v2/health/live", "/v2/health/ready")


class Admission:
    """ASGI middleware that refuses pages of other sites, which a browser on this machine may show, callers without the token, and
    names in Host with which a page of another site could reach a server on 127.0.0.1 (DNS rebinding).

    hosts: names and numbers with the port that are accepted; None: all
    token: what they have to send as "Authorization: Bearer TOKEN"; "" for nothing. Probes of the server's health need none.
    """

    def __init__(self, app, token="", hosts=None):
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope, receive, send):
        refusal = self._refusal(Headers(scope=scope), scope["path"]) if scope["type"] == "http" else None
        await (refusal.answer() if refusal else self._app)(scope, receive, send)

    def _refusal(self, headers, path):
        host = headers.get("host", "")
        if self._hosts is not None and host not in self._hosts:
            return Refusal(403, f"this server is not reached as '{host[:100]}', but as {', '.join(sorted(self._hosts))}")
        if origin := foreign_origin(headers):
            return Refusal(403, f"requests from pages of {origin} are refused")
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if self._token and path not in _PROBES and not is_same(given, self._token):
            return Refusal(401, "give the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        return None

"""Refuses callers before their request is read."""
from starlette.datastructures import Headers

from .._listening import foreign_origin, is_same
from .answers import Refusal

_PROBES = ("/v2/health/live", "/v2/health/ready")


class Admission:
    """ASGI middleware that refuses pages of other sites, which a browser on this machine may show, and callers without
    the token.

    token: what they have to send as "Authorization: Bearer TOKEN"; "" for nothing. Probes of the server's health need none.
    """

    def __init__(self, app, token=""):
        self._app = app
        self._token = token

    async def __call__(self, scope, receive, send):
        refusal = self._refusal(Headers(scope=scope), scope["path"]) if scope["type"] == "http" else None
        await (refusal.answer() if refusal else self._app)(scope, receive, send)

    def _refusal(self, headers, path):
        if origin := foreign_origin(headers):
            return Refusal(403, f"requests from pages of {origin} are refused")
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if self._token and path not in _PROBES and not is_same(given, self._token):
            return Refusal(401, "give the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        return None
